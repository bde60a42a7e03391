/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_INSTANCE_H
#define CLOCHE_INSTANCE_H
/* A long-lived sandbox: created once, then used by any process of the user until it is stopped.
 * Commands in it are runs (cloche_run_new_in(), cloche/run.h); their output is kept in logs that
 * can be read at any offset while they run and afterwards.
 *
 * A cloche_instance is a handle that names a sandbox. It holds no connection: every function makes
 * its own. Freeing a handle never ends the sandbox.
 *
 * Threads: functions that take a const cloche_instance may be called by any number of threads at a
 * time. A cloche_log belongs to one thread, except for cloche_log_stop(). Only sandboxes of the
 * calling user are visible. Functions that return int return 0 or a negated error code and describe
 * the failure in err (which may be NULL). */

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
	CLOCHE_INSTANCE_STOPPED, /* ended normally; the logs stay until it is removed */
	CLOCHE_INSTANCE_CRASHED, /* its supervisor died; the next listing removes the rest */
};

/* --- creating and finding --- */

/* Create a sandbox that lives until it is stopped, its time to live has passed (see
 * cloche_sandbox_set("ttl")) or the machine shuts down. Return when the room and its network are
 * ready. If that fails, or if the caller exits meanwhile, nothing is left. sb is copied; its
 * timeout becomes the default of each command. fn (may be NULL) receives warnings during the call.
 */
CLOCHE_API int cloche_instance_create(const cloche_sandbox *sb, cloche_warning_fn fn, void *user,
	cloche_instance **ret, cloche_err *err);

/* Find a sandbox by its id, its name, or an unambiguous beginning of its id. CLOCHE_E_NOT_FOUND if
 * there is none. A full id is not looked up yet. */
CLOCHE_API int cloche_instance_open(const char *id_or_name, cloche_instance **ret, cloche_err *err);

/* Free the handle. NULL is allowed. */
CLOCHE_API void cloche_instance_free(cloche_instance *instance);

/* Call fn for each sandbox, the newest first; all: include those that have ended. The handle is
 * borrowed for the call. fn returns false to stop the listing. Also remove what crashed sandboxes
 * left, and end sandboxes left over from a manager that has died (cloche/manager.h). */
typedef bool (*cloche_instance_fn)(const cloche_instance *instance, void *user);
CLOCHE_API int cloche_instance_list(bool all, cloche_instance_fn fn, void *user, cloche_err *err);

/* --- properties: from the record, as of when the handle was made or last refreshed --- */

/* Return "sandbox-" and 21 characters. Borrowed until the handle is freed. */
CLOCHE_API const char *cloche_instance_id(const cloche_instance *instance);
/* Read the record again. cloche_instance_list() has done this already; after
 * cloche_instance_create() and cloche_instance_open() call it before the functions below. One
 * thread at a time. */
CLOCHE_API int cloche_instance_refresh(cloche_instance *instance, cloche_err *err);

/* What a refresh read. Strings are "" if there is none. */
typedef struct cloche_instance_info {
	size_t size; /* of this struct in the library: later versions append members */
	const char *id;
	enum cloche_instance_state state;
	const char *state_name; /* "running", "stopped", "crashed" */
	const char *name, *provider, *runtime;
	const char
		*isolation; /* "sandbox"; "landlock" or "none" for providers landlock, subprocess */
	const char *command; /* the first that was started in it, as one line for display */
	/* Microseconds since 1970; 0 if unknown or if it has not happened. */
	uint64_t created_us, ended_us;
	/* The whole record, the configuration (secrets by name only) and the commands, as one JSON
	 * document. */
	const char *json;
} cloche_instance_info;
/* Never NULL; borrowed until the next refresh or free. */
CLOCHE_API const cloche_instance_info *cloche_instance_info_of(const cloche_instance *instance);
/* Return the value of a label, or NULL if it has no such label; borrowed as above. */
CLOCHE_API const char *cloche_instance_label(const cloche_instance *instance, const char *key);

/* --- lifetime --- */

/* End everything inside: send TERM, and KILL after grace_ms (0: KILL at once). Return when nothing
 * is running any more; it is not an error if the sandbox has ended already. Its logs stay. */
CLOCHE_API int cloche_instance_stop(
	const cloche_instance *instance, uint64_t grace_ms, cloche_err *err);

/* Remove the record and logs of an ended sandbox. If it is running, kill it first if force is true,
 * otherwise fail with CLOCHE_E_BUSY. */
CLOCHE_API int cloche_instance_remove(const cloche_instance *instance, bool force, cloche_err *err);

/* Remove all sandboxes that have ended or crashed. fn (may be NULL) is called for each, with its id
 * and whether it had crashed. */
typedef void (*cloche_prune_fn)(const char *id, bool crashed, void *user);
CLOCHE_API int cloche_instance_prune(cloche_prune_fn fn, void *user, cloche_err *err);

/* --- activity --- */

/* Totals since the sandbox was created; 0 if unknown. */
typedef struct cloche_stats {
	size_t size;    /* set it to sizeof(cloche_stats): later versions append members */
	uint64_t at_us; /* on a clock of its own, for rates between two calls */
	uint64_t uptime_ms;
	uint64_t cpu_us;
	uint64_t memory_bytes, memory_peak_bytes, memory_limit; /* limit 0: none */
	uint64_t pids, pids_peak, pids_limit;
	uint64_t io_read_bytes, io_write_bytes;
	uint64_t commands_running, commands_total;
	uint64_t network_allowed, network_blocked; /* requests */
	uint64_t network_sent, network_received;   /* bytes of bodies, as the room sees them */
} cloche_stats;
/* CLOCHE_E_USAGE: size is not set. */
CLOCHE_API int cloche_instance_stats(
	const cloche_instance *instance, cloche_stats *ret, cloche_err *err);

