/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of the supervisor: one sandbox, its clients, its processes, its helpers.
 * There is one thread and one loop; everything hangs off struct supervisor. */

#include "base/hash.h"
#include "base/jsonout.h"
#include "base/program.h"
#include "ipc/control.h"
#include "ipc/helper.h"
#include "ipc/recording.h"
#include "ipc/roomctl.h"
#include "loop/loop.h"
#include "manager/execlog.h"
#include "manager/looks.h"
#include "manager/own.h"
#include "provider/provider.h"
#include <sys/stat.h>
#include <sys/types.h>

enum sup_state {
	SUP_NEW,    /* START has not arrived */
	SUP_UP,     /* the room exists */
	SUP_ENDING, /* TERM was sent, the grace period runs */
	SUP_KILLED, /* KILL was sent; waiting for process 1 and the helpers */
	SUP_ENDED   /* ENDED was sent */
};

/* A connected client. */
struct peer {
	struct peer *prev, *next;
	struct supervisor *sup;
	struct chan chan;
	struct loop_io io;
	bool owner, up, dead;
	bool spare;  /* above the limit of clients: it may only stop the sandbox */
	bool held;   /* init is behind: nothing is read from this client until init has caught up */
	bool paused; /* it has stopped the room's processes, until it continues them or ends */
	bool asked;  /* STATS waits for the broker; nothing else is read until then */
	bool syncs;  /* the same for SYNC */
	uint32_t last_exec;
	struct watcher *handles; /* by exec */
	/* A command that has to wait until the recorder has looked so often. */
	bool has_early;
	uint64_t early_look;
	struct ctl_exec early;
	struct chan_frame early_frame; /* the command's descriptors */
	struct loop_job bury, again;
	struct loop_timer patience; /* time limit for a client to say what it wants */
};

/* One client's handle of one process. */
struct watcher {
	UT_hash_handle hh; /* in peer->handles */
	struct watcher *prev, *next;
	struct peer *peer;
	struct task *task;
	uint32_t exec; /* the client's number */
	bool own;      /* the client started the process, and its descriptors get the output */
};

/* One output stream of a process whose output goes through the supervisor. */
struct stream {
	struct task *task;
	int which;    /* 1 or 2 */
	int in;       /* owned; -1 at end-of-file */
	int to;       /* the client's pipe, owned; -1: none or gone */
	int relay[2]; /* a pipe with output that the client has not read yet, or -1 */
	struct loop_io in_io, to_io;
};

enum task_state { TASK_ASKED, TASK_RUNS, TASK_ENDED };

/* A process of the room that a client (or the supervisor) asked for. */
struct task {
	UT_hash_handle hh;        /* in tasks.known, as long as init knows it */
	UT_hash_handle hh_shown;  /* in tasks.shown, if it has a number for clients */
	struct task *prev, *next; /* in tasks.past, once it has ended */
	struct supervisor *sup;
	struct watcher *watchers;
	uint32_t number; /* the number that init knows; never shown */
	uint32_t shown;  /* the number that clients see; 0: none */
	uint32_t pid;    /* in the room */
	enum task_state state;
	bool tty, timed_out, captured;
	bool is_worker; /* CTL_EXEC_WORKER */
	bool killed;    /* KILL was sent through init */
	bool stopped;   /* its watchers were told that it is, and nobody has continued it */
	bool paused;    /* the next stop by SIGSTOP is of our making (pause.c) */
	uint64_t timeout_usec, started_at, started_real;
	struct loop_timer timer;       /* the deadline, then KILL, then what enforces KILL */
	struct ctl_exec_exited result; /* TASK_ENDED */
	uint64_t ended_real;

	/* If captured: */
	int input; /* terminal's master or a pipe, for clients that join; or -1 */
	int dir;   /* directory of its log, or -1 */
	struct stream streams[2];
	struct execlog log;
	bool gap_told;   /* meta.json says that some of the output could not be logged */
	char *described; /* the members of meta.json that never change */

	struct clocked *clocked; /* owned; NULL: none, or the sandbox has no full record */
	bool unrecorded;         /* not on record yet: clients do not hear of its end */
	struct task *unrecorded_next;
};

/* A program that we have started. */
struct child {
	pid_t pid; /* 0 if it does not run */
	int pidfd;
	struct loop_io death;
};

/* A channel that the loop watches. */
struct conn {
	struct chan chan; /* if open */
	bool open;
	struct loop_io io;
};

