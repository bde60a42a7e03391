/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_INSTANCE_H
#define CLOCHE_INSTANCE_H
/* A long-lived sandbox: made once, then used by whoever comes, from this process or another, until
 * it is stopped. Commands in it are runs (cloche_run_new_in(), cloche/run.h); what they print is
 * kept in logs that can be read at any offset while they run and afterwards.
 *
 * A cloche_instance is a handle by which a sandbox is named. It holds no connection: every function
 * makes one of its own, so that the sandbox neither notices nor cares that handles come and go.
 * Freeing a handle never ends the sandbox.
 *
 * Threads: functions that take a const cloche_instance may be called by any number of threads at a
 * time. A cloche_log belongs to one thread, except cloche_log_stop(). Only sandboxes of the calling
 * user are seen. Functions that return int return 0 or a negated error code and describe the
 * failure in err (which may be NULL). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "run.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cloche_instance is declared in run.h. */

enum cloche_instance_state {
	CLOCHE_INSTANCE_RUNNING,
	CLOCHE_INSTANCE_STOPPED, /* in order; its logs are there until it is removed */
	CLOCHE_INSTANCE_CRASHED, /* its supervisor died; the next look at it removes what is left */
};

/* --- making and finding --- */

/* Makes a sandbox that lives until it is stopped, its time to live has passed (see
 * cloche_sandbox_set_ttl) or the machine goes down; returns when the room and its network are
 * there. sb is copied; its timeout becomes the default of each command. fn (may be NULL) is told of
 * warnings during the call. */
CLOCHE_API int cloche_instance_create(const cloche_sandbox *sb, cloche_warning_fn fn, void *user,
	cloche_instance **ret, cloche_err *err);

/* Finds a sandbox by its id, a name, or the beginning of an id that fits no other.
 * CLOCHE_E_NOT_FOUND if there is none. With a whole id nothing is read yet. */
CLOCHE_API int cloche_instance_open(const char *id_or_name, cloche_instance **ret, cloche_err *err);

/* Frees the handle; NULL is fine. */
CLOCHE_API void cloche_instance_free(cloche_instance *instance);

/* Calls fn with each sandbox, the newest first; all: also those that have ended. The handle is
 * borrowed for the call. fn returns false to end the listing. Removes what crashed ones left, and
 * ends those that are left over of a manager that has died (cloche/manager.h). */
typedef bool (*cloche_instance_fn)(const cloche_instance *instance, void *user);
CLOCHE_API int cloche_instance_list(bool all, cloche_instance_fn fn, void *user, cloche_err *err);

/* --- what it is: as its record said when the handle was made, or at the last refresh --- */

/* "sandbox-" and 21 characters; borrowed, as all strings here, until the next refresh or free. */
CLOCHE_API const char *cloche_instance_id(const cloche_instance *instance);
/* Reads the record. Done by cloche_instance_list(); after cloche_instance_open() the functions
 * below need it first. One thread at a time. */
CLOCHE_API int cloche_instance_refresh(cloche_instance *instance, cloche_err *err);
CLOCHE_API enum cloche_instance_state cloche_instance_state(const cloche_instance *instance);
/* "running", "stopped", "crashed". */
CLOCHE_API const char *cloche_instance_state_name(const cloche_instance *instance);
/* "" if there is none. */
CLOCHE_API const char *cloche_instance_name(const cloche_instance *instance);
CLOCHE_API const char *cloche_instance_provider(const cloche_instance *instance);
CLOCHE_API const char *cloche_instance_runtime(const cloche_instance *instance);
/* The first command that was started in it, as one line for people. */
CLOCHE_API const char *cloche_instance_command(const cloche_instance *instance);
/* Microseconds since 1970; 0 if it is not known (has not happened). */
CLOCHE_API uint64_t cloche_instance_created(const cloche_instance *instance);
CLOCHE_API uint64_t cloche_instance_ended(const cloche_instance *instance);
/* NULL if it has no such label. */
CLOCHE_API const char *cloche_instance_label(const cloche_instance *instance, const char *key);
/* The whole record, its configuration (secrets by name alone) and its commands as one JSON
 * document. */
CLOCHE_API const char *cloche_instance_json(const cloche_instance *instance);

/* --- its life --- */

/* Ends everything inside: TERM, and KILL after grace_ms (0: KILL at once). Returns when nothing of
 * it runs any more; one that has ended is fine. Its logs stay. */
CLOCHE_API int cloche_instance_stop(
	const cloche_instance *instance, uint64_t grace_ms, cloche_err *err);

