/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The messages of a far room (docs/design/far.md).
 *
 * Over the link (far/link.h), between `cloche-far relay` on this machine (near) and `cloche-far
 * hold` on the other one (far). Neither believes the other more than it has to: near is the person,
 * so far does what near says; far is hostile, so near bounds and checks everything.
 *
 *   near -> far:  ROOM once, then FILES..., MAKE once, then EXEC, SIGNAL, RESIZE, KILL, KILL_TREE,
 *                 FILES at any time; LEAVE at any time
 *   far -> near:  PREPARED answers ROOM, MADE answers MADE; or FAILED answers either. Then READY,
 *                 STARTED, REFUSED, EXITED as in ipc/roomctl.h; CONNECTION, ASKED and USAGE at any
 *                 time; OVER when everything in the room is dead.
 *
 * Over a unix socket (frames of ipc/chan.h), between the supervisor and the relay:
 *
 *   supervisor -> relay:  BEGIN once, FILES..., MAKE, then KILL, KILL_TREE, FILES at any time
 *   relay -> supervisor:  PREPARED, MADE, FAILED, USAGE, OVER as above; SAYS at any time: a line
 *                         for a person
 *
 * The relay also serves the supervisor in place of a room's init (ipc/roomctl.h). */

#include "far/link.h"
#include "ipc/control.h"
#include "ipc/roomctl.h"
#include "provider/provider.h"

enum {
	FAR_MAX_MOUNTS = 256,
	FAR_MAX_UNENFORCED = 8,
	FAR_MAX_TEXT = 1024,
	FAR_MAX_SPEC = 1024 * 1024,
	FAR_MAX_REQUEST = 1024 * 1024,
	FAR_MAX_PEM = 1024 * 1024,
	FAR_MAX_CHECKS = 32,
	FAR_MAX_NAME = 64,
	FAR_KEPT_MIN = 1024 * 1024, /* what is smaller is sent each time */
	FAR_KEPT_BYTES = 64 + 1 + 3,
	FAR_MAX_KEPT = FAR_MAX_MOUNTS * (FAR_KEPT_BYTES + 1),
};

enum far_message {
	/* near -> far */
	FAR_ROOM = 1,  /* struct far_room_spec */
	FAR_MAKE,      /* nothing: the mounts are filled, so the room may be made */
	FAR_EXEC,      /* struct far_exec */
	FAR_SIGNAL,    /* struct roomctl_signal */
	FAR_RESIZE,    /* struct roomctl_resize */
	FAR_KILL,      /* struct far_kill: everything in the room */
	FAR_KILL_TREE, /* struct far_kill_tree */
	FAR_FILES,     /* struct far_files: serve files/protocol.h over that channel */
	FAR_LEAVE,     /* nothing: end everything, remove everything */
	/* far -> near */
	FAR_PREPARED = 64, /* nothing */
	FAR_MADE,          /* struct far_made */
	FAR_FAILED,        /* an error */
	FAR_READY,         /* nothing */
	FAR_STARTED,       /* struct roomctl_started */
	FAR_REFUSED,       /* struct roomctl_failed */
	FAR_EXITED,        /* struct roomctl_exited */
	FAR_CONNECTION,    /* struct far_connection */
	FAR_ASKED,         /* what CAPTURE_ASKED has (ipc/capture.h) */
	FAR_USAGE,         /* struct far_usage */
	FAR_OVER,          /* struct far_over */
	FAR_STOPPED,       /* struct roomctl_stopped */
};

/* The name of a mounted file in the directory that it is copied to. */
#define FAR_FILE "file"

/* spec: room_spec_put(). Sources of mounts and whatever else names a place of this machine mean
 * nothing there: each mount is a new empty directory, which a mounted file is copied into.
 *
 * kept: a line for each mount, the SHA-256 of its contents and its mode ("%s-%03o"), if it is a
 * program that the other place may keep, so that it is sent once; else an empty one. */
#define FAR_ROOM_SPEC_FIELDS(F)                                                                    \
	F(STR, spec, .max = FAR_MAX_SPEC)                                                          \
	F(STR, pem, .max = FAR_MAX_PEM) /* certificates to trust besides */                        \
	F(STR, kept, .max = FAR_MAX_KEPT)                                                          \
	F(U64, patience_usec) /* how long to live without a carrier */