/* Gateway or broker. */
struct helper {
	const char *name;
	struct supervisor *sup;
	struct child child;
	int status; /* of waitpid(), once it has ended */
	struct conn conn;
	bool ready;            /* it sent READY */
	struct cloche_err err; /* from FAILED */
};

/* The recorder (recording.c). */
struct recording {
	struct child child;
	struct conn conn;
	uint64_t looks_asked, looks_done; /* how often; READY is the answer to LOOK */
	unsigned workers;                 /* that run */
	bool had_worker; /* since the last LOOK, so files may have been changed from outside */
	bool troubled;   /* clients were told that the record has gaps */
	bool told_end;
	struct loop_timer patience, flush;
	struct task *queue; /* tasks that have ended; the recorder works on the first */
};

enum { HELPER_BROKER, HELPER_GATEWAY, HELPERS_N };

/* A listener of the room, watched until it is handed to the gateway. */
struct knock {
	struct supervisor *sup;
	struct loop_io io;
};

/* A forwarded port: connections to this port of the host go into the room. */
struct forward {
	struct forward *prev, *next;
	struct supervisor *sup;
	uint16_t guest_port, host_port;
	char *host_address;
	struct child child;
	int asks_fd; /* where it asks for connections into a room elsewhere; -1: another one does */
	struct loop_io asks;
};

/* Clients (peer.c). */
struct peers {
	struct peer *all;
	struct loop_io listener;
	struct loop_timer listen_again; /* after running out of descriptors */
	unsigned paused; /* number of clients that have stopped the room's processes */
};

/* Processes (task.c). */
struct tasks {
	struct task *known, *shown, *past;
	uint32_t last_number, first_number, last_shown;
	unsigned watchers_n, captured_n;
	uint64_t total;
	struct loop_timer forget; /* to remove the oldest logs */
	uint64_t oom_kills_seen;
	bool pids_refused_seen;
};

/* The file of a person's login (login.c). */
struct login_place {
	int dir;                      /* its directory */
	const char *name, *lock_name; /* of START; lock_name may be empty */
	/* While the broker has it, else -1: the locked directory, and what may replace the file. */
	int lock, fresh;
	bool has_lock_name;      /* and has made that directory */
	struct loop_timer alive; /* for its time */
	struct loop *loop;       /* NULL: in a test, nobody keeps its time */
	struct stat seen;        /* the file as the broker got it */
};

/* Gateway and broker, and what they are given (helpers.c). */
struct network {
	struct helper helpers[HELPERS_N];
	struct stat names[2]; /* resolv.conf and hosts, as the broker last read them */
	/* The gateway's end of the socket to the broker until the gateway starts, else -1. */
	int gateway_end;
	int listeners[ROOM_LISTENERS]; /* of the room, until the gateway has them, else -1 */
	struct knock knocks[ROOM_LISTENERS];
	struct loop_timer gateway_due;
	struct loop_timer patience; /* for their end */
	struct login_place logins[CTL_MAX_LOGINS];
	size_t logins_n;
	bool logins_late;             /* the end waits longer, since the broker has one of them */
	struct helper_counted counts; /* the broker's last answer */
	struct loop_timer counts_late;
	struct ssh_end *ssh_ends; /* of ssh.c */
	/* The policy, if it has replaced that of START. */
	uint64_t policy_real;
	uint32_t policy_rules;
	char *policy_sources;
};

/* How the sandbox ends (sandbox.c). */
struct ending {
	enum ctl_reason reason;
	bool stopped, timed_out;
	bool term_due; /* SUP_ENDING: TERM has not been sent yet */
	uint64_t kill_at;
	struct loop_timer deadline, grace;
	struct loop_timer tails; /* limits how long the end waits for slow clients */
	bool tails_over;
	struct loop_job finish;
};

/* A child that cleans up after crashed sandboxes; that must not delay the start (sandbox.c). */
struct sweeper {
	struct loop_timer due;
	struct child child;
	bool started;
};

/* Copying files both ways (sync.c). */
struct syncing {
	bool is_on;
	struct peer *peer; /* who asked, or NULL if it has gone */
	int out;           /* the client's pipe, owned */
	struct loop_io io; /* the end of a copy */
	struct loop_timer patience;
	bool has_begun, is_stopped, is_late;
	struct peer *next; /* who asked while the one before was being stopped, or NULL */
	int next_out;
	struct child look; /* a child that looks through what came */
	struct timespec looked_at;
	struct cloche_err why; /* code 0: it is all right */
};