/* Removes what an ended sandbox left: record and logs. Of one that runs only with force (which
 * kills it); otherwise CLOCHE_E_BUSY. */
CLOCHE_API int cloche_instance_remove(const cloche_instance *instance, bool force, cloche_err *err);

/* Removes all that have ended, in order or by a crash. fn (may be NULL) is told of each: its id and
 * whether it had crashed. */
typedef void (*cloche_prune_fn)(const char *id, bool crashed, void *user);
CLOCHE_API int cloche_instance_prune(cloche_prune_fn fn, void *user, cloche_err *err);

/* --- what it does --- */

/* All since it was made; 0 if it is not known. */
typedef struct cloche_stats {
	uint64_t at_us; /* a clock of its own, for rates between two calls */
	uint64_t uptime_ms;
	uint64_t cpu_us;
	uint64_t memory_bytes, memory_peak_bytes, memory_limit; /* limit 0: none */
	uint64_t pids, pids_peak, pids_limit;
	uint64_t io_read_bytes, io_write_bytes;
	uint64_t commands_running, commands_total;
	uint64_t network_allowed, network_blocked; /* requests */
	uint64_t network_sent, network_received;   /* bytes of their bodies, seen from the room */
} cloche_stats;
CLOCHE_API int cloche_instance_stats(
	const cloche_instance *instance, cloche_stats *ret, cloche_err *err);

/* Opens a port of the host's loopback that leads to guest_port inside, as long as the sandbox
 * lives. host_port 0: one that leads there already, else any free one. *ret_host_port is what it
 * became. */
CLOCHE_API int cloche_instance_forward(const cloche_instance *instance, uint16_t guest_port,
	uint16_t host_port, uint16_t *ret_host_port, cloche_err *err);

/* Puts list (borrowed) in the place of what the sandbox may reach: as a whole, or not at all. What
 * is under way and is not allowed any more is broken off; secrets stay as they are. Only a sandbox
 * that has a network takes one (else CLOCHE_E_UNSUPPORTED). ret may be NULL. */
typedef struct cloche_policy_change {
	uint32_t rules;  /* of the list */
	uint32_t closed; /* requests that were broken off */
} cloche_policy_change;
CLOCHE_API int cloche_instance_set_allowlist(const cloche_instance *instance,
	const cloche_allowlist *list, cloche_policy_change *ret, cloche_err *err);

/* --- logs --- */

typedef struct cloche_log cloche_log;

/* Opens the log of command number (cloche_run_number(); 0: the latest that has one). Also of a
 * sandbox that has ended. */
CLOCHE_API int cloche_log_open(
	const cloche_instance *instance, uint32_t number, cloche_log **ret, cloche_err *err);
CLOCHE_API void cloche_log_free(cloche_log *log);

CLOCHE_API uint32_t cloche_log_number(const cloche_log *log);
/* Offsets count the bytes that the command has printed on both streams together. Old output is
 * given up if there is too much: what is kept lies from start to end. Both move while the
 * command runs; ended: they will not any more. */
typedef struct cloche_log_extent {
	uint64_t start, end;
	bool ended;
} cloche_log_extent;
CLOCHE_API int cloche_log_extent_now(cloche_log *log, cloche_log_extent *ret, cloche_err *err);

/* A piece of one stream. */
typedef struct cloche_log_piece {
	uint64_t offset; /* of its first byte: later than asked for if that is not kept */
	size_t length;   /* 0: there is nothing (yet) */
	bool is_stderr;
	bool ended; /* the command has ended, and this was the last there is */
} cloche_log_piece;
/* Reads at most size bytes at an offset; does not wait. */
CLOCHE_API int cloche_log_read(cloche_log *log, uint64_t offset, void *buffer, size_t size,
	cloche_log_piece *ret, cloche_err *err);

/* Hands on everything from an offset, and what comes, until the command (or the sandbox) has ended
 * or the callback returns false; waits for the kernel to tell of changes. *ret_offset (may be NULL)
 * is where it ended: from there on another call goes on. */
typedef bool (*cloche_log_fn)(
	bool is_stderr, uint64_t offset, const void *data, size_t length, void *user);
CLOCHE_API int cloche_log_follow(cloche_log *log, uint64_t offset, cloche_log_fn fn, void *user,
	uint64_t *ret_offset, cloche_err *err);
/* Ends a following call soon; from any thread or a signal handler. */
CLOCHE_API void cloche_log_stop(cloche_log *log);

#ifdef __cplusplus
}
#endif
#endif
