/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What client.c (the connection) and client_pump.c (input and output) share. */

#include "client/client.h"
#include <pthread.h>

enum { CLIENT_CHUNK = 64 * 1024 };

/* The process that client_exec waits for. */
struct client_run {
	uint32_t exec;
	bool started, ended;
	bool detached; /* its start is all that is waited for */
	bool left;     /* somebody said that it shall go on without us */
	int err_code;  /* EXEC_FAILED came: its code, and the text in err */
	struct cloche_err err;
	uint32_t number;
	struct ctl_exec_exited exited;
	int input; /* a terminal, or the pipe of its input, as it arrived: until the pump takes it
		    */
};

/* The answer to a request that client_stats and others wait for. */
struct client_reply {
	uint16_t type; /* that answers it */
	bool came;
	int code; /* REFUSED came, and this is the error */
	struct cloche_err err;
	struct ctl_stats stats;
	int fds[2];
};

struct client {
	/* Guards chan.out, and `current` and `over` for those who only send. chan.in belongs to the
	 * thread that waits. */
	pthread_mutex_t lock;
	struct chan chan;
	_Atomic bool leave; /* client_leave was called */
	uint32_t current;   /* process that is waited for, 0: none */
	bool over;          /* nothing can be sent any more */
	bool given_up;      /* client_give_up was called; guarded, too */

	pid_t pid; /* the supervisor, until it is reaped */
	bool detached;
	bool guest; /* connected to one that somebody else started */
	char id[CTL_ID_MAX + 1], provider[CTL_ID_MAX + 1];
	bool started, ended;
	struct ctl_ended end;
	struct cloche_err error; /* what ERROR said */
	uint32_t last_exec;
	struct client_run *run;
	struct client_reply *reply;
	void (*on_exec_started)(void *user, const struct ctl_exec_started *m);
	void *on_exec_started_user;
	int wake_fd;
	bool woken; /* client_wake was called since the last turn */
	struct loop *loop;
	struct loop_io chan_io, wake_io;
	uint32_t chan_came;            /* events of the channel in this turn */
	struct loop_timer leave_timer; /* until then a command that has not begun is waited for */
	bool leave_due;                /* it has fired */
	int failed;                    /* 0, or what client_fail was called with */
	struct cloche_err failure;
	void (*on_warning)(void *user, const char *text);
	void *on_warning_user;
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
	int in_from;         /* borrowed descriptor to read from, -1: none */
	int in_to;           /* owned; -1 if the input is closed */
	int out[2];          /* owned; -1 at end-of-file */
	bool tty;            /* we started it with one: the end of our input is the end of its */
	bool tty_pipe;       /* its output comes by a pipe, the master is for input alone */
	bool from_terminal;  /* our input is one too, which only ends by vanishing */
	bool left;           /* the filter said so */
	bool from_always;    /* our input is a file: it can be read at any time */
	bool in_asleep;      /* the callback had nothing: wait for client_wake */
	struct str in_bytes; /* what is left of CLIENT_INPUT_BYTES */
	char *in_buf;        /* read and not yet written */
	size_t in_head, in_tail;
	uint64_t bytes[2];
	bool truncated[2];
};

/* Makes the pipes; child ends and what each stdio is go into ret_* (fds to be closed by the caller
 * when sent; -1 if there is none). tty_pipe: as in struct pump. */
_warn_unused_ int pump_init(struct pump *p, struct client_io *io, bool tty, bool tty_pipe,
	int ret_child[3], enum ctl_stdio ret_stdio[3], struct cloche_err *err);
/* For a process that is joined: its input may arrive with pump_take_input. child: NULL, or if
 * the ends of pipes for its output go ([1] and [2]). */
_warn_unused_ int pump_init_joined(
	struct pump *p, struct client_io *io, int child[3], struct cloche_err *err);
void pump_done(struct pump *p);
/* The terminal has arrived, or the input of a joined process: takes fd. 0 or -errno. */
_warn_unused_ int pump_take_input(struct pump *p, int fd);
/* Has the loop wait for what the streams can do next. 0 or -errno. */
_warn_unused_ int pump_watch(struct pump *p, struct loop *l);
/* Moves what is ready. chunk: CLIENT_CHUNK bytes. */
void pump_move(struct pump *p, char *chunk);
/* client_wake was called: asks a callback again that had nothing. */
void pump_wake(struct pump *p);
/* The process has ended: takes what it left behind, without waiting for others that hold the other
 * ends. */
void pump_drain(struct pump *p, char *chunk);

/* --- client.c --- */

/* With the lock held: sends what is queued; the reader waits for room if it does not fit. */
int client_flush_locked(struct client *c);
void client_on_woken(struct loop_io *io, uint32_t events);
void client_on_chan(struct loop_io *io, uint32_t events);
/* Waits once for anything and handles it. p: NULL, or the streams to move. */
_warn_unused_ int client_turn(struct client *c, struct pump *p, struct cloche_err *err);
/* The error if the sandbox is over and what was asked for was never done. */
int client_never_ran(struct client *c, struct cloche_err *err);
/* The error if sending failed with r; a START that failed is the better reason. */
int client_broken(struct client *c, int r, struct cloche_err *err);
