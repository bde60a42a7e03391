/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The client half of the control protocol: starts a sandbox's supervisor or connects to one, has it
 * run processes, and moves their input and output.
 *
 * Threads: a client is one connection. At most one thread at a time may be in client_exec,
 * client_finish or another function that waits. client_signal, client_stop and client_resize may be
 * called from any thread at any time between client_new and client_free, also from a callback.
 * Nothing here is safe in a signal handler, except client_wake and client_leave.
 *
 * SIGPIPE is never raised: client_exec blocks it in its thread while it writes to pipes, and
 * sockets use MSG_NOSIGNAL. */

#include "base/err.h"
#include "ipc/control.h"
#include "loop/loop.h"
#include "provider/spec.h"
#include <stdbool.h>
#include <stdint.h>

struct client;

struct client_start {
	struct ctl_start m; /* borrowed for client_new, which sets version, id, gateway, recorded
			     * and room itself */
	const struct room_spec *room; /* borrowed for client_new. If its id is NULL, one is
				       * generated; if init_path is NULL, the supervisor finds it */
	const int *record_dirs; /* directories of logs and of contents, for a full record; borrowed
				 * for client_new; NULL: none */
	const int *login_dirs;  /* one for each of m.logins; borrowed for client_new */
};

/* Start a supervisor and queue START; do not wait for anything. If room->net is
 * ROOM_NET_GATEWAY, *ret_config_fd is our end of the broker's configuration socket (the caller
 * owns it and speaks ipc/netconf.h on it; it may write at once); otherwise -1. */
_warn_unused_ int client_new(const struct client_start *start, struct client **ret,
	int *ret_config_fd, struct cloche_err *err);

/* Connect to the supervisor of a running sandbox. base is the directory of all sandboxes
 * (rundir_open), id a complete id; both are borrowed. E_NOT_FOUND if no supervisor listens. */
_warn_unused_ int client_attach(
	int base, const char *id, struct client **ret, struct cloche_err *err);

/* Close the connection and free the client. A sandbox that we started and that is not detached ends
 * then, but this does not wait for its end. NULL is fine. Return NULL. */
struct client *client_free(struct client *c);
DEFINE_CLEANUP(struct client, client_free)

/* Return the sandbox's id, which is known from the start. Borrowed until client_free. */
const char *client_id(const struct client *c);
/* Return the name of the provider, or "" until the room has started. Borrowed until client_free. */
const char *client_provider(const struct client *c);
/* The same for what the room gives: "sandbox", "landlock" or "none". */
const char *client_isolation(const struct client *c);

/* Return the connection, borrowed, only to poll for its end (POLLRDHUP). */
int client_fd(const struct client *c);

/* Return the loop that runs while a client function waits, borrowed until client_free. The caller
 * may add its own descriptors and timers (the broker's configuration channel, a live log).
 * Callbacks are called in the thread that waits. */
struct loop *client_loop(const struct client *c);
/* From such a callback: make the waiting function return -why->code. The sandbox goes on. */
void client_break_off(struct client *c, const struct cloche_err *why);
/* The same, but stop the sandbox, too. */
void client_fail(struct client *c, const struct cloche_err *why);

/* Call cb for each WARNING. text is a terminated string without a line end. */
void client_on_warning(struct client *c, void (*cb)(const char *text, void *user), void *user);

/* When the room has started: tell fn this text (copied), unless a text with this mark (likewise, a
 * file's name) was told before, or the room cannot hide files. */
_warn_unused_ int client_tell_hidden(struct client *c, const char *text, const char *mark,
	void (*fn)(const char *text, void *user), void *user, struct cloche_err *err);

enum client_input {
	CLIENT_INPUT_NONE,  /* end-of-file at once */
	CLIENT_INPUT_BYTES, /* .bytes (borrowed), then end-of-file */
	CLIENT_INPUT_FD,    /* .fd (borrowed, of any type) is read until end-of-file */
	/* .fd (borrowed) itself is given to the process. Only for sockets and the like that the
	 * room may have: never a terminal, never a file of the host. */
	CLIENT_INPUT_PASS,
};

struct client_io {
	enum client_input input;
	struct str bytes;
	int fd;
	/* Take what the process wrote to stream 1 or 2 (a terminal has only 1), at most 64 KiB at a
	 * time. Called from the thread in client_exec. If it returns a negative value, the stream
	 * is closed and the process gets SIGPIPE. NULL: output is discarded. */
	int (*write)(void *user, int stream, const char *p, size_t n);
	void *user;
	uint64_t output_limit; /* bytes of each stream that are passed on; the rest is read and
				* discarded. 0: no limit */
	/* If not NULL, filters input from .fd: n bytes at p, with room for n + 1. Return the new
	 * number of bytes, or a negative value to leave the process running. */
	long (*filter)(void *user, char *p, size_t n);
	/* If not NULL, called when nothing more is read from .fd. */
	void (*input_ended)(void *user);
};
/* No input, output thrown away. */
#define CLIENT_IO_INIT ((struct client_io){.fd = -1})

struct client_result {
	uint32_t number; /* of the process in its sandbox; 0 if it was never started */
	bool left;       /* the process goes on without us; all members below are empty */
	struct ctl_exec_exited end;
	bool truncated[2]; /* stdout, stderr: output_limit was reached */
	int input_errno;   /* why the input could not be read to its end; 0: it could */
};

