/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the client: client.c (the connection), client_start.c, client_exec.c,
 * client_pump.c (input and output), client_request.c and client_watch.c. */

#include "client/client.h"
#include <pthread.h>

enum { CLIENT_CHUNK = 64 * 1024 };

/* The process that client_exec waits for. */
struct client_run {
	const struct client_exec *what;
	uint32_t exec;
	uint64_t began;
	bool started, ended;
	bool stopped; /* EXEC_STOPPED came, and the caller was not told yet */
	int err_code; /* EXEC_FAILED came: its code, and the text in err */
	struct cloche_err err;
	struct client_result result; /* without what the pump counts */
	int input; /* a received terminal or input pipe, until the pump takes it */
};

/* The answer to a request that client_stats and others wait for. */
struct client_reply {
	uint16_t type; /* type of the answer */
	bool came;
	int code; /* REFUSED came, and this is the error */
	struct cloche_err err;
	struct ctl_stats_now stats;
	int fds[2];
};

struct client {
	/* Guards chan.out, and `current` and `over` for threads that only send. chan.in belongs to
	 * the thread that waits. */
	pthread_mutex_t lock;
	struct chan chan;
	_Atomic bool leave; /* client_leave was called */
	uint32_t current;   /* process that is waited for, 0: none */
	bool over;          /* nothing can be sent any more */
	bool given_up;      /* client_give_up was called; guarded, too */

	pid_t pid; /* the supervisor, until it is reaped */
	bool detached;
	bool guest; /* connected to a sandbox that another client started */
	char id[CTL_ID_MAX + 1], provider[CTL_ID_MAX + 1], isolation[CTL_ID_MAX + 1];
	bool started, ended;
	struct ctl_ended end;
	struct cloche_err error; /* what ERROR said */
	uint32_t last_exec;
	struct client_run *run;
	struct client_reply *reply;
	int wake_fd;
	bool woken; /* client_wake was called since the last turn */
	struct loop *loop;
	struct loop_io chan_io, wake_io;
	uint32_t chan_came;            /* events of the channel in this turn */
	struct loop_timer leave_timer; /* how long to wait for a command that has not started */
	bool leave_due;                /* it has fired */
	struct loop_timer watch;       /* for the next look at the supervisor */
	unsigned stopped;              /* how many looks in a row found it stopped */
	bool brings;                   /* the supervisor said that the end takes long */
	bool ending;                   /* somebody waits for the end that he has asked for */
	int failed;                    /* 0, or what client_break_off was called with */
	struct cloche_err failure;
	void (*on_warning)(const char *text, void *user);
	void *on_warning_user;
	struct {
		char *text, *mark; /* NULL: nothing */
		void (*fn)(const char *text, void *user);
		void *user;
	} once;
	void (*on_wake)(void *user);
	void *on_wake_user;
	char *chunk; /* CLIENT_CHUNK bytes for output */
};

enum { PUMP_IN_FROM, PUMP_IN_TO, PUMP_OUT, PUMP_STREAMS = PUMP_OUT + 2 };

struct pump_stream {
	struct loop_io io;
	uint32_t came; /* events in this turn */
};

/* One process's streams. */
struct pump {
	struct pump_stream streams[PUMP_STREAMS];
	struct client_io *io;
	int in_from;        /* borrowed descriptor to read from, -1: none */
	int in_to;          /* owned; -1 if the input is closed */
	int out[2];         /* owned; -1 at end-of-file */
	bool tty;           /* we started it with a terminal: the end of our input ends its input */
	bool tty_pipe;      /* output comes through a pipe; the master is only for input */
	bool from_terminal; /* our input is a terminal too, which ends only by vanishing */
	bool left;          /* the filter asked to leave the process running */
	bool from_always;   /* our input is a file: it can be read at any time */
	struct str in;      /* what is to be written next */
	char *in_buf;       /* for what is read from in_from */
	int in_errno;       /* why the input could not be read to its end; 0: it could */
	uint64_t bytes[2];  /* that were read of each output */
	bool truncated[2];
	bool sigpipe_pending; /* before we began: it is not of our making */
};

/* Make the pipes. ret_child gets the child's ends (the caller closes them once they are sent), and
 * ret_stdio the kind of each; those of none stay as they are. tty_pipe: as in struct pump. */
_warn_unused_ int pump_init(struct pump *p, struct client_io *io, bool tty, bool tty_pipe,
	int ret_child[3], enum ctl_stdio ret_stdio[3], struct cloche_err *err);
/* The same for a joined process, whose input may arrive with pump_take_input. child: NULL, or gets
 * the ends of the pipes for its output in [1] and [2]. */
_warn_unused_ int pump_init_joined(
	struct pump *p, struct client_io *io, int child[3], struct cloche_err *err);
void pump_done(struct pump *p);
/* Discard a SIGPIPE that is blocked and pending. */
void pump_forget_sigpipe(void);
/* Take fd, the terminal or the input of a joined process. Return 0 or -errno. */
_warn_unused_ int pump_take_input(struct pump *p, int fd);
/* Make the loop wait until a stream is ready. Return 0 or -errno. */
_warn_unused_ int pump_watch(struct pump *p, struct loop *l);
/* Move what is ready. chunk: CLIENT_CHUNK bytes. */
void pump_move(struct pump *p, char *chunk);
/* After the process has ended: read what it left in the pipes, without waiting for other processes
 * that hold the other ends. */
void pump_drain(struct pump *p, char *chunk);
/* After a process with a terminal was stopped: pass on what it has printed. */
void pump_settle(struct pump *p, char *chunk);

/* --- client.c --- */

/* With the lock held: send what is queued. If it does not fit, the reader waits for room and sends
 * the rest. */
int client_flush_locked(struct client *c);
void client_on_woken(struct loop_io *io, uint32_t events);
void client_on_chan(struct loop_io *io, uint32_t events);
/* Wait once for any event and handle it. p: NULL, or the streams to move. */
_warn_unused_ int client_turn(struct client *c, struct pump *p, struct cloche_err *err);
/* Take the error with which a callback called client_break_off() or client_fail(); return its
 * negated code, or 0. */
_warn_unused_ int client_take_failure(struct client *c, struct cloche_err *err);
/* While somebody waits: look now and then whether the supervisor is stopped (client_watch.c). */
void client_watch(struct client *c);
/* Set the error for a request that was never done because the sandbox is over. */
int client_never_ran(struct client *c, struct cloche_err *err);
/* Set the error for a send that failed with r. If START failed, that is the better reason. */
int client_broken(struct client *c, int r, struct cloche_err *err);
