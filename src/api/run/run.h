/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The handle of a run, and what a task needs from it beyond the public functions. */

#include "api/run/code.h"
#include "api/start/network.h"
#include "base/buf.h"
#include "client/client.h"
#include "sandbox/sandbox.h"
#include "workspace/heard.h"
#include <cloche/run.h>
#include <stdatomic.h>
#include <termios.h>

enum run_where {
	RUN_OWN,    /* in a sandbox of its own, made from sb */
	RUN_IN,     /* in an existing sandbox */
	RUN_JOINED, /* joins a command that another client started there */
};

/* Of each stream at most this much is kept, if there is no function that takes it. */
enum { RUN_KEEP_MAX = 256 << 20 };

/* The caller's terminal while a command in the room has its own. */
struct terminal {
	bool open;
	int fd;
	struct termios saved;
};

struct cloche_run {
	enum run_where where;
	cloche_sandbox *sb;         /* RUN_OWN */
	struct cloche_instance *in; /* RUN_IN, RUN_JOINED: a copy of the handle */
	uint32_t join;              /* RUN_JOINED: its number; 0: look for it */
	char **argv;
	int with_it;       /* a descriptor that is closed with the run; -1: none */
	struct code *code; /* argv is an interpreter with its driver; NULL: an ordinary command */
	char *note;        /* JSON members about the command for a full record; NULL: none */
	char **env;        /* for this command; overrides the sandbox's */
	char *cwd;
	bool has_user; /* uid and gid were set */
	uint32_t uid, gid;
	bool has_timeout;
	uint64_t timeout_ms;
	bool detached, keep_input;
	bool held;           /* the command waits for the network to be accepted */
	uint64_t log_tail;   /* bytes at the end of its log; UINT64_MAX: all */
	char detach_keys[2]; /* [0] is 0: none */
	bool detach_begun;   /* the first of them was typed */

	struct client_io io;
	struct buf stdin_data;
	/* cloche_run_write_input(): a socket pair, -1 if closed; io.fd is the command's end. */
	bool input_streams;
	int input, input_command;
	bool input_full;         /* somebody waits for room */
	struct loop_io input_io; /* watches for it */
	int tty_fd;              /* -1: none */
	struct terminal terminal;
	cloche_output_fn on_output;
	void *on_output_user;
	cloche_warning_fn on_warning;
	void *on_warning_user;
	cloche_start_fn on_start;
	void *on_start_user;
	cloche_network_fn on_network;
	void *on_network_user;
	cloche_network_log *network_log; /* NULL: nobody is told of it */
	struct loop_io network_io;       /* watches it */

	_Atomic(struct client *) client;
	atomic_uint stops;     /* number of stop requests */
	atomic_ullong signals; /* bit n: signal n waits to be sent */
	atomic_bool leave;
	struct network network;
	struct loop_timer kill_timer; /* fires if TERM has not ended the command in an instance */
	struct loop_io log_io;        /* RUN_JOINED */
	struct cloche_log *log;
	uint64_t log_at;

	atomic_bool executed, over; /* cloche_run_execute() was called; it has returned */
	struct client_result result;
	struct ctl_ended ended;
	uint64_t lasted_usec; /* RUN_OWN: from before the sandbox was made to after its end */
	struct buf kept[2];   /* output, if there is no callback for it */
	struct heard heard;   /* RUN_OWN: in standard error, or on the terminal */
	char start_failure[1024];
	cloche_result told;
	int start_exit; /* 126 or 127 if the command did not start, else 0 */
};

/* Like cloche_run_new, but takes sb (also on failure). argv is copied. */
int run_new_take(cloche_sandbox *sb, char *const *argv, cloche_run **ret, struct cloche_err *err);

/* Pass on a piece of output of a run (user), after taking results of code out of it. Return 0 or a
 * negative value. */
int run_take_output(void *user, int stream, const char *p, size_t n);
/* The same for output that has no results of code in it. */
int run_keep_output(cloche_run *run, int stream, const char *p, size_t n);
/* Output could not be taken (r is negative): make the run fail, as what is lost must not look like
 * what was never printed. Return r. */
int run_lose_output(cloche_run *run, int r);
/* End the output. */
_warn_unused_ int run_end_output(cloche_run *run, struct cloche_err *err);

/* Fill in the command that a run starts, in its own or in an existing sandbox. */
_warn_unused_ int run_make_spec(cloche_run *run, struct exec_spec *ret, struct cloche_err *err);

/* Execute a call into a context (run_context.c). */
_warn_unused_ int run_execute_context(
	cloche_run *run, struct client_result *ret, struct cloche_err *err);

/* Join a process (run_execute.c executes the other runs). */
_warn_unused_ int run_execute_joined(
	cloche_run *run, struct client_result *ret, struct cloche_err *err);

/* Write what is known now to run->told. */
void run_tell(cloche_run *run);

/* Make the client's loop watch for room in the input if somebody waits for it (run_input.c). */
void run_watch_input(cloche_run *run);
/* Close both ends. */
void run_drop_input(cloche_run *run);
/* Tell the caller of the network log of the sandbox, if it wants that (run_network.c). */
void run_watch_network(cloche_run *run);
/* After the sandbox has ended: tell the rest. */
void run_end_network(cloche_run *run);
void run_drop_network(cloche_run *run);
/* Take the client. From here on, requests from other threads reach it. */
void run_begin(cloche_run *run, struct client *client);
/* Do, in the executing thread, what other threads have asked for. */
void run_on_wake(void *user);
/* The command was stopped: stop too, and continue it when we are continued. */
void run_on_stopped(void *user);
/* The part of it for signals: send them to the command's process group. */
void run_send_signals(cloche_run *run);
DEFINE_CLEANUP(cloche_run, cloche_run_free)

/* --- terminal.c --- */

/* Put fd into raw mode and let SIGWINCH wake the client. Do nothing if fd is not a terminal. */
void terminal_open(struct terminal *t, int fd, struct client *client);
/* Restore everything. Do nothing if it was not opened. */
void terminal_close(struct terminal *t);
/* If it is open: give it back to who started us, stop as Ctrl-Z stops us, and take it again when we
 * are continued, unless *told_to_end is not zero then. */
void terminal_suspend(struct terminal *t, struct client *client, const atomic_uint *told_to_end);
/* The caller's variables that a command on a terminal has by default. Return 0 or -ENOMEM. */
_warn_unused_ int terminal_variables(char ***ret);
/* Pass on the current size. */
void terminal_resized(struct terminal *t, struct client *client);
/* Return the size of a terminal, or 24 by 80 if it is not known. */
void terminal_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);
