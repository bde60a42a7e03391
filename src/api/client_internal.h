/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What client.c (the connection) and client_pump.c (input and output) share. */

#include "api/client.h"
#include <poll.h>
#include <pthread.h>

enum { CLIENT_CHUNK = 64 * 1024 };

/* The process that client_exec waits for. */
struct client_run {
	uint32_t exec;
	bool tty, started, ended;
	int err_code; /* EXEC_FAILED came: its code, and the text in err */
	struct cloche_err err;
	struct ctl_exec_exited exited;
	int master; /* the terminal as it arrived, until the pump takes it */
};

struct client {
	/* Guards chan.out, and `current` and `over` for those who only send. chan.in belongs to the
	 * thread that waits. */
	pthread_mutex_t lock;
	struct chan chan;
	uint32_t current; /* process that is waited for, 0: none */
	bool over;        /* nothing can be sent any more */

	pid_t pid; /* the supervisor, until it is reaped */
	bool detached;
	char id[CTL_ID_MAX + 1], provider[CTL_ID_MAX + 1];
	bool started, ended;
	struct ctl_ended end;
	struct cloche_err error; /* what ERROR said */
	uint32_t last_exec;
	struct client_run *run;
	int wake_fd;
	struct client_watch *watches;
	void (*on_warning)(void *user, const char *text);
	void *on_warning_user;
	void (*on_wake)(void *user);
	void *on_wake_user;
	char *chunk; /* CLIENT_CHUNK bytes for output */
	struct pollfd *polls;
	size_t polls_cap;
};

/* One process's streams. */
struct pump {
	struct client_io *io;
	int in_from; /* borrowed descriptor to read from, -1: none */
	int in_to;   /* owned; -1 where the input is closed */
	int out[2];  /* owned; -1 at end-of-file */
	bool tty;
	bool in_asleep;      /* the callback had nothing: wait for client_wake */
	struct str in_bytes; /* what is left of CLIENT_INPUT_BYTES */
	char *in_buf;        /* read and not yet written */
	size_t in_head, in_tail;
	uint64_t bytes[2];
	bool truncated[2];
};

enum { PUMP_POLLS = 4 };

/* Makes the pipes; child ends and what each stdio is go into ret_* (fds to be closed by the caller
 * when sent; -1 where there is none). */
_warn_unused_ int pump_init(struct pump *p, struct client_io *io, bool tty, int ret_child[3],
	enum ctl_stdio ret_stdio[3], struct cloche_err *err);
void pump_done(struct pump *p);
/* The terminal has arrived: takes master. 0 or -errno. */
_warn_unused_ int pump_take_terminal(struct pump *p, int master);
/* Fills PUMP_POLLS entries with what to wait for. */
void pump_prepare(const struct pump *p, struct pollfd *polls);
/* Moves what is ready. chunk: CLIENT_CHUNK bytes. */
void pump_move(struct pump *p, const struct pollfd *polls, char *chunk);
/* client_wake was called: asks a callback again that had nothing. */
void pump_wake(struct pump *p);
/* The process has ended: takes what it left behind, without waiting for others that hold the other
 * ends. */
void pump_drain(struct pump *p, char *chunk);
