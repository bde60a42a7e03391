/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole protocol between a supervisor and the init of its room. Init is inside and not
 * trusted: the supervisor takes what it says as hostile, bounds it, and gives it nothing but the
 * descriptors that the room's own processes shall have. Init on its side takes the supervisor as
 * trusted and still ends at anything malformed.
 *
 *   supervisor -> init:  EXEC, SIGNAL, RESIZE         at any time
 *   init -> supervisor:  READY once, first; then per EXEC either FAILED, or STARTED and then EXITED
 *
 * The numbers are the supervisor's own, rise, and are never used twice. A frame of init's for a
 * number that is not in the matching state ends the room. */

#include "ipc/chan.h"
#include "ipc/exec.h"
#include "ipc/wire.h"

enum {
	ROOMCTL_MAX_PAYLOAD = EXEC_MAX_BYTES + 512 * 1024, /* towards init */
	ROOMCTL_MAX_REPLY = 1024,                          /* from init */
	ROOMCTL_MAX_TEXT = 512,
};

enum roomctl_frame {
	ROOM_EXEC = 1, /* u32 exec, u8 fds_mask (bit i: descriptor i comes along), u8 last,
			* exec_spec */
	ROOM_SIGNAL,   /* u32 exec, u8 signo, u8 scope (enum ctl_scope) */
	ROOM_RESIZE,   /* u32 exec, u16 rows, u16 cols */
	ROOM_READY = 32,
	ROOM_STARTED, /* u32 exec, u32 pid; 1 fd where a terminal was asked */
	ROOM_FAILED,  /* struct roomctl_failed */
	ROOM_EXITED,  /* u32 exec, u32 status as wait(2) has it */
};

/* What init was doing when it could not start a process. */
enum roomctl_stage {
	ROOM_STAGE_SETUP, /* memory, descriptors, fork */
	ROOM_STAGE_TTY,
	ROOM_STAGE_CWD,
	ROOM_STAGE_USER,   /* uid, gid */
	ROOM_STAGE_LOOKUP, /* the command is not in PATH or does not exist */
	ROOM_STAGE_EXEC, /* it exists and cannot be executed; with ENOENT its interpreter is missing
			  */
	ROOM_STAGE_END_
};

struct roomctl_exec {
	uint32_t exec;
	uint8_t fds_mask;
	bool last; /* the room is for this process alone: init ends after its EXITED */
	struct exec_spec spec;
};

struct roomctl_signal {
	uint32_t exec;
	uint8_t signo, scope;
};

struct roomctl_failed {
	uint32_t exec;
	enum roomctl_stage stage;
	uint32_t sys_errno;
};

struct roomctl_exited {
	uint32_t exec, status;
};

/* --- encoding: one whole frame each; 0 or -errno. fds are borrowed --- */
_warn_unused_ int roomctl_send_exec(
	struct chan *c, const struct roomctl_exec *m, const int *fds, unsigned fds_n);
_warn_unused_ int roomctl_send_signal(struct chan *c, const struct roomctl_signal *m);
_warn_unused_ int roomctl_send_resize(struct chan *c, uint32_t exec, uint16_t rows, uint16_t cols);
_warn_unused_ int roomctl_send_ready(struct chan *c);
_warn_unused_ int roomctl_send_started(struct chan *c, uint32_t exec, uint32_t pid, int master);
_warn_unused_ int roomctl_send_failed(struct chan *c, const struct roomctl_failed *m);
_warn_unused_ int roomctl_send_exited(struct chan *c, const struct roomctl_exited *m);

/* --- decoding: false where malformed --- */
/* ret is initialised in any case: free ret->spec with exec_spec_done. */
bool roomctl_get_exec(struct str payload, struct roomctl_exec *ret);
bool roomctl_get_signal(struct str payload, struct roomctl_signal *ret);
bool roomctl_get_resize(
	struct str payload, uint32_t *ret_exec, uint16_t *ret_rows, uint16_t *ret_cols);
bool roomctl_get_started(struct str payload, uint32_t *ret_exec, uint32_t *ret_pid);
bool roomctl_get_failed(struct str payload, struct roomctl_failed *ret);
bool roomctl_get_exited(struct str payload, struct roomctl_exited *ret);