/* What client_exec is to do. */
struct client_exec {
	const struct exec_spec *spec; /* borrowed; NULL: join process .join */
	uint32_t join;
	bool outputs;     /* of a joined process: io gets what it prints from now on */
	uint8_t flags;    /* enum ctl_exec_flags */
	uint8_t code_arg; /* see struct ctl_exec */
	char *note;       /* borrowed: JSON members for a full record; NULL: none */
	bool kept;        /* the sandbox is kept: a terminal's output comes through a pipe */
	bool detached;    /* return when it has started; io is not used */
	/* What its process group gets if the wait is cancelled (job/job.h); 0: nothing. */
	int cancel_signal;
	/* How long to wait for its start, for what is nobody's command; 0: for ever. */
	uint64_t start_usec;
	/* NULL, or called in the waiting thread when it has started (or was found). */
	void (*started)(void *user, const struct ctl_exec_started *m);
	/* The same when it was stopped, after all output that it printed before. */
	void (*stopped)(void *user);
	void *user;
};
/* Run one process and wait for its end, or, with ret->left set, until client_leave. io is borrowed
 * for the call. Return 0 and fill *ret, or an error: E_COMMAND_NOT_FOUND and E_CANNOT_EXEC if it
 * could not be started, E_NETWORK if gateway or broker failed, E_CANCELLED if the sandbox was
 * stopped before the process started, others if the room could not be made. Other processes that
 * live on and hold the pipes never delay it. A joined process has no output here unless
 * what->outputs is set: read its log instead. */
_warn_unused_ int client_exec(struct client *c, const struct client_exec *what,
	struct client_io *io, struct client_result *ret, struct cloche_err *err);

/* Make client_exec return soon and leave the process running. May be called from anywhere, also
 * before it; stays in force for this client. */
void client_leave(struct client *c);

/* Send a request and wait for the answer. If only the request was refused, return its error; the
 * connection can still be used. Not while client_exec is in progress. */
_warn_unused_ int client_stats(struct client *c, struct ctl_stats_now *ret, struct cloche_err *err);
/* listener is borrowed. */
_warn_unused_ int client_forward(
	struct client *c, const struct ctl_forward *m, int listener, struct cloche_err *err);
/* Pass socket (borrowed) to the sandbox's broker, for a new policy. */
_warn_unused_ int client_policy(struct client *c, int socket, struct cloche_err *err);
/* Have files copied both ways. lines (borrowed): a pipe for the lines of cloche-sync, which is
 * closed when the answer comes. */
_warn_unused_ int client_sync(struct client *c, int lines, struct cloche_err *err);
/* Return two descriptors, owned by the caller. */
_warn_unused_ int client_layers(
	struct client *c, int *ret_upper, int *ret_lower, struct cloche_err *err);

/* Keep a sandbox that was started with .unfinished from now on, even if this client goes. Fails if
 * it has ended. */
_warn_unused_ int client_complete(struct client *c, struct cloche_err *err);

/* Wait until *flag, which a callback of the loop sets, is true. */
_warn_unused_ int client_wait_for(struct client *c, const bool *flag, struct cloche_err *err);

/* Wait until the room has started, for callers that have nothing to run yet. */
_warn_unused_ int client_wait_started(struct client *c, struct cloche_err *err);

/* Wait until the sandbox has ended and tell how. Call client_stop first if it is not one-shot.
 * Return 0, or an error if the supervisor died. Then no process of the sandbox runs any more, and
 * its directories are removed shortly after. A caller that needs neither the usage nor the reason
 * of a one-shot sandbox can skip this: the sandbox ends anyway. */
_warn_unused_ int client_finish(struct client *c, struct ctl_ended *ret, struct cloche_err *err);

/* Send a signal to the process that client_exec waits for (or to the room). If it has not
 * started yet it is delivered when it has. 0, or -E_NOT_FOUND if there is none. */
int client_signal(struct client *c, int signo, enum ctl_scope scope);

/* End the sandbox: TERM to everything, KILL after grace_usec (0: at once). 0, or -E_NOT_FOUND
 * if it has ended already. Do not wait. */
int client_stop(struct client *c, uint64_t grace_usec);
/* Do this, and wait until nothing in it runs. E_BUSY if the supervisor does not answer in time. The
 * client can only be freed afterwards. */
_warn_unused_ int client_end(struct client *c, uint64_t grace_usec, struct cloche_err *err);
/* End a sandbox at once if nothing runs in it, and wait for the end. E_BUSY if something runs, or
 * if the supervisor does not answer within two seconds; in that case it still ends the sandbox when
 * it continues, if the sandbox is idle. The client can only be freed afterwards. */
_warn_unused_ int client_stop_idle(struct client *c, struct cloche_err *err);
/* End a sandbox that we are starting, even if its provider does not answer. The waiting function
 * soon returns E_CANCELLED. Return 0, or -E_NOT_FOUND if the sandbox has started or ended. */
int client_give_up(struct client *c);

/* Tell the terminal of the process that client_exec waits for its new size. */
int client_resize(struct client *c, uint16_t rows, uint16_t cols);

/* Make client_exec call the hook (in its own thread) soon. May be called from a signal handler:
 * the way to turn SIGINT or SIGWINCH into client_stop, client_signal or client_resize. */
void client_wake(struct client *c);
void client_on_wake(struct client *c, void (*cb)(void *user), void *user);
/* For a wait outside of these functions: a descriptor, borrowed, that is readable after
 * client_wake(), until it is taken. The hook is then not called for it. */
int client_wake_fd(const struct client *c);
void client_take_wake(struct client *c);
