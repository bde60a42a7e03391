/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of the supervisor share: one sandbox, its clients, its processes, its helpers.
 * One thread, one loop; everything hangs off struct supervisor. */

#include "base/hash.h"
#include "base/jsonout.h"
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
	SUP_NEW,    /* START has not come */
	SUP_UP,     /* the room is there */
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
	bool spare;  /* one too many: it may only stop the sandbox */
	bool held;   /* init is behind; nothing is read until it has caught up */
	bool paused; /* it has stopped what runs in the room; that goes on when it says so or goes
		      */
	bool asked;  /* STATS waits for the broker; nothing else is read meanwhile */
	uint32_t last_exec;
	struct watcher *handles; /* by exec */
	/* A command that has to wait until what is there is on record. */
	bool has_early;
	struct ctl_exec early;
	struct chan_frame early_frame; /* its descriptors */
	struct loop_job bury, again;
	struct loop_timer patience; /* with one that does not say what it wants */
};

/* One client's handle of one process. */
struct watcher {
	UT_hash_handle hh; /* in peer->handles */
	struct watcher *prev, *next;
	struct peer *peer;
	struct task *task;
	uint32_t exec; /* the client's number */
	bool own;      /* it asked for the process, and its descriptors get the output */
};

/* One stream of a process whose output goes through us. */
struct stream {
	struct task *task;
	int which;    /* 1 or 2 */
	int in;       /* owned; -1 at end-of-file */
	int to;       /* the client's pipe, owned; -1: none or gone */
	int relay[2]; /* what the client has not taken and we could not leave in `in`, or -1 */
	struct loop_io in_io, to_io;
};

enum task_state { TASK_ASKED, TASK_RUNS, TASK_ENDED };

/* A process of the room that a client (or we) asked for. */
struct task {
	UT_hash_handle hh;        /* in sup->tasks, while init knows it */
	UT_hash_handle hh_shown;  /* in sup->shown, if it has a number for clients */
	struct task *prev, *next; /* in sup->past, when it has ended */
	struct supervisor *sup;
	struct watcher *watchers;
	uint32_t number; /* ours, towards init; never shown */
	uint32_t shown;  /* the sandbox's own; 0: none */
	uint32_t pid;    /* in the room */
	enum task_state state;
	bool tty, timed_out, captured;
	bool killed; /* KILL was sent by way of init */
	uint64_t timeout_usec, started_at, started_real;
	struct loop_timer timer;       /* its deadline, then its KILL, then how that is enforced */
	struct ctl_exec_exited result; /* TASK_ENDED */
	uint64_t ended_real;

	/* If captured: */
	int input; /* terminal's master or pipe for whoever joins, or -1 */
	int dir;   /* of its log, or -1 */
	struct stream streams[2];
	struct execlog log;
	char *described; /* members of meta.json that do not change */

	bool unrecorded; /* the recorder has it still to do: nobody hears of its end */
	struct task *unrecorded_next;
};

/* Gateway or broker. */
struct helper {
	const char *name;
	struct supervisor *sup;
	pid_t pid;
	int pidfd;
	int status; /* of waitpid(), once it has ended */
	struct chan chan;
	bool chan_open;
	bool ready; /* it said so */
	struct loop_io io, death;
	struct cloche_err err; /* what it said with FAILED */
};

/* The recorder (recording.c). */
struct recording {
	pid_t pid; /* 0: there is none (any more) */
	int pidfd;
	struct chan chan;
	bool chan_open, ready;
	bool troubled; /* clients were told that something is not on record */
	bool told_end;
	struct loop_io io, death;
	struct loop_timer patience, flush;
	struct task *queue; /* ended; the first is with the recorder */
};

enum { HELPER_BROKER, HELPER_GATEWAY, HELPERS_N };

/* A listener of the room, watched until the gateway has it. */
struct knock {
	struct supervisor *sup;
	struct loop_io io;
};

/* A port of the host that leads into the room. */
struct forward {
	struct forward *prev, *next;
	struct supervisor *sup;
	uint16_t guest_port, host_port;
	char *host_address;
	pid_t pid;
	int pidfd;
	struct loop_io death;
};

