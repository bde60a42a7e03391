/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a sandbox's supervisor and its clients.
 *
 * The first client (the owner) is the program that started the supervisor; its channel is
 * descriptor 3. Others connect to control.sock in the sandbox's directory and speak the same, save
 * that they begin with ATTACH where the owner begins with START. One process may be started over
 * each connection at a time or many; handles of processes are the client's own, per connection,
 * rise, and are never used twice. A process also has a number, the sandbox's own from 1 on, by
 * which other clients can JOIN it and its log is found.
 *
 * What a client may send, by the state of its connection (anything else ends the connection, and
 * with the owner's connection an attached sandbox):
 *
 *   state       START  ATTACH  EXEC  JOIN  SIGNAL  RESIZE  STOP  STATS  FORWARD  LAYERS  POLICY
 *   new owner   ->up   -       -     -     -       -       -     -      -        -       -
 *   new guest   -      ->up    -     -     -       -       -     -      -        -       -
 *   up          -      -       yes   yes   yes     yes     yes   yes    yes      yes     yes
 *   ended       -      -       (all ignored: the client could not know)
 *
 * Of too many guests those that come last are answered with ERROR: some of them when they ATTACH,
 * others, which may still STOP, at anything else. A guest that does not ATTACH soon is dropped.
 *
 * Nothing is waited for: START and EXEC can be sent together. Where the room cannot be made, ERROR
 * and then ENDED answer both. The supervisor sends, in this order:
 *
 *   WARNING...  STARTED | ERROR
 *   per process: EXEC_STARTED, EXEC_EXITED  |  EXEC_FAILED
 *   per request: STATS_NOW | FORWARDED | LAYERS_ARE | POLICY_PASSED | REFUSED, in the order of
 *   the requests
 *   ERROR (the network or the room broke; everything in it is dead)
 *   ENDED, then it closes.
 *
 * In a kept sandbox the output of processes goes through the supervisor, which copies it to the
 * descriptors that the client gave and into a log (see RUNDIR_EXECS in ipc/rundir.h), unless
 * EXEC says CTL_EXEC_RAW; in any other the client's descriptors go straight to the process.
 *
 * A process that runs when the room ends is reported with EXEC_EXITED before ENDED. In a one-shot
 * sandbox the room ends with its first process (or with its failure to start), at once, whoever
 * else is in it. */

#include "ipc/chan.h"
#include "ipc/exec.h"
#include "ipc/wire.h"

enum {
	CTL_VERSION = 2,
	CTL_FD = 3, /* the owner's channel in the supervisor */
	CTL_MAX_PAYLOAD = EXEC_MAX_BYTES + 512 * 1024,
	CTL_MAX_TEXT = 4096,
	CTL_MAX_ROOM = 512 * 1024, /* encoded room */
	CTL_MAX_LABELS = 64,
	CTL_MAX_CONFIG = 64 * 1024,
	CTL_ID_MAX = 64,
	CTL_DEFAULT_GRACE_USEC = 5 * 1000 * 1000,
};

enum ctl_frame {
	/* client -> supervisor */
	CTL_START =
		1,   /* struct ctl_start; 1 fd where .gateway: the broker's configuration socket */
	CTL_ATTACH,  /* u32 version */
	CTL_EXEC,    /* struct ctl_exec; an fd for each stdio that says CTL_STDIO_FD, in order */
	CTL_SIGNAL,  /* struct ctl_signal */
	CTL_RESIZE,  /* struct ctl_resize */
	CTL_STOP,    /* u64 grace in microseconds between TERM and KILL; 0: KILL at once.
		      * A second STOP (or a shorter one) shortens the first */
	CTL_JOIN,    /* u32 exec (a fresh handle of this connection), u32 number: from now on the
		      * handle stands for that process: SIGNAL, RESIZE and EXEC_EXITED. Answered as
		      * EXEC; a process that has ended already is answered with both frames */
	CTL_STATS,   /* nothing */
	CTL_FORWARD, /* struct ctl_forward; 1 fd: a socket that listens on the host */
	CTL_LAYERS,  /* nothing */
	CTL_POLICY,  /* 1 fd: a connected unix stream socket, for the broker alone: over it comes a
		      * new policy, and goes the answer (ipc/netconf.h) */
	/* supervisor -> client */
	CTL_WARNING = 32,  /* str text: a limit that best effort let pass, ... */
	CTL_STARTED,       /* struct ctl_started */
	CTL_ERROR,         /* error object (wire_put_err) */
	CTL_EXEC_STARTED,  /* struct ctl_exec_started; at most 1 fd. Of a terminal: its master, for
			    * input and, where nothing else reads it (not kept), output. Of one
			    * whose input the supervisor keeps open: the pipe to write to */
	CTL_EXEC_FAILED,   /* struct ctl_exec_failed */
	CTL_EXEC_EXITED,   /* struct ctl_exec_exited */
	CTL_ENDED,         /* struct ctl_ended */
	CTL_STATS_NOW,     /* struct ctl_stats */
	CTL_FORWARDED,     /* nothing: connections are served */
	CTL_LAYERS_ARE,    /* 2 fds, O_PATH: what was changed (upper), what lies below (lower) */
	CTL_REFUSED,       /* u16 the request's type, error object: the request alone has failed */
	CTL_POLICY_PASSED, /* nothing: the broker has the socket */
};

enum ctl_stdio { CTL_STDIO_NULL, CTL_STDIO_FD, CTL_STDIO_END_ };

enum ctl_scope {
	CTL_SCOPE_PROCESS, /* the process that was started */
	CTL_SCOPE_GROUP,   /* its process group (it leads one of its own) */
	CTL_SCOPE_ROOM,    /* everything but init */
	CTL_SCOPE_TREE,    /* its session, and whatever descends from that by parents that live */
	CTL_SCOPE_END_
};

enum ctl_reason {
	CTL_REASON_EXITED,      /* one-shot: its process ended */
	CTL_REASON_STOPPED,     /* by STOP, or a signal to the supervisor */
	CTL_REASON_TIMEOUT,     /* the sandbox's own deadline */
	CTL_REASON_CLIENT_GONE, /* attached, and its owner went away */
	CTL_REASON_FAILED,      /* ERROR says why */
	CTL_REASON_INIT_DIED,   /* killed from inside, or by the memory limit */
	CTL_REASON_END_
};

/* Everything is heap memory or plain; ctl_start_done frees it. */
struct ctl_start {
	uint32_t version;
	bool one_shot; /* the room ends with its first process */
	bool detached; /* the sandbox outlives the owner's connection */
	bool kept;     /* outputs are logged; directory and logs stay after an orderly end */
	bool gateway;
	char *id;       /* "sandbox-" and 21 of [a-z0-9]; NULL or empty: the supervisor chooses */
	char *name;     /* NULL or empty: none */
	char *provider; /* \"native\", ...; NULL or empty: native */
	char **labels;  /* "key=value" */
	uint64_t timeout_usec;      /* of the sandbox; 0: none */
	uint64_t grace_usec;        /* between TERM and KILL when a deadline has passed */
	char **env;                 /* for processes that inherit: "NAME=VALUE"; NULL is none */
	char *cwd;                  /* for processes that inherit and name none; NULL or empty: / */
	uint64_t exec_timeout_usec; /* for processes that inherit and have none; 0: none */
	uint64_t log_bytes; /* of each process's log that are kept, the last; 0: a default */
	char *config;       /* a JSON object for the record, taken as it is; NULL or empty: {} */
	struct str room;    /* encoded by room_spec_put (provider/spec_wire.h); borrowed */
};

enum ctl_exec_flags {
	/* spec.env is laid over the sandbox's own environment; cwd and timeout are the sandbox's
	 * where spec has none. */
	CTL_EXEC_INHERIT = 1 << 0,
	/* The descriptors go straight to the process, nothing is logged: for helpers of ours that
	 * speak a protocol of their own. */
	CTL_EXEC_RAW = 1 << 1,
	/* Without a client's input the process gets a pipe that stays open for whoever joins, and
	 * not /dev/null. */
	CTL_EXEC_KEEP_INPUT = 1 << 2,
	CTL_EXEC_FLAGS_ = (1 << 3) - 1,
};

struct ctl_exec {
	uint32_t exec;
	uint8_t flags; /* enum ctl_exec_flags, or'ed */
	/* In a kept sandbox (without CTL_EXEC_RAW) output goes to pipes alone.
	 * Where spec.tty, the terminal is all three; in a kept sandbox stdio[1] may then be a pipe
	 * that gets a copy of its output, and stdio[0] and [2] are CTL_STDIO_NULL. In one that is
	 * not kept all are ignored. */
	enum ctl_stdio stdio[3];
	struct exec_spec spec;
};

struct ctl_signal {
	uint32_t exec; /* ignored with CTL_SCOPE_ROOM */
	uint8_t signo; /* 1 to 64 */
	enum ctl_scope scope;
};

struct ctl_resize {
	uint32_t exec;
	uint16_t rows, cols;
};

struct ctl_started {
	struct str id, provider;
	uint32_t pid; /* of init, as the host sees it; 0 where it cannot be told */
};

struct ctl_exec_started {
	uint32_t exec;
	uint32_t pid;    /* in the room */
	uint32_t number; /* the sandbox's own; 0: CTL_EXEC_RAW in a kept one, nobody can join it */
	bool tty;
};

struct ctl_exec_failed {
	uint32_t exec;
	uint32_t code;      /* E_COMMAND_NOT_FOUND (127), E_CANNOT_EXEC (126), ... */
	uint32_t sys_errno; /* 0 where there is none */
	struct str message;
};

struct ctl_exec_exited {
	uint32_t exec;
	bool signaled;
	uint8_t status;    /* exit code, or the signal */
	bool timed_out;    /* its own deadline or the sandbox's */
	bool oom_killed;   /* the memory limit killed something of the room while it ran */
	bool pids_refused; /* the process limit refused a fork while it ran */
	bool stopped;      /* STOP had been asked for */
	uint64_t duration_usec;
};

struct ctl_usage {
	uint64_t cpu_usec, memory_peak_bytes, pids_peak; /* 0: unknown */
};

struct ctl_ended {
	enum ctl_reason reason;
	struct ctl_usage usage;
};

/* All figures are since the room was made, 0 where unknown. */
struct ctl_stats {
	uint64_t now_usec; /* clock_mono_usec() of the supervisor: for rates between two answers */
	uint64_t uptime_usec;
	uint64_t cpu_usec;
	uint64_t memory_bytes, memory_peak_bytes, memory_limit;
	uint64_t pids, pids_peak, pids_limit;
	uint64_t io_read_bytes, io_write_bytes;
	uint64_t execs_running, execs_total;
	uint64_t net_allowed, net_blocked; /* requests, by the broker */
	uint64_t net_sent, net_received;   /* bytes of their bodies, from and to the room */
};

struct ctl_forward {
	uint16_t guest_port, host_port; /* host_port: what the socket is bound to, for the record */
	struct str host_address;        /* "127.0.0.1" */
};

void ctl_start_done(struct ctl_start *m);
static inline void ctl_exec_done(struct ctl_exec *m)
{
	exec_spec_done(&m->spec);
}

/* --- encoding: each appends one whole frame to c->out; 0 or -errno. fds are borrowed --- */
_warn_unused_ int ctl_send_start(struct chan *c, const struct ctl_start *m, int config_fd);
_warn_unused_ int ctl_send_attach(struct chan *c);
_warn_unused_ int ctl_send_exec(struct chan *c, const struct ctl_exec *m, const int fds[3]);
_warn_unused_ int ctl_send_signal(struct chan *c, const struct ctl_signal *m);
_warn_unused_ int ctl_send_resize(struct chan *c, const struct ctl_resize *m);
_warn_unused_ int ctl_send_stop(struct chan *c, uint64_t grace_usec);
_warn_unused_ int ctl_send_warning(struct chan *c, struct str text);
_warn_unused_ int ctl_send_started(struct chan *c, const struct ctl_started *m);
_warn_unused_ int ctl_send_error(struct chan *c, const struct cloche_err *err);
/* fd: -1 where there is none. */
_warn_unused_ int ctl_send_exec_started(struct chan *c, const struct ctl_exec_started *m, int fd);
_warn_unused_ int ctl_send_exec_failed(struct chan *c, const struct ctl_exec_failed *m);
_warn_unused_ int ctl_send_exec_exited(struct chan *c, const struct ctl_exec_exited *m);
_warn_unused_ int ctl_send_ended(struct chan *c, const struct ctl_ended *m);
_warn_unused_ int ctl_send_join(struct chan *c, uint32_t exec, uint32_t number);
_warn_unused_ int ctl_send_stats(struct chan *c);
_warn_unused_ int ctl_send_stats_now(struct chan *c, const struct ctl_stats *m);
_warn_unused_ int ctl_send_forward(struct chan *c, const struct ctl_forward *m, int listener);
_warn_unused_ int ctl_send_forwarded(struct chan *c);
_warn_unused_ int ctl_send_layers(struct chan *c);
_warn_unused_ int ctl_send_layers_are(struct chan *c, int upper, int lower);
/* socket is borrowed. */
_warn_unused_ int ctl_send_policy(struct chan *c, int socket);
_warn_unused_ int ctl_send_policy_passed(struct chan *c);
_warn_unused_ int ctl_send_refused(struct chan *c, uint16_t request, const struct cloche_err *err);

/* --- decoding: false where malformed; views point into the payload. Those that fill heap memory
 * initialise ret in any case: free it with the matching _done --- */
bool ctl_get_start(struct str payload, struct ctl_start *ret);
bool ctl_get_attach(struct str payload, uint32_t *ret_version);
bool ctl_get_exec(struct str payload, struct ctl_exec *ret);
bool ctl_get_signal(struct str payload, struct ctl_signal *ret);
bool ctl_get_resize(struct str payload, struct ctl_resize *ret);
bool ctl_get_stop(struct str payload, uint64_t *ret_grace_usec);
bool ctl_get_warning(struct str payload, struct str *ret);
bool ctl_get_started(struct str payload, struct ctl_started *ret);
/* Fills err; returns -err->code, or -E_PROTOCOL (set too) where malformed. */
int ctl_get_error(struct str payload, struct cloche_err *err);
bool ctl_get_exec_started(struct str payload, struct ctl_exec_started *ret);
bool ctl_get_exec_failed(struct str payload, struct ctl_exec_failed *ret);
bool ctl_get_exec_exited(struct str payload, struct ctl_exec_exited *ret);
bool ctl_get_ended(struct str payload, struct ctl_ended *ret);
bool ctl_get_join(struct str payload, uint32_t *ret_exec, uint32_t *ret_number);
bool ctl_get_stats_now(struct str payload, struct ctl_stats *ret);
bool ctl_get_forward(struct str payload, struct ctl_forward *ret);
/* Fills err; returns -err->code, or -E_PROTOCOL (set too) where malformed. */
int ctl_get_refused(struct str payload, uint16_t *ret_request, struct cloche_err *err);
/* How many descriptors an EXEC carries. */
unsigned ctl_exec_fds(const struct ctl_exec *m);
