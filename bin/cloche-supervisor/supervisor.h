/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of the supervisor share: one sandbox, its clients, its processes, its helpers.
 * One thread, one loop; everything hangs off struct supervisor. */

#include "base/hash.h"
#include "ipc/control.h"
#include "ipc/helper.h"
#include "ipc/roomctl.h"
#include "loop/loop.h"
#include "manager/own.h"
#include "provider/provider.h"
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
	uint32_t last_exec;
	struct loop_job bury;
};

/* A process of the room that a client asked for. */
struct task {
	UT_hash_handle hh;
	uint32_t number; /* ours, towards init */
	struct supervisor *sup;
	struct peer *peer; /* NULL where the client is gone */
	uint32_t exec;     /* the client's number */
	bool tty, started, timed_out;
	uint64_t timeout_usec, started_at;
	struct loop_timer timer; /* its deadline, then its KILL */
};

/* Gateway or broker. */
struct helper {
	const char *name;
	struct supervisor *sup;
	pid_t pid;
	int pidfd;
	struct chan chan;
	bool chan_open;
	bool ready; /* it said so */
	struct loop_io io, death;
	struct cloche_err err; /* what it said with FAILED */
};

enum { HELPER_BROKER, HELPER_GATEWAY, HELPERS_N };

/* A listener of the room, watched until the gateway has it. */
struct knock {
	struct supervisor *sup;
	struct loop_io io;
};

struct supervisor {
	struct loop *loop;
	enum sup_state state;
	struct peer *peers;
	struct loop_io listener, signals;
	struct loop_timer late; /* work that no start shall wait for */
	struct loop_job after_start, finish;

	/* from START */
	struct ctl_start start;
	struct room_spec spec;

	struct sandbox_dir dir;
	uint64_t created_real, started_real, ended_real; /* 0: not yet */
	char *failure;                                   /* ERROR's message */
	struct room_usage usage;                         /* at the end */
	struct room *room;
	struct chan init; /* open where init_open */
	bool init_open, ready;
	struct loop_io init_io, room_io;
	bool room_dead;
	struct task *tasks;
	uint32_t last_number, first_number;

	struct helper helpers[HELPERS_N];
	/* Until the gateway starts: its end of the socket to the broker, or -1; what starts it. */
	int gateway_net;
	struct knock knocks[HELPER_SOCKETS];
	struct loop_timer gateway_due;
	struct loop_timer helpers_timer;

	enum ctl_reason reason;
	bool stopped, timed_out;
	uint64_t oom_kills_seen;
	bool pids_refused_seen;
	uint64_t kill_at;
	struct loop_timer grace, deadline;
	pid_t sweeper; /* child that cleans up after crashes, or 0 */
};

/* --- peer.c: clients --- */
/* Takes fd. */
_warn_unused_ int peer_add(struct supervisor *s, int fd, bool owner);
/* Callback of s->listener: another client. */
void peer_accept(struct loop_io *io, uint32_t events);
/* Writes what is queued; a client that does not read or is gone is dropped. */
void peer_flush(struct peer *p);
/* To every client that is up. */
void peers_warning(struct supervisor *s, struct str text);
void peers_error(struct supervisor *s, const struct cloche_err *err);
void peers_started(struct supervisor *s);
/* Tells all that it is over, waits a moment for slow readers, closes all. */
void peers_ended(struct supervisor *s, const struct ctl_ended *m);

/* --- task.c: processes --- */
/* fds: those that come along, in order (borrowed). False where the client broke the protocol. */
bool task_exec(struct peer *p, const struct ctl_exec *m, struct chan_frame *f);
void task_signal(struct peer *p, const struct ctl_signal *m);
void task_resize(struct peer *p, const struct ctl_resize *m);
/* What init says; false where it lies. */
bool task_on_frame(struct supervisor *s, struct chan_frame *f);
/* The client is gone: its processes go on, nobody is told. */
void tasks_orphan(struct supervisor *s, const struct peer *p);
/* The room is dead: reports every process that is left as killed. */
void tasks_end(struct supervisor *s, bool oom_killed);

/* --- sandbox.c: the room's life --- */
/* START has come. Takes m's content; config_fd (borrowed) is the broker's, or -1. Failure is
 * reported to the owner here. */
void sandbox_start(struct supervisor *s, struct ctl_start *m, int config_fd);
/* TERM, then KILL after the grace period; the first reason stays, a shorter grace wins. */
void sandbox_end(struct supervisor *s, enum ctl_reason reason, uint64_t grace_usec);
/* Everything in the room dies now. */
void sandbox_kill(struct supervisor *s, enum ctl_reason reason);
/* The same, and clients are told why. */
void sandbox_fail(struct supervisor *s, const struct cloche_err *err);
/* Writes what is queued towards init. */
void sandbox_flush_init(struct supervisor *s);
/* A helper has ended: goes on where that was waited for. */
void sandbox_check_end(struct supervisor *s);

/* --- record.c --- */
/* Writes the record as things are now. */
_warn_unused_ int record_write(struct supervisor *s, struct cloche_err *err);

/* --- helpers.c: gateway and broker --- */
/* Starts the broker; *ret_ca_fd is the pipe with the certificates (owned by the caller). config_fd
 * is borrowed. */
_warn_unused_ int helpers_start(
	struct supervisor *s, int config_fd, int *ret_ca_fd, struct cloche_err *err);
/* Has the gateway started when the room first uses its network, or a moment from now. It gets the
 * room's listeners and ours are closed. A failure then ends the sandbox. */
_warn_unused_ int helpers_watch(struct supervisor *s, struct cloche_err *err);
/* Ends them: the gateway first, so that the broker can still log what the gateway saw. */
void helpers_stop(struct supervisor *s);
bool helpers_gone(const struct supervisor *s);
/* Waits a moment for a helper's own account of a failure and puts it into err. */
void helpers_explain(struct supervisor *s, struct cloche_err *err);
