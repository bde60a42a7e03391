/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a sandbox's supervisor and its clients.
 *
 * The first client (the owner) is the program that started the supervisor; its channel is
 * descriptor 3. Other clients (guests) connect to control.sock in the sandbox's directory and use
 * the same protocol, but begin with ATTACH where the owner begins with START. A connection may
 * start any number of processes. The client chooses a handle for each; handles belong to the
 * connection, rise, and are never used twice. A process also has a number of the sandbox, from 1
 * on, which other clients use to JOIN it and to find its log.
 *
 * What a client may send depends on the state of its connection. Any other frame ends the
 * connection and, if it is the owner's, an attached sandbox:
 *
 *   state       START  ATTACH  EXEC  JOIN  SIGNAL  RESIZE  STOP  STATS  FORWARD  LAYERS  POLICY
 * SYNC new owner   ->up   -       -     -     -       -       -     -      -        -       - - new
 * guest   -      ->up    -     -     -       -       -     -      -        -       -       - up -
 * -       yes   yes   yes     yes     yes   yes    yes      yes     yes     yes (COMPLETE: only the
 * owner, when it is up) ended       -      -       (all ignored: the client could not know)
 *
 * SIGNAL with SIGSTOP to the room stops all its processes except init, until the same connection
 * sends SIGCONT or ends. If several clients have stopped them, the last one continues them.
 *
 * If there are too many guests, the last ones get ERROR: some of them when they ATTACH; others,
 * which may still STOP, when they send anything else. A guest that does not ATTACH soon is dropped.
 *
 * A client need not wait for answers: START and EXEC can be sent together. If the room cannot be
 * made, ERROR and then ENDED answer both. The supervisor sends, in this order:
 *
 *   WARNING...  STARTED | ERROR
 *   per process: EXEC_STARTED, EXEC_STOPPED..., EXEC_EXITED  |  EXEC_FAILED
 *   per request: STATS_NOW | FORWARDED | LAYERS_ARE | POLICY_PASSED | COMPLETED | SYNCED |
 *   REFUSED, in the order of the requests
 *   ERROR (the network or the room broke; everything in it is dead)
 *   BRINGS (files come back from another machine before ENDED, which may take long)
 *   ENDED, then it closes.
 *
 * In a kept sandbox the output of processes goes through the supervisor, which copies it to the
 * client's descriptors and into a log (see RUNDIR_EXECS in ipc/rundir.h), unless EXEC has
 * CTL_EXEC_RAW or CTL_EXEC_WORKER. In other sandboxes the client's descriptors go directly to the
 * process.
 *
 * A process that runs when the room ends is reported with EXEC_EXITED before ENDED. In a one-shot
 * sandbox the room ends at once with its first process (or if that fails to start), even if other
 * processes run in it. */

#include "ipc/exec.h"
#include "ipc/recording.h"
#include "ipc/rundir.h"
#include <linux/limits.h>

enum {
	CTL_VERSION = 11,
	CTL_FD = 3, /* the owner's channel in the supervisor */
	/* After that follow descriptors of what is granted: the directory that is the room's root,
	 * if one is, and the sources of mounts in their order, except guards. */
	CTL_FIRST_SOURCE,
	CTL_MAX_PAYLOAD = EXEC_MAX_BYTES + 512 * 1024,
	CTL_MAX_TEXT = 4096,
	CTL_MAX_ROOM = 512 * 1024, /* encoded room */
	CTL_MAX_LABELS = 64,
	CTL_MAX_LOGINS = 4,
	CTL_MAX_LABEL = 512, /* "key=value" */
	CTL_MAX_CONFIG = 64 * 1024,
	CTL_MAX_NOTE = 448 * 1024,
	CTL_ID_MAX = 64,
	CTL_MAX_NAME = 128,
	CTL_DEFAULT_GRACE_USEC = 5 * 1000 * 1000,
};