struct sample {
	struct loop_timer timer;
	uint64_t pause;
};

struct supervisor {
	struct loop *loop;
	enum sup_state state;
	struct loop_io signals;

	/* from START */
	struct ctl_start start;
	struct room_spec spec;
	unsigned sources; /* descriptors that it will take */

	struct sandbox_dir dir;
	struct look look;            /* the directories that the room may write to */
	struct carry carry;          /* and what of configurations of git may be taken over */
	struct cloche_err look_note; /* why those could not be recorded; code 0: they were */
	char *elsewhere;             /* where alone the provider makes rooms; NULL: not known */
	char *passed_over;           /* what "auto" skipped, and why; NULL: nothing */
	struct room *room;
	struct loop_io room_io;
	bool room_dead;
	struct conn init;
	bool ready; /* init has said so */
	struct loop_job init_again, after_start;
	struct peers peers;
	struct tasks tasks;
	struct network net;
	struct forward *forwards;
	struct recording recording;

	uint64_t created_real, started_real, started_at, ended_real;
	struct loop_timer record_due;
	char *failure; /* ERROR's message */
	struct room_usage usage;
	struct sample sample;
	struct ending end;
	struct sweeper sweeper;
	struct syncing sync;
};

/* --- child.c: programs that we start, and channels --- */
typedef void (*loop_io_fn)(struct loop_io *io, uint32_t events);
/* Start a program of cloche's. on_death is called when it has ended, and has to reap it. */
_warn_unused_ int child_start(struct child *c, struct loop *loop, const char *name,
	const struct program_fd *fds, size_t fds_n, loop_io_fn on_death, struct cloche_err *err);
/* Send it KILL, if it runs. */
void child_kill(const struct child *c);
/* Wait for its end. Return the status of waitpid(). */
int child_reap(struct child *c);
/* Open a channel over fd (taken). on_io is called when there may be something to read. Return 0 or
 * -errno; it has to be closed all the same. */
_warn_unused_ int conn_open(struct conn *c, struct loop *loop, int fd, size_t max_payload,
	size_t max_out, loop_io_fn on_io);
/* Write what is queued, and have on_io called also when the rest can be written. Return 0 or
 * -errno. */
int conn_flush(struct conn *c);
/* Does nothing if it is not open. */
void conn_close(struct conn *c);

/* --- peer.c: clients --- */
/* Add a client; takes fd. */
_warn_unused_ int peer_add(struct supervisor *s, int fd, bool owner);
/* Callback of the listener: accept a client. */
void peer_accept(struct loop_io *io, uint32_t events);
/* Call this after queueing a frame for p; r is the result. */
void peer_sent(struct peer *p, int r);
/* Send to every client that is up. */
void peers_warning(struct supervisor *s, struct str text);
void peers_error(struct supervisor *s, const struct cloche_err *err);
void peers_started(struct supervisor *s);
void peers_brings(struct supervisor *s);
/* The recorder has looked: start the commands that waited for this. */
void peers_begin(struct supervisor *s);
/* Init has caught up: read from the clients that were held up. */
void peers_go_on(struct supervisor *s);
/* The broker's figures have arrived, or will not: answer the clients that asked. */
void peers_answer_stats(struct supervisor *s);
/* A client that had to wait for an answer has it: take its next frames. */
void peer_answered(struct peer *p);
/* Return the pid of a client, or 0. */
pid_t peer_pid(const struct peer *p);
/* Tell all clients that the sandbox has ended, wait a moment for slow readers, close all
 * connections. */
void peers_ended(struct supervisor *s, const struct ctl_ended *m);
/* Return the pid of the client that waits for the end, or 0. */
pid_t peers_owner(const struct supervisor *s);
bool peers_owner_is_gone(const struct supervisor *s);

/* --- pause.c --- */
/* Stop the room's processes until all clients that did this have resumed them. Do nothing if this
 * client has already. */
void peer_pause(struct peer *p);
void peer_resume(struct peer *p);