MESSAGE_STRUCT(far_room_spec, FAR_ROOM_SPEC_FIELDS);

enum far_stdio {
	FAR_NONE,
	FAR_READS,  /* a pipe that the process reads */
	FAR_WRITES, /* a pipe that it writes */
	FAR_BOTH,   /* a unix socket */
	FAR_STDIO_END_
};

/* stdio[i] is what the process has as descriptor i, and channels[i] what it is at the other end of.
 * With a terminal, channels[0] is that. exec: struct roomctl_exec. */
#define FAR_EXEC_FIELDS(F)                                                                         \
	F(ENUMS, stdio, far_stdio, FAR_STDIO_END_, 3)                                              \
	F(U32, channel0)                                                                           \
	F(U32, channel1)                                                                           \
	F(U32, channel2)                                                                           \
	F(STR, exec, .max = ROOMCTL_MAX_PAYLOAD)
MESSAGE_STRUCT(far_exec, FAR_EXEC_FIELDS);

#define FAR_KILL_FIELDS(F) F(U8, signo, .min = 1, .max = 64)
MESSAGE(far, kill, FAR_KILL, FAR_KILL_FIELDS);

#define FAR_KILL_TREE_FIELDS(F) F(U32, pid)
MESSAGE(far, kill_tree, FAR_KILL_TREE, FAR_KILL_TREE_FIELDS);

#define FAR_FILES_FIELDS(F)                                                                        \
	F(U32, mount, .max = FAR_MAX_MOUNTS - 1)                                                   \
	F(U32, channel)
MESSAGE_STRUCT(far_files, FAR_FILES_FIELDS);

/* unenforced: limits that are not in force. in_place: the place makes no namespaces, and the walls
 * are those of provider landlock. */
#define FAR_MADE_FIELDS(F)                                                                         \
	F(U32, uid, .max = UINT32_MAX - 1)                                                         \
	F(U32, gid, .max = UINT32_MAX - 1)                                                         \
	F(STRV, unenforced, .max_n = FAR_MAX_UNENFORCED, .max = FAR_MAX_TEXT)                      \
	F(BOOL, in_place)
MESSAGE(far, made, FAR_MADE, FAR_MADE_FIELDS);

/* A captured connection; capture: struct capture_connection (ipc/capture.h). */
#define FAR_CONNECTION_FIELDS(F)                                                                   \
	F(U32, channel)                                                                            \
	F(STR, capture, .max = 4096)
MESSAGE_STRUCT(far_connection, FAR_CONNECTION_FIELDS);

/* struct room_usage */
#define FAR_USAGE_FIELDS(F)                                                                        \
	F(U64, cpu_usec)                                                                           \
	F(U64, memory_bytes)                                                                       \
	F(U64, memory_peak_bytes)                                                                  \
	F(U64, pids)                                                                               \
	F(U64, pids_peak)                                                                          \
	F(U64, io_read_bytes)                                                                      \
	F(U64, io_write_bytes)                                                                     \
	F(U64, oom_kills)                                                                          \
	F(BOOL, pids_refused)                                                                      \
	F(BOOL, sampled)
MESSAGE(far, usage, FAR_USAGE, FAR_USAGE_FIELDS);

/* struct room_exit */
#define FAR_OVER_FIELDS(F)                                                                         \
	F(BOOL, exited)                                                                            \
	F(U32, status, .max = 255)                                                                 \
	F(BOOL, oom_killed)
MESSAGE(far, over, FAR_OVER, FAR_OVER_FIELDS);

MESSAGE_ERROR(far, failed, FAR_FAILED, "the other end of the room sent a malformed error");
MESSAGE_EMPTY(far, prepared, FAR_PREPARED);

/* Send a message over a link. -E2BIG: too much waits, or a bound is exceeded. */
_warn_unused_ int far_send(
	struct link *l, enum far_message type, const struct message *t, const void *m);
_warn_unused_ int far_send_error(struct link *l, const struct cloche_err *why);

/* --- between the supervisor and the relay --- */