enum ctl_frame {
	/* client -> supervisor */
	CTL_START = 1, /* struct ctl_start; 1 fd if .gateway: the broker's configuration socket;
			* 2 fds if .recorded: directories of logs and of contents; 1 fd for each of
			* .logins: the directory of its file */
	CTL_ATTACH,    /* struct ctl_attach */
	CTL_EXEC,      /* struct ctl_exec; an fd for each stdio that says CTL_STDIO_FD, in order */
	CTL_SIGNAL,    /* struct ctl_signal */
	CTL_RESIZE,    /* struct ctl_resize */
	CTL_STOP,      /* struct ctl_stop; a later one may shorten the grace; .if_idle: request */
	CTL_JOIN,      /* struct ctl_join: from now on exec, a new handle of this connection, means
			* that process in SIGNAL, RESIZE and EXEC_EXITED. Answered as EXEC; for a
			* process that has ended both frames are sent. 2 fds, pipes, or none: if
			* the process has no terminal, its further output goes there too, as if
			* EXEC had given them; E_BUSY while another client reads it */
	CTL_STATS,     /* nothing */
	CTL_FORWARD,   /* struct ctl_forward; 1 fd: a listening socket of the host */
	CTL_LAYERS,    /* nothing */
	CTL_POLICY,   /* 1 fd: a connected unix stream socket, only for the broker: it carries a new
		       * policy and the answer (ipc/netconf.h) */
	CTL_COMPLETE, /* nothing; from the owner of a sandbox that was started with .unfinished */
	CTL_SYNC, /* 1 fd, a pipe: copy files both ways. The lines of cloche-sync go there. If the
		   * client goes, the copying ends */
	/* supervisor -> client */
	CTL_WARNING = 32, /* struct ctl_warning: a limit that best effort did not enforce, ... */
	CTL_STARTED,      /* struct ctl_started */
	CTL_ERROR,        /* an error */
	CTL_EXEC_STARTED, /* struct ctl_exec_started; at most 1 fd. With a terminal: its master, for
			   * input and, if the sandbox is not kept, output. If the supervisor
			   * keeps the input open: the pipe to write to */
	CTL_EXEC_FAILED,  /* struct ctl_exec_failed */
	CTL_EXEC_EXITED,  /* struct ctl_exec_exited */
	CTL_ENDED,        /* struct ctl_ended */
	CTL_STATS_NOW,    /* struct ctl_stats_now */
	CTL_FORWARDED,    /* nothing: connections are accepted now */
	CTL_LAYERS_ARE,   /* 2 fds, O_PATH: the changes (upper), and the layer below (lower) */
	CTL_REFUSED,      /* struct ctl_refused: only the request has failed */
	CTL_POLICY_PASSED, /* nothing: the broker has the socket */
	CTL_COMPLETED,     /* nothing: the sandbox stays if its owner leaves */
	CTL_SYNCED,        /* nothing: all was copied, and the pipe has been closed */
	CTL_BRINGS,        /* nothing */
	CTL_EXEC_STOPPED,  /* struct ctl_exec_stopped */
};

/* Stands for the program of ours by which an interpreter runs code. */
#define CTL_CODE "(code)"

enum ctl_stdio { CTL_STDIO_NULL, CTL_STDIO_FD, CTL_STDIO_END_ };

enum ctl_scope {
	CTL_SCOPE_PROCESS, /* the process that was started */
	CTL_SCOPE_GROUP,   /* its process group (it leads one of its own) */
	CTL_SCOPE_ROOM,    /* everything but init */
	CTL_SCOPE_TREE,    /* its session, and all descendants whose parents are alive */
	CTL_SCOPE_END_
};

enum ctl_reason {
	CTL_REASON_EXITED,      /* one-shot: its process ended */
	CTL_REASON_STOPPED,     /* by STOP, or a signal to the supervisor */
	CTL_REASON_TIMEOUT,     /* the sandbox's own deadline */
	CTL_REASON_CLIENT_GONE, /* attached, and its owner went away */
	CTL_REASON_FAILED,      /* the reason was sent with ERROR */
	CTL_REASON_INIT_DIED,   /* killed from inside, or by the memory limit */
	CTL_REASON_END_
};