/* --- watch.c: clients' handles of processes --- */
/* Return NULL if there are too many, or on lack of memory. own: the client started the process. */
struct watcher *watcher_new(struct task *t, struct peer *p, uint32_t exec, bool own);
void watcher_free(struct watcher *w);
/* Return NULL if the client has no such handle (any more). */
struct watcher *watcher_find(struct peer *p, uint32_t exec);
/* Tell p that exec failed, for a handle that was never made. */
void watcher_refuse(struct peer *p, uint32_t exec, int code, int sys_errno, const char *text);
/* fd: sent along (borrowed), or -1. */
void watcher_tell_started(struct watcher *w, int fd);
/* Tell all watchers. master: of the process's terminal (borrowed), or -1. */
void watchers_tell_started(const struct task *t, int master);
/* Tell the client that the process has ended, and free the handle. */
void watcher_tell_exited(struct watcher *w);
void watcher_tell_stopped(struct watcher *w);
/* Tell all watchers that the process could not be started, and free them. */
void watchers_fail(struct task *t, int code, int sys_errno, const char *text);
/* Tell watchers that wait for nothing else, or all of them, that the process has ended. */
void watchers_tell_end(struct task *t, bool all);

/* --- inherit.c --- */
/* Fill in the sandbox's environment, directory, user and timeout where the client gave none. Return
 * 0 or -ENOMEM. */
_warn_unused_ int task_inherit(const struct supervisor *s, struct ctl_exec *m);
/* Whether it names a user who can have no processes in the room. */
bool task_is_of_other(const struct supervisor *s, const struct exec_spec *spec);
/* A process that no user was named for is what the room's processes are. */
void task_choose_user(const struct supervisor *s, struct exec_spec *spec);

/* --- task.c: processes --- */
/* Start a process; f has its descriptors. Return false if the client broke the protocol. */
bool task_exec(struct peer *p, struct ctl_exec *m, struct chan_frame *f);
void task_join(struct peer *p, const struct ctl_join *m, struct chan_frame *f);
void task_signal(struct peer *p, const struct ctl_signal *m);
void task_resize(struct peer *p, const struct ctl_resize *m);
/* Start a process for the supervisor itself; input becomes its descriptor 0 (borrowed). Return
 * false if init takes no more. */
bool task_internal(struct supervisor *s, const struct exec_spec *spec, int input);
/* Handle a frame from init; return false if it is invalid. */
bool task_on_frame(struct supervisor *s, struct chan_frame *f);
/* The client is gone: free its handles. Its processes go on, and it is not told. */
void tasks_orphan(struct supervisor *s, struct peer *p);
/* The room is dead: report every remaining process as killed. */
void tasks_end(struct supervisor *s, bool oom_killed);
/* Return true if no client that started a process still waits for its last output. */
bool tasks_delivered(const struct supervisor *s);
/* Tell those clients that their processes have ended, without waiting for the output to be read. */
void tasks_give_up(struct supervisor *s);
/* Number of running processes, and of all that were ever started. In a kept sandbox, processes of
 * the supervisor itself do not count. */
uint64_t tasks_running(const struct supervisor *s);
uint64_t tasks_total(const struct supervisor *s);
/* Close every log. */
void tasks_close(struct supervisor *s);

/* --- deadline.c: how processes are ended --- */
/* Send a signal through init. */
void deadline_signal(struct task *t, uint8_t signo, enum ctl_scope scope);
/* Send KILL through init. If that has no effect soon, kill everything that belongs to t by other
 * means. */
void deadline_kill(struct task *t, enum ctl_scope scope);
/* End t when its time is over, if it has a deadline. */
void deadline_start(struct task *t);
/* Send the TERM of sandbox_end() to everything in the room, once, as soon as init is not starting a
 * command any more, which might miss it. */
void deadline_tell_room(struct supervisor *s);

/* --- output.c: output of processes --- */
/* Make pipes and take the client's ends out of the frame; a raw process gets these instead.
 * ret_fds: the process's ends (owned by the caller), -1 where it has none. Return 0 or -errno. */
_warn_unused_ int output_prepare(
	struct task *t, const struct ctl_exec *m, struct chan_frame *f, int ret_fds[3]);
/* Make the log. Call this after init was asked, so that both work at the same time. */
void output_open_log(struct task *t, const struct ctl_exec *m);
/* The process runs; master (taken): its terminal, or -1. Return 0 or -errno. */
_warn_unused_ int output_started(struct task *t, int master);
/* Send the process's output from now on to these pipes (taken) as well. Return -EBUSY if another
 * client reads it, -EINVAL if this output cannot be shared. */
