/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The client half of the control protocol: starts a sandbox's supervisor or connects to one, has it
 * run processes, and moves their input and output.
 *
 * Threads: a client is one connection. At most one thread at a time is in client_exec,
 * client_finish or another that waits; client_signal, client_stop and client_resize may be called
 * from any thread at any time between client_new and client_free, also from a callback. Nothing
 * here is safe in a signal handler, except client_wake and client_leave.
 *
 * SIGPIPE is never raised: pipes are written if the process blocks or ignores it, and sockets
 * with MSG_NOSIGNAL. */

#include "base/err.h"
#include "ipc/control.h"
#include "loop/loop.h"
#include "provider/spec.h"
#include <stdbool.h>
#include <stdint.h>

struct client;

struct client_start {
	const struct room_spec *room; /* borrowed for client_new. id NULL: one is made up. A NULL
				       * init_path is found by the supervisor */
	bool one_shot, detached;
	bool crowded;      /* not for the supervisor: more would have to be protected than can be */
	bool unfinished;   /* as long as client_complete was not called it goes with this client */
	bool kept;         /* see struct ctl_start; the next five are for such */
	char *const *env;  /* of processes that inherit; borrowed; NULL: none */
	const char *cwd;   /* the same; NULL: "/" */
	uint32_t uid, gid; /* the same */
	uint64_t exec_timeout_usec; /* the same; 0: none */
	uint64_t log_bytes;         /* of each log that are kept; 0: a default */
	const char *config;         /* JSON object for the record; NULL: none */
	const char *provider;       /* one of provider/names.h; NULL: the first */
	const char *name;           /* NULL: none */
	char *const *labels;        /* "key=value", NULL-terminated; NULL: none */
	uint64_t timeout_usec;      /* of the sandbox; 0: none */
	uint64_t grace_usec;        /* between TERM and KILL after a timeout */
	const int *record_dirs;     /* of logs and of contents, for a full record (borrowed for
				     * client_new); NULL: none */
	uint64_t record_limit;      /* bytes of contents; 0: a default */
	enum recording_sync record_sync;
	const char *supervisor; /* path of the program; NULL: found (base/program.h) */
};

/* Starts a supervisor and queues START; does not wait for anything. If room->net is
 * ROOM_NET_GATEWAY, *ret_config_fd is our end of the broker's configuration socket (the caller
 * owns it and speaks ipc/netconf.h on it; it may write at once); otherwise -1. */
_warn_unused_ int client_new(const struct client_start *start, struct client **ret,
	int *ret_config_fd, struct cloche_err *err);

/* Connects to the supervisor of a sandbox that is there: base is the directory of all of them
 * (rundir_open), id a whole id; both borrowed. E_NOT_FOUND if nobody listens. */
_warn_unused_ int client_attach(
	int base, const char *id, struct client **ret, struct cloche_err *err);

/* Ends an attached sandbox that still runs and that we started (without waiting for the end),
 * closes and frees. NULL is fine. Returns NULL. */
struct client *client_free(struct client *c);
DEFINE_CLEANUP(struct client, client_free)

/* The sandbox's id, known from the start on; borrowed until client_free. */
const char *client_id(const struct client *c);
/* Name of the provider, "" until the room is there; borrowed until client_free. */
const char *client_provider(const struct client *c);

/* The connection, borrowed: to poll for its end alone (POLLRDHUP). */
int client_fd(const struct client *c);

/* The loop that runs while a client function waits, for descriptors and timers of the caller's (the
 * broker's configuration channel, a live log): borrowed until client_free. Its callbacks are called
 * in the thread that waits. */
struct loop *client_loop(const struct client *c);
/* From such a callback: stops the sandbox, and the function that waits returns -why->code. */
void client_fail(struct client *c, const struct cloche_err *why);

/* Told of each WARNING (text is a terminated string, without line end). */
void client_on_warning(struct client *c, void (*cb)(void *user, const char *text), void *user);

enum client_input {
	CLIENT_INPUT_NONE,  /* end-of-file at once */
	CLIENT_INPUT_BYTES, /* .bytes (borrowed), then end-of-file */
	CLIENT_INPUT_FD,    /* read from .fd (borrowed) until end-of-file; may be anything */
	CLIENT_INPUT_CALL,  /* .read is asked for more whenever there is room */
};

struct client_io {
	enum client_input input;
	struct str bytes;
	int fd;
	/* Fills at most n bytes: the number, 0 for end-of-file, negative to end the input. Called
	 * from the thread in client_exec; it should not block for long. */
	long (*read)(void *user, char *p, size_t n);
	/* Takes what the process wrote to stream 1 or 2 (a terminal has only 1), at most 64 KiB at
	 * a time, from the thread in client_exec. A negative answer means that the reader is gone:
	 * that stream is closed then, and the process gets SIGPIPE. NULL: thrown away. */
	int (*write)(void *user, int stream, const char *p, size_t n);
	void *user;
	uint64_t output_limit; /* bytes of each stream that are handed on; the rest is read and
				* thrown away. 0: no limit */
	/* If pass_fd[i] is not -1, that descriptor is given to the process as its descriptor i
	 * and nothing is pumped. Only for pipes and the like that the room may have: never a
	 * terminal, never a file of the host. */
	int pass_fd[3];
	/* If not NULL, input from .fd passes it: n bytes at p, if there is room for one more
	 * than n; returns how many they have become, negative to leave the process to itself. */
	long (*filter)(void *user, char *p, size_t n);
};
/* No input, output thrown away. */
#define CLIENT_IO_INIT ((struct client_io){.fd = -1, .pass_fd = {-1, -1, -1}})