/* All members are heap memory or plain, except room; ctl_start_done frees them. */
#define CTL_START_FIELDS(F)                                                                        \
	F(U32, version)                                                                            \
	F(BOOL, one_shot) /* the room ends with its first process */                               \
	F(BOOL, detached) /* the sandbox outlives the owner's connection */                        \
	/* detached only after COMPLETE; if the owner leaves earlier, all is removed */            \
	F(BOOL, unfinished)                                                                        \
	F(BOOL, kept) /* outputs are logged; directory and logs stay after an orderly end */       \
	F(BOOL, gateway)                                                                           \
	F(BOOL, recorded)    /* by cloche-recorder (ipc/recording.h) */                            \
	F(U64, record_limit) /* bytes of contents; 0: a default */                                 \
	F(ENUM, record_sync, oplog_sync, OPLOG_SYNC_END_)                                          \
	/* names of files with logins that the broker may renew */                                 \
	F(STRV, logins, .max_n = CTL_MAX_LOGINS, .max = NAME_MAX)                                  \
	/* of each, the directory beside it that is its lock; empty: none */                       \
	F(STRV, login_locks, .max_n = CTL_MAX_LOGINS, .max = NAME_MAX)                             \
	/* "sandbox-" and 21 of [a-z0-9]; NULL or empty: the supervisor chooses */                 \
	F(Z, id, .max = CTL_ID_MAX)                                                                \
	F(Z, name, .max = CTL_MAX_NAME)     /* NULL or empty: none */                              \
	F(Z, provider, .max = CTL_MAX_NAME) /* provider/names.h; empty: the first */               \
	F(STRV, labels, .max_n = CTL_MAX_LABELS, .max = CTL_MAX_LABEL)                             \
	F(U64, timeout_usec) /* of the sandbox; 0: none */                                         \
	F(U64, grace_usec)   /* between TERM and KILL when a deadline has passed */                \
	/* for processes that inherit: "NAME=VALUE"; NULL is none */                               \
	F(STRV, env, .max_n = EXEC_MAX_ARGS, .max = EXEC_MAX_ARG)                                  \
	/* for processes that inherit and have none; NULL or empty: / */                           \
	F(Z, cwd, .max = EXEC_MAX_PATH)                                                            \
	/* for processes without a user of their own; without one, they run as who made the room   \
	 * says (struct room) */                                                                   \
	F(BOOL, has_user)                                                                          \
	F(U32, uid, .max = UINT32_MAX - 1)                                                         \
	F(U32, gid, .max = UINT32_MAX - 1)                                                         \
	F(U64, exec_timeout_usec) /* for processes that inherit and have none; 0: none */          \
	F(U64, log_bytes)         /* kept of each process's log, the last; 0: a default */         \
	/* a JSON object for the record, not parsed; NULL or empty: {} */                          \
	F(Z, config, .max = CTL_MAX_CONFIG)                                                        \
	/* encoded by room_spec_put (provider/spec.h); borrowed */                                 \
	F(STR, room, .max = CTL_MAX_ROOM)
MESSAGE_WITH_FDS(ctl, start, CTL_START_FIELDS);

#define CTL_ATTACH_FIELDS(F)                                                                       \
	F(U32, version)                                                                            \
	F(STR, word, .max = RUNDIR_WORD_BYTES) /* of the sandbox's directory: ipc/rundir.h */
MESSAGE(ctl, attach, CTL_ATTACH, CTL_ATTACH_FIELDS);

enum ctl_exec_flags {
	/* spec.env is added to the sandbox's own environment; cwd and timeout are the sandbox's if
	 * spec has none. */
	CTL_EXEC_INHERIT = 1 << 0,
	/* The descriptors go directly to the process, so its output is in no log and not on record:
	 * it has results of code in it. */
	CTL_EXEC_RAW = 1 << 1,
	/* Without input from the client the process gets a pipe that stays open for clients that
	 * join, instead of /dev/null. */
	CTL_EXEC_KEEP_INPUT = 1 << 2,
	/* A worker of ours (for files, or to check something), and no command: as CTL_EXEC_RAW, and
	 * it is not on record and has no number. */
	CTL_EXEC_WORKER = 1 << 3,
	CTL_EXEC_FLAGS_ = (1 << 4) - 1,
};

/* In a kept sandbox (without CTL_EXEC_RAW and CTL_EXEC_WORKER) output goes to pipes only. If
 * spec.tty is set, the terminal is used for all three; in a kept sandbox stdio[1] may then be a
 * pipe that gets a copy of the output, and stdio[0] and [2] are CTL_STDIO_NULL. In other sandboxes
 * stdio is then ignored. Free it with ctl_exec_done. */
#define CTL_EXEC_FIELDS(F)                                                                         \
	F(U32, exec, .min = 1)                                                                     \
	F(U8, flags, .max = CTL_EXEC_FLAGS_) /* enum ctl_exec_flags, or'ed */                      \
	F(ENUMS, stdio, ctl_stdio, CTL_STDIO_END_, 3)                                              \
	F(U8, code_arg) /* index of the argument that is shown as CTL_CODE; 0: none */             \
	/* JSON members for a full record; NULL: none */                                           \
	F(OPTIONAL, note, .max = CTL_MAX_NOTE)                                                     \
	F(PART, spec, exec_spec)
MESSAGE_WITH_FDS(ctl, exec, CTL_EXEC_FIELDS);