struct supervisor {
	struct loop *loop;
	enum sup_state state;
	struct peer *peers;
	struct loop_io listener, signals;
	struct loop_timer listen_again; /* after a lack of descriptors */
	struct loop_timer late;         /* work that no start shall wait for */
	struct loop_timer sample;       /* sample.c */
	uint64_t sample_pause;
	struct loop_job after_start, finish, init_again;

	/* from START */
	struct ctl_start start;
	struct room_spec spec;

	struct sandbox_dir dir;
	struct look look;            /* what the room may write in */
	struct cloche_err look_note; /* why it could not be noted; code 0: it was */
	char *passed_over;           /* by "auto": who does not work, and why; NULL: none */
	struct room *room;
	struct chan init; /* open if init_open */
	bool init_open, ready;
	struct loop_io init_io, room_io;
	bool room_dead;
	struct task *tasks, *shown, *past;
	uint32_t last_number, first_number, last_shown;
	unsigned watchers_n, captured_n;
	uint64_t execs_total;
	struct loop_timer forget; /* removes the oldest logs */
	struct loop_timer tails;  /* how long the end waits for clients that read slowly */
	bool tails_over;

	struct helper helpers[HELPERS_N];
	struct stat names[2]; /* resolv.conf and hosts, as the broker knows them */
	/* Until the gateway starts: its end of the socket to the broker, or -1; what starts it. */
	int gateway_net;
	int listeners[ROOM_LISTENERS]; /* of the room, until the gateway has them; or -1 */
	struct knock knocks[ROOM_LISTENERS];
	struct loop_timer gateway_due;
	struct loop_timer helpers_timer;
	struct helper_counted counts; /* what the broker said last */
	struct loop_timer counts_late;
	/* The policy, if it is not the one of START any more. */
	uint64_t policy_real;
	uint32_t policy_rules;
	char *policy_sources;

	struct forward *forwards;
	struct recording recording;

	uint64_t created_real, started_real, started_at, ended_real;
	struct loop_timer record_due;
	char *failure; /* ERROR's message */
	struct room_usage usage;

	enum ctl_reason reason;
	bool stopped, timed_out;
	uint64_t oom_kills_seen;
	bool pids_refused_seen;
	uint64_t kill_at;
	bool term_due; /* SUP_ENDING: TERM is still to be sent */
	struct loop_timer grace, deadline;
	unsigned paused; /* clients that have stopped what runs in the room */
	pid_t sweeper;   /* child that cleans up after crashes, or 0 */
	int sweeper_fd;
	struct loop_io sweeper_io;
};

/* --- peer.c: clients --- */
/* Takes fd. */
_warn_unused_ int peer_add(struct supervisor *s, int fd, bool owner);
/* Callback of s->listener: another client. */
void peer_accept(struct loop_io *io, uint32_t events);
/* After an attempt to queue a frame: r is its result. */
void peer_sent(struct peer *p, int r);
/* To every client that is up. */
void peers_warning(struct supervisor *s, struct str text);
void peers_error(struct supervisor *s, const struct cloche_err *err);
void peers_started(struct supervisor *s);
/* What was recorded first is: does what they asked for meanwhile. */
void peers_begin(struct supervisor *s);
/* Init has caught up: reads from those who were held up. */
void peers_go_on(struct supervisor *s);
/* The broker's figures are there (or will not come): answers those who asked. */
void peers_answer_stats(struct supervisor *s);
/* Tells all that it is over, waits a moment for slow readers, closes all. */
void peers_ended(struct supervisor *s, const struct ctl_ended *m);

/* --- watch.c: clients' handles of processes --- */
/* NULL if there are too many, or no memory. own: its client asked for the process. */
struct watcher *watcher_new(struct task *t, struct peer *p, uint32_t exec, bool own);
void watcher_free(struct watcher *w);
/* NULL if the client has no such handle (any more). */
struct watcher *watcher_find(struct peer *p, uint32_t exec);
/* For a handle that never was one. */
void watcher_refuse(struct peer *p, uint32_t exec, int code, int sys_errno, const char *text);
/* fd: what goes along (borrowed), or -1. */
void watcher_tell_started(struct watcher *w, int fd);
/* Tells the end and frees the handle. */
void watcher_tell_exited(struct watcher *w);
/* Tells all that the process could not be started, and frees them. */
void watchers_fail(struct task *t, int code, int sys_errno, const char *text);
/* Tells the end to those who wait for nothing else, or to all. */
void watchers_tell_end(struct task *t, bool all);