struct client_result {
	uint32_t number; /* the process's, in its sandbox; 0 if it was never started */
	bool left;       /* it goes on without us; all below is empty */
	bool signaled;
	int status; /* exit code, or the signal */
	bool timed_out, oom_killed, pids_refused, stopped;
	bool truncated[2]; /* stdout, stderr: output_limit was reached */
	uint64_t bytes[2]; /* that the process wrote (and that were read) */
	uint64_t duration_usec;
};

/* Runs one process and waits for its end. io is borrowed for the call. Returns 0 with *ret filled,
 * or an error: E_COMMAND_NOT_FOUND and E_CANNOT_EXEC if it could not be started, E_NETWORK if
 * gateway or broker failed, E_CANCELLED if the sandbox was stopped before the process started,
 * others if the room could not be made. Processes that live on and hold the pipes never delay
 * it. */
_warn_unused_ int client_exec(struct client *c, const struct exec_spec *spec, struct client_io *io,
	struct client_result *ret, struct cloche_err *err);

/* What client_exec_as shall do. */
struct client_exec {
	const struct exec_spec *spec; /* borrowed; NULL: join process .join */
	uint32_t join;
	bool outputs;  /* of a joined process: io gets what it prints from now on */
	uint8_t flags; /* enum ctl_exec_flags */
	char *note;    /* borrowed: JSON members for a full record; NULL: none */
	bool kept;     /* the sandbox is: the output of a terminal comes by a pipe */
	bool detached; /* return when it has started; io is not used */
};
/* As client_exec. Also returns early, with ret->left, after client_leave. A process that is joined
 * has no output here, unless what->outputs says so: read its log. */
_warn_unused_ int client_exec_as(struct client *c, const struct client_exec *what,
	struct client_io *io, struct client_result *ret, struct cloche_err *err);

/* Called when the process that client_exec_as waits for has started (or was found), in that thread.
 */
void client_on_exec_started(
	struct client *c, void (*cb)(void *user, const struct ctl_exec_started *m), void *user);

/* client_exec_as returns soon and leaves the process running. May be called from anywhere, also
 * before it; holds for one process. */
void client_leave(struct client *c);

/* Asks and waits for the answer; if the request alone was refused its error is returned and the
 * connection is as good as before. Not while client_exec is in progress. */
_warn_unused_ int client_stats(struct client *c, struct ctl_stats *ret, struct cloche_err *err);
/* listener is borrowed. */
_warn_unused_ int client_forward(
	struct client *c, const struct ctl_forward *m, int listener, struct cloche_err *err);
/* Hands socket (borrowed) to the sandbox's broker, for a new policy. */
_warn_unused_ int client_policy(struct client *c, int socket, struct cloche_err *err);
/* Two descriptors, owned by the caller. */
_warn_unused_ int client_layers(
	struct client *c, int *ret_upper, int *ret_lower, struct cloche_err *err);

/* A sandbox that was started with .unfinished stays from now on, whoever goes. */
_warn_unused_ int client_complete(struct client *c, struct cloche_err *err);

/* Waits until *flag, which a callback of the loop sets, is true. */
_warn_unused_ int client_wait_for(struct client *c, const bool *flag, struct cloche_err *err);

/* Waits until the room is there, for a caller that has nothing to run yet. */
_warn_unused_ int client_wait_started(struct client *c, struct cloche_err *err);

/* Waits until the sandbox has ended (ask with client_stop first if it is not one-shot) and says
 * how. 0, or an error if the supervisor died. No process of the sandbox runs any more then; its
 * directories are removed in the next moments. A caller that needs neither usage nor reason of a
 * one-shot sandbox can leave this out: the end comes all the same. */
_warn_unused_ int client_finish(struct client *c, struct ctl_ended *ret, struct cloche_err *err);

/* Sends a signal to the process that client_exec waits for (or to the room). If it has not
 * started yet it is delivered when it has. 0, or -E_NOT_FOUND if there is none. */
int client_signal(struct client *c, int signo, enum ctl_scope scope);

/* Ends the sandbox: TERM to everything, KILL after grace_usec (0: at once). 0, or -E_NOT_FOUND
 * if it has ended already. Does not wait. */
int client_stop(struct client *c, uint64_t grace_usec);
/* Ends a sandbox at once if nothing runs in it, and waits for that; else E_BUSY, as if its
 * supervisor does not answer in two seconds: then it ends when that goes on, if it is idle. All
 * that can be done with the client after that is to free it. */
_warn_unused_ int client_stop_idle(struct client *c, struct cloche_err *err);
/* Ends a sandbox that we start and that is still being made, also if its provider does not
 * answer: whoever waits has E_CANCELLED soon. 0, or -E_NOT_FOUND if it has started or ended. */
int client_give_up(struct client *c);

/* Tells the terminal of the process that client_exec waits for its new size. */
int client_resize(struct client *c, uint16_t rows, uint16_t cols);

/* Makes client_exec call the hook (in its own thread) soon. May be called from a signal handler:
 * the way to turn SIGINT or SIGWINCH into client_stop, client_signal or client_resize. */
void client_wake(struct client *c);
void client_on_wake(struct client *c, void (*cb)(void *user), void *user);