_warn_unused_ int output_share(struct task *t, int fds[2]);
/* The process has ended: read what is left in its pipes. */
void output_exited(struct task *t);
/* Return true if the client that started it has all the output that it will get. */
bool output_is_delivered(const struct task *t);
/* Return true if no process can write to it any more. */
bool output_is_closed(const struct task *t);
/* Close everything; data that is still in pipes is lost. */
void output_close(struct task *t);
/* Write meta.json. */
void output_write_meta(struct task *t);
/* Write JSON members that say how the process ended. */
void output_describe_end(struct jsonout *o, const struct task *t);
/* Remove the files. */
void output_remove(struct task *t);
/* Return how many bytes of the host's disk the log uses. */
uint64_t output_size(const struct task *t);

/* Called by output.c when the client has everything, or when a log was closed. */
void task_on_output(struct task *t);

/* --- clocked.c: when it printed what, if there is a full record --- */
/* n more bytes of its standard output have come. */
void clocked_note(struct task *t, uint64_t n);
/* Move n bytes that a stream has into the log (execlog_splice(), execlog_write()), and note it. */
uint64_t clocked_splice(struct stream *st, uint64_t n);
void clocked_put(struct stream *st, const void *p, size_t n);
/* Write that as a JSON member. */
void clocked_write(const struct task *t, struct jsonout *o);
void clocked_done(struct task *t);

/* --- record.c --- */
/* Write the record of the present state. */
_warn_unused_ int record_write(struct supervisor *s, struct cloche_err *err);
/* The same for a kept sandbox, now or soon, without reporting errors to the caller. */
void record_update(struct supervisor *s);
void record_update_soon(struct supervisor *s);

/* Return why the sandbox ends, or NULL if it does not. */
const char *record_reason_name(const struct supervisor *s);

/* --- recording.c: for a sandbox with a full record; otherwise these do nothing --- */
/* dirs: the directories of logs and of contents (borrowed). */
_warn_unused_ int recording_start(struct supervisor *s, const int dirs[2], struct cloche_err *err);
/* Have the recorder scan the room's files; sandbox_go_on is called when it is done. */
_warn_unused_ int recording_look(struct supervisor *s, struct cloche_err *err);
/* A client has asked for t. */
void recording_task_begins(struct task *t, const struct ctl_exec *m);
/* t is freed. */
void recording_task_gone(const struct task *t);
/* note: JSON members, or NULL. These ignore workers. */
void recording_exec_started(struct task *t, const char *note);
void recording_exec_failed(struct task *t, const char *why);
/* Set t->unrecorded until the end is on record. */
void recording_exec_ended(struct task *t);
/* The room is dead: start the last scan as soon as every command is on record. */
void recording_finish(struct supervisor *s);
/* For any sandbox: remove the log that it may have, whoever wrote it, and wait for that. */
void recording_forget(const struct supervisor *s);
/* Return true while the existing files are not on record yet. */
bool recording_is_awaited(const struct supervisor *s);
/* If workers may have changed files since the recorder looked, have it look again, so that this is
 * not taken for what the command does. Return true if the command has to wait for that. */
bool recording_look_again(struct supervisor *s, const struct ctl_exec *m);
bool recording_is_over(const struct supervisor *s);

/* --- lend.c: what a command gets of the host's --- */
/* A pipe belongs to the user who made it, so a user of the room that does not exist outside could
 * use it but not open it by name (/dev/stdout). This is for anonymous pipes only: a named one is a
 * file of the host. */
void lend_pipes(const struct room *room, const struct exec_spec *spec, const int fds[3]);
/* If the command is to have a terminal and its init can open none, put its master and its slave
 * into fds, in place of what is there. Return 0 or -errno. */
_warn_unused_ int lend_terminal(const struct room *room, const struct exec_spec *spec, int fds[3]);

/* --- sandbox.c: the room's life --- */
/* START has arrived. Takes m's content; fds (borrowed) are those of START. Failures are reported to
 * the owner here. */
void sandbox_start(struct supervisor *s, struct ctl_start *m, const int *fds);
/* The existing files were scanned: clients may begin. */
void sandbox_go_on(struct supervisor *s);
/* Send TERM, then KILL after the grace period. The first reason stays, the shortest grace wins. */
void sandbox_end(struct supervisor *s, enum ctl_reason reason, uint64_t grace_usec);
/* Kill everything in the room now. */
void sandbox_kill(struct supervisor *s, enum ctl_reason reason);
/* The same, and tell clients why. */
void sandbox_fail(struct supervisor *s, const struct cloche_err *err);
/* Write the frames that are queued for init. */
void sandbox_flush_init(struct supervisor *s);
/* Return true if so much is queued for init that nothing more should be asked of it. */
bool sandbox_init_is_full(const struct supervisor *s);
/* A helper has ended: continue the end of the sandbox if it waited for that. */
void sandbox_check_end(struct supervisor *s);