/* --- task.c: processes --- */
/* fds: those that come along, in order (borrowed). False if the client broke the protocol. */
bool task_exec(struct peer *p, struct ctl_exec *m, struct chan_frame *f);
void task_join(struct peer *p, const struct ctl_join *m, struct chan_frame *f);
void task_signal(struct peer *p, const struct ctl_signal *m);
void task_resize(struct peer *p, const struct ctl_resize *m);
/* A process of our own: input becomes its descriptor 0 (borrowed). False if init takes no more.
 */
bool task_internal(struct supervisor *s, const struct exec_spec *spec, int input);
/* What init says; false if it lies. */
bool task_on_frame(struct supervisor *s, struct chan_frame *f);
/* The client is gone: its processes go on, nobody is told. */
void tasks_orphan(struct supervisor *s, struct peer *p);
/* The room is dead: reports every process that is left as killed. */
void tasks_end(struct supervisor *s, bool oom_killed);
/* Nobody who asked for a process waits for its last output any more. */
bool tasks_delivered(const struct supervisor *s);
/* Tells them without it. */
void tasks_give_up(struct supervisor *s);
/* Processes that run, and that were ever asked for; in a kept sandbox without helpers of ours. */
uint64_t tasks_running(const struct supervisor *s);
uint64_t tasks_total(const struct supervisor *s);
/* Closes every log. */
void tasks_close(struct supervisor *s);

/* --- deadline.c: their ends --- */
/* By way of init. */
void deadline_signal(struct task *t, uint8_t signo, enum ctl_scope scope);
/* KILL, by way of init; if that does not help soon, by other ways to all that belongs to t. */
void deadline_kill(struct task *t, enum ctl_scope scope);
/* Ends t when its time is over, if it has a deadline. */
void deadline_start(struct task *t);
/* Sends the TERM of sandbox_end() to all in the room, once: as soon as init is starting no command,
 * which might miss it. */
void deadline_tell_room(struct supervisor *s);

/* --- output.c: what processes print --- */
/* Makes pipes and takes the client's ends out of the frame. ret_fds: the process's ends (owned by
 * the caller), -1 for what it has not. 0 or -errno. */
_warn_unused_ int output_prepare(
	struct task *t, const struct ctl_exec *m, struct chan_frame *f, int ret_fds[3]);
/* Makes the log: after init was asked, so that both work at the same time. */
void output_open_log(struct task *t, const struct ctl_exec *m);
/* The process runs; master (taken): its terminal, or -1. 0 or -errno. */
_warn_unused_ int output_started(struct task *t, int master);
/* What it prints from now on also goes to these pipes, which are taken. -EBUSY: somebody has it;
 * -EINVAL: that is not to be had. */
_warn_unused_ int output_share(struct task *t, int fds[2]);
/* The process has ended: takes what it left. */
void output_exited(struct task *t);
/* True if the client that asked for it has everything that it will get. */
bool output_is_delivered(const struct task *t);
/* True if nobody can print into it any more. */
bool output_is_closed(const struct task *t);
/* Closes all that is open; what is still in pipes is lost. */
void output_close(struct task *t);
/* Writes meta.json. */
void output_write_meta(struct task *t);
/* Members of a JSON object: how it ended. */
void output_describe_end(struct jsonout *o, const struct task *t);
/* The files go, for good. */
void output_remove(struct task *t);
/* Bytes of the host's disk. */
uint64_t output_size(const struct task *t);

/* Called by output.c: the client has got all, or a log was closed. */
void task_on_output(struct task *t);

/* --- record.c --- */
/* Writes the record as things are now. */
_warn_unused_ int record_write(struct supervisor *s, struct cloche_err *err);
/* Of a kept sandbox: the same without a caller to tell, now or soon. */
void record_update(struct supervisor *s);
void record_update_soon(struct supervisor *s);

/* Why the sandbox ends; NULL: it does not. */
const char *record_reason_name(const struct supervisor *s);