#define CTL_SIGNAL_FIELDS(F)                                                                       \
	F(U32, exec) /* ignored with CTL_SCOPE_ROOM */                                             \
	F(U8, signo, .min = 1, .max = 64)                                                          \
	F(ENUM, scope, ctl_scope, CTL_SCOPE_END_)
MESSAGE(ctl, signal, CTL_SIGNAL, CTL_SIGNAL_FIELDS);

#define CTL_RESIZE_FIELDS(F)                                                                       \
	F(U32, exec)                                                                               \
	F(U16, rows, .max = EXEC_MAX_DIMENSION)                                                    \
	F(U16, cols, .max = EXEC_MAX_DIMENSION)
MESSAGE(ctl, resize, CTL_RESIZE, CTL_RESIZE_FIELDS);

#define CTL_STOP_FIELDS(F)                                                                         \
	F(U64, grace_usec) /* between TERM and KILL; 0: KILL at once */                            \
	F(BOOL, if_idle)   /* if a process runs: REFUSED with E_BUSY, and nothing is ended */
MESSAGE(ctl, stop, CTL_STOP, CTL_STOP_FIELDS);

#define CTL_JOIN_FIELDS(F)                                                                         \
	F(U32, exec, .min = 1)                                                                     \
	F(U32, number)
MESSAGE(ctl, join, CTL_JOIN, CTL_JOIN_FIELDS);

#define CTL_FORWARD_FIELDS(F)                                                                      \
	F(U16, guest_port, .min = 1)                                                               \
	F(U16, host_port)               /* the port of the socket, for the record */               \
	F(STR, host_address, .max = 64) /* "127.0.0.1" */
MESSAGE_WITH_FD(ctl, forward, CTL_FORWARD, CTL_FORWARD_FIELDS);

#define CTL_WARNING_FIELDS(F) F(STR, text, .max = CTL_MAX_TEXT, .flags = FIELD_CUT)
MESSAGE(ctl, warning, CTL_WARNING, CTL_WARNING_FIELDS);

#define CTL_STARTED_FIELDS(F)                                                                      \
	F(STR, id, .max = CTL_ID_MAX)                                                              \
	F(STR, provider, .max = CTL_ID_MAX)                                                        \
	F(STR, isolation, .max = CTL_ID_MAX) /* what its room gives: provider_isolation() */       \
	F(U32, pid) /* of init, as the host sees it; 0 if it is not known */
MESSAGE(ctl, started, CTL_STARTED, CTL_STARTED_FIELDS);

MESSAGE_ERROR(ctl, error, CTL_ERROR, "malformed error from the supervisor");

#define CTL_EXEC_STARTED_FIELDS(F)                                                                 \
	F(U32, exec)                                                                               \
	F(U32, pid) /* in the room */                                                              \
	/* In a kept sandbox its number for JOIN, or 0 if it cannot be joined. In others it only   \
	 * counts. */                                                                              \
	F(U32, number)                                                                             \
	F(BOOL, tty)
MESSAGE_WITH_FD(ctl, exec_started, CTL_EXEC_STARTED, CTL_EXEC_STARTED_FIELDS);

#define CTL_EXEC_FAILED_FIELDS(F)                                                                  \
	F(U32, exec)                                                                               \
	F(U32, code,                                                                               \
		.flags = FIELD_CODE) /* E_COMMAND_NOT_FOUND (127), E_CANNOT_EXEC (126), ... */     \
	F(U32, sys_errno)            /* 0 if there is none */                                      \
	F(STR, message, .max = CTL_MAX_TEXT, .flags = FIELD_CUT)
MESSAGE(ctl, exec_failed, CTL_EXEC_FAILED, CTL_EXEC_FAILED_FIELDS);

#define CTL_EXEC_EXITED_FIELDS(F)                                                                  \
	F(U32, exec)                                                                               \
	F(BOOL, signaled)                                                                          \
	F(U8, status)         /* exit code, or the signal */                                       \
	F(BOOL, timed_out)    /* its own deadline or the sandbox's */                              \
	F(BOOL, oom_killed)   /* the memory limit killed a process of the room while it ran */     \
	F(BOOL, pids_refused) /* the process limit refused a fork while it ran */                  \
	F(BOOL, stopped)      /* after a STOP */                                                   \
	F(U64, duration_usec)
MESSAGE(ctl, exec_exited, CTL_EXEC_EXITED, CTL_EXEC_EXITED_FIELDS);

/* A process with a terminal was stopped, as by Ctrl-Z. This is not sent again before a client has
 * sent it SIGCONT. A client that joins a stopped process continues it. */