/* --- choose.c: providers --- */
typedef int (*create_fn)(struct supervisor *s, const struct provider *p, struct cloche_err *err);
/* As elsewhere of struct room_spec; user: the supervisor. */
void choose_on_elsewhere(void *user, const char *place);
/* Create the room with the provider that START names, or with the first that works. */
_warn_unused_ int choose_provider(struct supervisor *s, create_fn create, struct cloche_err *err);

/* --- request.c: requests of clients about the room --- */
/* The handlers of frames return false if the client broke the protocol. */
bool request_stats(struct peer *p, struct chan_frame *f);
bool request_layers(struct peer *p, struct chan_frame *f);
bool request_policy(struct peer *p, struct chan_frame *f);
/* For STOP with if_idle: return true, and refuse the request, if a command runs, or another process
 * that a client waits for. */
bool request_refuse_stop(struct peer *p);
/* Refuse a request. */
void request_refuse(struct peer *p, uint16_t request, const struct cloche_err *err);
/* Answer with the present figures. */
void request_answer_stats(struct peer *p);

/* --- forward.c: ports of the room --- */
/* A handler, as those of request.c. */
bool forward_on_request(struct peer *p, struct chan_frame *f);
void forwards_stop(struct supervisor *s);

/* --- sync.c: copying files both ways while the room lives --- */
/* A handler, as those of request.c. */
bool request_sync(struct peer *p, struct chan_frame *f);
/* The client has gone: nobody wants it any more. */
void sync_peer_gone(struct supervisor *s, const struct peer *p);
/* The room is dead, and its provider is about to be asked for the end, and to bring its files. */
void sync_room_dead(struct supervisor *s);

/* --- sample.c: peaks that the kernel does not record --- */
/* Read the room's usage from time to time as long as the room lives. */
void sample_start(struct supervisor *s);
/* ssh.c: start an end of a connection of SSH. The descriptors are borrowed; if it cannot be
 * started, whoever has their other ends sees them closed. */
void ssh_start(struct supervisor *s, bool room, int peer, int plain);
/* End them all. */
void ssh_stop(struct supervisor *s);

/* --- login.c: files of logins that the broker renews --- */
/* Keep the directories of START (borrowed), one for each of its logins. */
_warn_unused_ int logins_take(struct supervisor *s, const int *fds, struct cloche_err *err);
/* The broker has gone. */
void logins_close(struct supervisor *s);
/* Return whether the broker has one of them: it may be the only one who knows a new token. */
bool logins_are_open(const struct supervisor *s);
/* Take a LOGIN_OPEN or a LOGIN_END and queue the answer. Return 0 or -errno. */
_warn_unused_ int logins_open(struct supervisor *s, struct chan *c, struct str payload);
_warn_unused_ int logins_end(struct supervisor *s, struct chan *c, struct str payload);
/* What they do with one file. Return 0 or an errno. */
_warn_unused_ int login_place_open(struct login_place *p, int *ret_file);
_warn_unused_ int login_place_replace(struct login_place *p);
void login_place_close(struct login_place *p);

/* --- helpers.c: gateway and broker --- */
/* Start the broker. *ret_ca_fd is the pipe with the certificates (owned by the caller). config_fd
 * is borrowed. */
_warn_unused_ int helpers_start(
	struct supervisor *s, int config_fd, int *ret_ca_fd, struct cloche_err *err);
/* Start the gateway when the room first uses its network, or a moment from now. It gets the room's
 * listeners, and ours are closed. A failure then ends the sandbox. */
_warn_unused_ int helpers_watch(struct supervisor *s, struct cloche_err *err);
/* Ask the broker for its figures. peers_answer_stats is called when they arrive or when that takes
 * too long. Return false if the broker cannot be asked. */
bool helpers_ask_counts(struct supervisor *s);
/* Hand the broker a client's socket (borrowed), over which it will get a new policy. */
_warn_unused_ int helpers_pass_policy(struct supervisor *s, int client, struct cloche_err *err);
/* End both, the gateway first, so that the broker can still log what the gateway reported. */
void helpers_stop(struct supervisor *s);
bool helpers_gone(const struct supervisor *s);
/* Wait a moment for a helper's own report of a failure and put it into err. */
void helpers_explain(struct supervisor *s, struct cloche_err *err);