/* --- recording.c: of a sandbox with a full record; else nothing is done --- */
/* dirs: of logs, of contents (borrowed). */
_warn_unused_ int recording_start(struct supervisor *s, const int dirs[2], struct cloche_err *err);
/* Has it look at the room's files as they are; sandbox_go_on is called when it has. */
_warn_unused_ int recording_look(struct supervisor *s, struct cloche_err *err);
/* note: JSON members, or NULL. */
void recording_exec_started(struct task *t, const char *note);
void recording_exec_failed(struct task *t, const char *why);
/* Sets t->unrecorded until it is on record. */
void recording_exec_ended(struct task *t);
/* The room is dead: the last look, as soon as every command is on record. */
void recording_finish(struct supervisor *s);
/* What is there is not on record yet. */
bool recording_is_awaited(const struct supervisor *s);
bool recording_is_over(const struct supervisor *s);

/* --- sandbox.c: the room's life --- */
/* START has come. Takes m's content; fds (borrowed) are those of START. Failure is reported to the
 * owner here. */
void sandbox_start(struct supervisor *s, struct ctl_start *m, const int *fds);
/* What is recorded was looked at: clients may begin. */
void sandbox_go_on(struct supervisor *s);
/* TERM, then KILL after the grace period; the first reason stays, a shorter grace wins. */
void sandbox_end(struct supervisor *s, enum ctl_reason reason, uint64_t grace_usec);
/* Everything in the room dies now. */
void sandbox_kill(struct supervisor *s, enum ctl_reason reason);
/* The same, and clients are told why. */
void sandbox_fail(struct supervisor *s, const struct cloche_err *err);
/* Writes what is queued towards init. */
void sandbox_flush_init(struct supervisor *s);
/* So much waits for init that no more should be asked of it. */
bool sandbox_init_is_full(const struct supervisor *s);
/* A helper has ended: goes on if that was waited for. */
void sandbox_check_end(struct supervisor *s);

/* --- choose.c: providers --- */
typedef int (*create_fn)(struct supervisor *s, const struct provider *p, struct cloche_err *err);
/* Has the one create the room that START names, or the first that works. */
_warn_unused_ int choose_provider(struct supervisor *s, create_fn create, struct cloche_err *err);

/* --- request.c: what clients ask about the room --- */
void request_stats(struct peer *p);
/* Of STOP for an idle sandbox: true, and refused, if a command runs, or another process that a
 * client waits for. */
bool request_refuse_stop(struct peer *p);
/* Answers with what is known now. */
void request_answer_stats(struct peer *p);
/* False if the client broke the protocol. */
bool request_forward(struct peer *p, struct chan_frame *f);
void request_layers(struct peer *p);
/* False if the client broke the protocol. */
bool request_policy(struct peer *p, struct chan_frame *f);
void forwards_stop(struct supervisor *s);

/* --- sample.c: peaks that the kernel does not keep --- */
/* Looks now and then at what the room uses, as long as it lives. */
void sample_start(struct supervisor *s);

/* --- helpers.c: gateway and broker --- */
/* Starts the broker; *ret_ca_fd is the pipe with the certificates (owned by the caller). config_fd
 * is borrowed. */
_warn_unused_ int helpers_start(
	struct supervisor *s, int config_fd, int *ret_ca_fd, struct cloche_err *err);
/* Has the gateway started when the room first uses its network, or a moment from now. It gets the
 * room's listeners and ours are closed. A failure then ends the sandbox. */
_warn_unused_ int helpers_watch(struct supervisor *s, struct cloche_err *err);
/* Asks the broker for its figures: peers_answer_stats is called when they are there, or when it
 * takes too long. False if nobody can be asked. */
bool helpers_ask_counts(struct supervisor *s);
/* Hands the broker a client's socket (borrowed), over which it will get a new policy. */
_warn_unused_ int helpers_pass_policy(struct supervisor *s, int client, struct cloche_err *err);
/* Ends them: the gateway first, so that the broker can still log what the gateway saw. */
void helpers_stop(struct supervisor *s);
bool helpers_gone(const struct supervisor *s);
/* Waits a moment for a helper's own account of a failure and puts it into err. */
void helpers_explain(struct supervisor *s, struct cloche_err *err);