#define CTL_EXEC_STOPPED_FIELDS(F) F(U32, exec)
MESSAGE(ctl, exec_stopped, CTL_EXEC_STOPPED, CTL_EXEC_STOPPED_FIELDS);

struct jsonout;
/* Return the exit code as a shell would see it: 128 + the signal; 124 after a timeout. */
int ctl_exit_code(const struct ctl_exec_exited *m);
/* Write how the process ended, in the words of every document and record: exit_code, signal (null:
 * none), timed_out, oom_killed, pids_refused, stopped, duration_usec. */
void ctl_exit_write(const struct ctl_exec_exited *m, struct jsonout *o);

/* 0: unknown. */
#define CTL_USAGE_FIELDS(F)                                                                        \
	F(U64, cpu_usec)                                                                           \
	F(U64, memory_peak_bytes)                                                                  \
	F(U64, pids_peak)
MESSAGE_STRUCT(ctl_usage, CTL_USAGE_FIELDS);

#define CTL_ENDED_FIELDS(F)                                                                        \
	F(ENUM, reason, ctl_reason, CTL_REASON_END_)                                               \
	F(PART, usage, ctl_usage)
MESSAGE(ctl, ended, CTL_ENDED, CTL_ENDED_FIELDS);

/* All figures are since the room was made, 0 if unknown. */
#define CTL_STATS_NOW_FIELDS(F)                                                                    \
	/* clock_mono_usec() of the supervisor: for rates between two answers */                   \
	F(U64, now_usec)                                                                           \
	F(U64, uptime_usec)                                                                        \
	F(U64, cpu_usec)                                                                           \
	F(U64, memory_bytes)                                                                       \
	F(U64, memory_peak_bytes)                                                                  \
	F(U64, memory_limit)                                                                       \
	F(U64, pids)                                                                               \
	F(U64, pids_peak)                                                                          \
	F(U64, pids_limit)                                                                         \
	F(U64, io_read_bytes)                                                                      \
	F(U64, io_write_bytes)                                                                     \
	F(U64, execs_running)                                                                      \
	F(U64, execs_total)                                                                        \
	F(U64, net_allowed) /* requests, counted by the broker */                                  \
	F(U64, net_blocked)                                                                        \
	F(U64, net_sent) /* bytes of their bodies, from and to the room */                         \
	F(U64, net_received)
MESSAGE(ctl, stats_now, CTL_STATS_NOW, CTL_STATS_NOW_FIELDS);

#define CTL_REFUSED_FIELDS(F)                                                                      \
	F(U16, request) /* type of the request */                                                  \
	F(ERROR, err)
MESSAGE(ctl, refused, CTL_REFUSED, CTL_REFUSED_FIELDS);

MESSAGE_EMPTY(ctl, stats, CTL_STATS);
MESSAGE_EMPTY(ctl, forwarded, CTL_FORWARDED);
MESSAGE_EMPTY(ctl, layers, CTL_LAYERS);
MESSAGE_OF_FDS(ctl, layers_are, CTL_LAYERS_ARE, 2);
MESSAGE_OF_FDS(ctl, policy, CTL_POLICY, 1);
MESSAGE_EMPTY(ctl, policy_passed, CTL_POLICY_PASSED);
MESSAGE_EMPTY(ctl, complete, CTL_COMPLETE);
MESSAGE_EMPTY(ctl, completed, CTL_COMPLETED);
MESSAGE_OF_FDS(ctl, sync, CTL_SYNC, 1);
MESSAGE_EMPTY(ctl, synced, CTL_SYNCED);
MESSAGE_EMPTY(ctl, brings, CTL_BRINGS);

void ctl_start_done(struct ctl_start *m);
static inline void ctl_exec_done(struct ctl_exec *m)
{
	exec_spec_done(&m->spec);
	free(m->note);
}

/* --- other encoders: each appends one whole frame to c->out; 0 or -errno. fds are borrowed --- */
_warn_unused_ int ctl_send_start(struct chan *c, const struct ctl_start *m, const int *fds);
_warn_unused_ int ctl_send_exec(struct chan *c, const struct ctl_exec *m, const int fds[3]);
/* With two pipes for the process's output. */
_warn_unused_ int ctl_send_join_outputs(
	struct chan *c, const struct ctl_join *m, const int outputs[2]);

/* Return how many descriptors the frame carries. */
unsigned ctl_start_fds(const struct ctl_start *m);
unsigned ctl_exec_fds(const struct ctl_exec *m);
