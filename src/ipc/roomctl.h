/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a supervisor and the init of its room. Init is in the room and not
 * trusted: the supervisor treats its frames as hostile, bounds them, and gives it only the
 * descriptors that the room's processes are to have. Init trusts the supervisor, but still ends if
 * a frame is malformed.
 *
 *   supervisor -> init:  EXEC, SIGNAL, RESIZE         at any time
 *   init -> supervisor:  READY once, first; then per EXEC either FAILED, or STARTED and then
 * EXITED; between these STOPPED, any number of times, if it has a terminal
 *
 * The supervisor chooses the numbers of processes; they rise and are never used twice. A frame from
 * init for a number that is not in the matching state ends the room. */

#include "ipc/control.h"

/* What a room has of our own. Nothing else is mounted there. */
#define ROOMCTL_DIR "/run/cloche"
/* Path of the program of process 1 in every room. It is executed again there for the file worker
 * and for connections to a port. */
#define ROOMCTL_INIT_PATH ROOMCTL_DIR "/init"
/* The hint if a sandbox is to be made where that file exists. */
#define ROOMCTL_INSIDE_HINT                                                                        \
	"this is the inside of a sandbox already, which cannot make another: run the command as "  \
	"it is, or start cloche outside"
/* Path of the supervisor's socket in a room that a provider's program has made. */
#define ROOMCTL_CONTROL_NAME "control"
#define ROOMCTL_CONTROL_PATH ROOMCTL_DIR "/" ROOMCTL_CONTROL_NAME

enum {
	ROOMCTL_MAX_PAYLOAD = EXEC_MAX_BYTES + 512 * 1024, /* towards init */
	ROOMCTL_MAX_REPLY = 1024,                          /* from init */
};

enum roomctl_frame {
	ROOM_EXEC = 1, /* struct roomctl_exec (bit i of fds_mask: descriptor i is attached). With a
			* terminal: 0 is its master and 1 its slave; without them, init opens one */
	ROOM_SIGNAL,   /* struct roomctl_signal */
	ROOM_RESIZE,   /* struct roomctl_resize */
	ROOM_READY = 32,
	ROOM_STARTED, /* struct roomctl_started; 1 fd if a terminal was asked for */
	ROOM_FAILED,  /* struct roomctl_failed */
	ROOM_EXITED,  /* struct roomctl_exited */
	ROOM_STOPPED, /* struct roomctl_stopped */
};

/* The step at which init failed to start a process. */
enum roomctl_stage {
	ROOM_STAGE_SETUP, /* memory, descriptors, fork */
	ROOM_STAGE_TTY,
	ROOM_STAGE_CWD,
	ROOM_STAGE_USER,   /* uid, gid */
	ROOM_STAGE_LOOKUP, /* the command is not in PATH or does not exist */
	ROOM_STAGE_EXEC,   /* it cannot be executed; ENOENT: no interpreter */
	ROOM_STAGE_END_
};

#define ROOMCTL_EXEC_FIELDS(F)                                                                     \
	F(U32, exec)                                                                               \
	F(U8, fds_mask, .max = 7)                                                                  \
	F(BOOL, last) /* the room is only for this process: init ends after its EXITED */          \
	F(PART, spec, exec_spec)
/* Free ret->spec with exec_spec_done. */
MESSAGE_WITH_FDS(roomctl, exec, ROOMCTL_EXEC_FIELDS);
/* fds are borrowed. */
_warn_unused_ int roomctl_send_exec(
	struct chan *c, const struct roomctl_exec *m, const int *fds, unsigned fds_n);

#define ROOMCTL_SIGNAL_FIELDS(F)                                                                   \
	F(U32, exec)                                                                               \
	F(U8, signo, .min = 1, .max = 64)                                                          \
	F(ENUM, scope, ctl_scope, CTL_SCOPE_END_)
MESSAGE(roomctl, signal, ROOM_SIGNAL, ROOMCTL_SIGNAL_FIELDS);

#define ROOMCTL_RESIZE_FIELDS(F)                                                                   \
	F(U32, exec)                                                                               \
	F(U16, rows)                                                                               \
	F(U16, cols)
MESSAGE(roomctl, resize, ROOM_RESIZE, ROOMCTL_RESIZE_FIELDS);

MESSAGE_EMPTY(roomctl, ready, ROOM_READY);

#define ROOMCTL_STARTED_FIELDS(F)                                                                  \
	F(U32, exec)                                                                               \
	F(U32, pid)
MESSAGE_WITH_FD(roomctl, started, ROOM_STARTED, ROOMCTL_STARTED_FIELDS);

#define ROOMCTL_FAILED_FIELDS(F)                                                                   \
	F(U32, exec)                                                                               \
	F(ENUM, stage, roomctl_stage, ROOM_STAGE_END_)                                             \
	F(U32, sys_errno, .max = 4095)
MESSAGE(roomctl, failed, ROOM_FAILED, ROOMCTL_FAILED_FIELDS);

#define ROOMCTL_EXITED_FIELDS(F)                                                                   \
	F(U32, exec)                                                                               \
	F(U32, status, .max = 0xffff) /* as in wait(2) */
MESSAGE(roomctl, exited, ROOM_EXITED, ROOMCTL_EXITED_FIELDS);

/* A stop signal has stopped the process, as Ctrl-Z does. */
#define ROOMCTL_STOPPED_FIELDS(F)                                                                  \
	F(U32, exec)                                                                               \
	F(U8, signo, .min = 1, .max = 64)
MESSAGE(roomctl, stopped, ROOM_STOPPED, ROOMCTL_STOPPED_FIELDS);