/* Open a loopback port on the host that leads to guest_port inside, for as long as the sandbox
 * lives. host_port 0: reuse a port that leads there already, or take any free one. *ret_host_port
 * is the port that was opened. */
CLOCHE_API int cloche_instance_forward(const cloche_instance *instance, uint16_t guest_port,
	uint16_t host_port, uint16_t *ret_host_port, cloche_err *err);

/* Replace the sandbox's allowlist with list (borrowed), completely or not at all. Requests in
 * progress that are no longer allowed are aborted. Secrets stay as they are. CLOCHE_E_UNSUPPORTED
 * if the sandbox has no network. If it cannot be kept for forks (cloche/fork.h), that is an error,
 * and it holds in this sandbox all the same. ret may be NULL. */
typedef struct cloche_policy_change {
	uint32_t rules;  /* that hold now */
	uint32_t closed; /* requests that were aborted */
} cloche_policy_change;
CLOCHE_API int cloche_instance_set_allowlist(const cloche_instance *instance,
	const cloche_allowlist *list, cloche_policy_change *ret, cloche_err *err);
/* Add list to what holds in the sandbox now, in the same way. If others add something at the same
 * time, nothing is lost. */
CLOCHE_API int cloche_instance_add_allowlist(const cloche_instance *instance,
	const cloche_allowlist *list, cloche_policy_change *ret, cloche_err *err);

/* What was copied between this machine and a sandbox on another one. */
typedef struct cloche_synced {
	size_t size; /* set it to sizeof(cloche_synced): later versions append members */
	uint64_t came, came_bytes; /* files, directories and links that came here */
	uint64_t removed_here;     /* since they were removed there */
	uint64_t sent, sent_bytes; /* that went there */
	uint64_t removed_there;
	uint64_t kept_twice; /* changed on both sides: the sandbox's has another name now */
} cloche_synced;
/* Copy both ways what changed in the mounts of a sandbox on another machine while it goes on, by
 * the rules of its end: first what changed there comes here, then what changed here goes there. fn
 * (may be NULL) is told what a person has to know about single files, and each second how much was
 * copied. If the caller goes, it ends; each file is whole then, old or new. Afterwards
 * cloche_planted_take() has what this machine would obey. CLOCHE_E_UNSUPPORTED: the sandbox has no
 * copies, as it is on this machine. CLOCHE_E_BUSY: it is being done already. CLOCHE_E_BROKEN: some
 * could not be copied. CLOCHE_E_USAGE: size is not set. ret may be NULL. */
CLOCHE_API int cloche_instance_sync(const cloche_instance *instance, cloche_warning_fn fn,
	void *user, cloche_synced *ret, cloche_err *err);

/* --- logs --- */

typedef struct cloche_log cloche_log;

/* Open the log of a command by its number (cloche_run_result()->number; 0: the latest command with
 * a log). The sandbox may have ended. */
CLOCHE_API int cloche_log_open(
	const cloche_instance *instance, uint32_t number, cloche_log **ret, cloche_err *err);
CLOCHE_API void cloche_log_free(cloche_log *log);

/* What a log has now. Offsets count the bytes that the command has printed on both streams
 * together. */
typedef struct cloche_log_state {
	size_t size;     /* set it to sizeof(cloche_log_state): later versions append members */
	uint32_t number; /* of the command */
	/* Old output is dropped if there is too much; the bytes from start to end are kept. Both
	 * move while the command runs. */
	uint64_t start, end;
	bool ended; /* they do not move any more */
	/* How many bytes could not be logged, as on a full disk: the log has less than the command
	 * printed. */
	uint64_t missing;
	const char *missing_why; /* in words, valid until the next call; NULL: none are missing */
} cloche_log_state;
/* CLOCHE_E_USAGE: size is not set. */
CLOCHE_API int cloche_log_look(cloche_log *log, cloche_log_state *ret, cloche_err *err);

/* A piece of output from one stream. */
typedef struct cloche_log_piece {
	uint64_t offset; /* of the first byte; later than requested if that is gone */
	size_t length;   /* 0: nothing there (yet) */
	bool is_stderr;
	bool ended; /* the command has ended and there is no more output */
} cloche_log_piece;
/* Read at most size bytes at an offset, without waiting. */
CLOCHE_API int cloche_log_read(cloche_log *log, uint64_t offset, void *buffer, size_t size,
	cloche_log_piece *ret, cloche_err *err);

/* Pass all output from an offset on to fn, and wait for more, until the command (or the sandbox)
 * has ended or fn returns false. Waits for kernel notifications instead of polling. *ret_offset
 * (may be NULL) is the offset at which a later call continues. */
typedef bool (*cloche_log_fn)(
	bool is_stderr, uint64_t offset, const void *data, size_t length, void *user);
CLOCHE_API int cloche_log_follow(cloche_log *log, uint64_t offset, cloche_log_fn fn, void *user,
	uint64_t *ret_offset, cloche_err *err);
/* Make a running cloche_log_follow() return soon. May be called from any thread or a signal
 * handler. */
CLOCHE_API void cloche_log_stop(cloche_log *log);

#ifdef __cplusplus
}
#endif
#endif