enum {
	FARCTL_FD_INIT = 3, /* the relay's end of the room's control socket */
	FARCTL_FD = 4,
	FARCTL_FD_KEEPER = 5, /* between the relay and the process that starts carriers */
	FARCTL_FD_END = 6,    /* a pipe that the relay closes when the room is over */
	FARCTL_MAX_PAYLOAD = FAR_MAX_SPEC + 2 * FAR_MAX_REQUEST + FAR_MAX_PEM + 65536,
};

enum farctl_frame {
	FARCTL_BEGIN = 128, /* struct farctl_begin; 1 fd, the capture socket, if it captures */
	FARCTL_MAKE,        /* nothing */
	FARCTL_FILES,       /* struct farctl_files; 1 fd, a connected unix socket */
	FARCTL_SAYS,        /* struct farctl_says */
};

/* start, again: requests for the provider's program. */
#define FARCTL_BEGIN_FIELDS(F)                                                                     \
	F(STR, start, .max = FAR_MAX_REQUEST)                                                      \
	F(STR, again, .max = FAR_MAX_REQUEST)                                                      \
	F(PART, room, far_room_spec)
MESSAGE_WITH_FD(farctl, begin, FARCTL_BEGIN, FARCTL_BEGIN_FIELDS);

MESSAGE_EMPTY(farctl, make, FARCTL_MAKE);

#define FARCTL_FILES_FIELDS(F) F(U32, mount, .max = FAR_MAX_MOUNTS - 1)
MESSAGE_WITH_FD(farctl, files, FARCTL_FILES, FARCTL_FILES_FIELDS);

#define FARCTL_SAYS_FIELDS(F) F(STR, text, .max = FAR_MAX_TEXT, .flags = FIELD_CUT)
MESSAGE(farctl, says, FARCTL_SAYS, FARCTL_SAYS_FIELDS);

/* --- between the relay and the keeper, which starts carriers --- */

enum keeper_frame {
	KEEPER_CARRY = 1, /* struct keeper_carry: run the program that becomes the carrier */
	KEEPER_TERMINAL,  /* nothing: make a terminal */
	KEEPER_CARRIES,   /* 2 fds: what is read from it, and what is written to it */
	KEEPER_FAILED,    /* an error: the program's own */
	KEEPER_MADE,      /* 2 fds, master and slave, or none: there is no terminal to be had. In
			   * the order of the questions */
};

#define KEEPER_CARRY_FIELDS(F)                                                                     \
	F(BOOL, again) /* the room is there already */                                             \
	F(STR, request, .max = FAR_MAX_REQUEST)
MESSAGE(keeper, carry, KEEPER_CARRY, KEEPER_CARRY_FIELDS);

MESSAGE_EMPTY(keeper, terminal, KEEPER_TERMINAL);
MESSAGE_OF_FDS(keeper, carries, KEEPER_CARRIES, 2);
MESSAGE_ERROR(keeper, failed, KEEPER_FAILED, "malformed report of a failure");

/* --- between `cloche doctor` and `cloche-far probe` on the other machine (far/probe.h) --- */

/* struct provider_check */
#define FAR_CHECK_FIELDS(F)                                                                        \
	F(STR, name, .max = FAR_MAX_NAME, .flags = FIELD_NOT_EMPTY)                                \
	F(BOOL, works)                                                                             \
	F(BOOL, required)                                                                          \
	F(STR, detail, .max = PROVIDER_TEXT_MAX - 1)                                               \
	F(STR, remedy, .max = PROVIDER_TEXT_MAX - 1)
MESSAGE_STRUCT(far_check, FAR_CHECK_FIELDS);

/* machine, kernel: as uname(2) has them. */
#define FAR_PROBED_FIELDS(F)                                                                       \
	F(STR, machine, .max = FAR_MAX_NAME, .flags = FIELD_NOT_EMPTY)                             \
	F(STR, kernel, .max = FAR_MAX_NAME, .flags = FIELD_NOT_EMPTY)                              \
	F(PARTS, checks, far_check, FAR_MAX_CHECKS)
MESSAGE_STRUCT(far_probed, FAR_PROBED_FIELDS);
