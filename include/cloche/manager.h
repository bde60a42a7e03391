/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_MANAGER_H
#define CLOCHE_MANAGER_H
/* For programs that make many sandboxes: gives each the same defaults, lets no more run at a time
 * than was said and than the machine has memory for, knows which sandbox belongs to which run, and
 * ends them when the program ends. There is no daemon: managers of any number of processes of one
 * user share the machine's memory, see the same sandboxes (cloche_instance_list()), and leave each
 * other's alone.
 *
 * If a program dies without a cleanup, its sandboxes end when nothing runs in them and their
 * lifetime is over: the next manager's cleanup, or the next command that lists sandboxes, sees to
 * that.
 *
 * Functions may be called by any number of threads at a time, but not in a child that was forked
 * without exec. Functions that return int return 0 or a negated error code and describe the failure
 * in err (which may be NULL). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "instance.h"
#include "sandbox.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_manager cloche_manager;

/* --- opening --- */

/* Opens a manager. Its defaults are two CPUs, 4096 MiB of memory, a lifetime and a timeout of 3600
 * seconds, no network, five runs at a time and a cleanup every five minutes, or what the AGENTGATE_
 * variables of the environment say (cloche(1)); limits that nobody asked for are no error if
 * they cannot be enforced. fn (may be NULL) is told of warnings and of what cleanups end, by any
 * thread, until the manager is closed. CLOCHE_E_USAGE: a variable's value is none. */
CLOCHE_API int cloche_manager_open(
	cloche_warning_fn fn, void *user, cloche_manager **ret, cloche_err *err);

/* The one of this process, opened at the first call without a function for warnings; it has its
 * cleanup at exit, and is not closed. */
CLOCHE_API int cloche_manager_shared(cloche_manager **ret, cloche_err *err);

/* Ends its own thread and frees it; NULL is fine. No other thread may use it. Its sandboxes stay as
 * those of a program that has died. */
CLOCHE_API void cloche_manager_close(cloche_manager *manager);

/* What sandboxes begin with, borrowed: change it before other threads use the manager. */
CLOCHE_API cloche_sandbox *cloche_manager_defaults(cloche_manager *manager);
/* A copy of the defaults to be changed for one sandbox, and freed by the caller. NULL on lack of
 * memory. */
CLOCHE_API cloche_sandbox *cloche_manager_configure(const cloche_manager *manager);

/* How many may run at a time; 0: any number. */
CLOCHE_API void cloche_manager_set_max_runs(cloche_manager *manager, unsigned runs);
/* After how many milliseconds a sandbox counts as left over if its program has died. Holds for
 * those that are made from now on. */
CLOCHE_API void cloche_manager_set_lifetime(cloche_manager *manager, uint64_t milliseconds);
/* How often cloche_manager_collect() is called by a thread of the manager's own; 0: never, and
 * there is no such thread. */
CLOCHE_API int cloche_manager_set_cleanup_interval(
	cloche_manager *manager, uint64_t milliseconds, cloche_err *err);
/* Whether cloche_manager_cleanup() is called when the process exits in order; from then on it makes
 * no more. Default: false. */
CLOCHE_API int cloche_manager_set_cleanup_at_exit(
	cloche_manager *manager, bool at_exit, cloche_err *err);

/* --- sandboxes --- */

/* Makes a sandbox as cloche_instance_create() does. It has the labels cloche.manager,
 * cloche.lifetime (seconds) and, if run_id is not NULL, cloche.run-id.
 *
 * If as many run as may, or the memory limits of all sandboxes that managers of this user have
 * made exceed the memory of the machine, or of a control group that this process runs in, or its
 * own is more than is available now, this waits, first come first served, for wait_ms milliseconds
 * (UINT64_MAX: for ever). CLOCHE_E_BUSY: the time is over; CLOCHE_E_LIMIT: there is less memory
 * than the limit of this one; CLOCHE_E_USAGE: the configuration or run_id (1 to 128 printable
 * characters) is wrong. */
CLOCHE_API int cloche_manager_create(cloche_manager *manager, const cloche_sandbox *sb,
	const char *run_id, uint64_t wait_ms, cloche_instance **ret, cloche_err *err);

/* Ends a sandbox of this manager and removes all of it. What fails is tried again by each
 * cloche_manager_collect(). CLOCHE_E_NOT_FOUND: it has no such sandbox. */
CLOCHE_API int cloche_manager_destroy(cloche_manager *manager, const char *id, cloche_err *err);
/* The same for all of a run; how many there were is in *ret (may be NULL). Goes on after a failure,
 * and returns the first one. */
CLOCHE_API int cloche_manager_destroy_run(
	cloche_manager *manager, const char *run_id, size_t *ret, cloche_err *err);
/* The same for all sandboxes of this manager, and then cloche_manager_collect(). */
CLOCHE_API int cloche_manager_cleanup(cloche_manager *manager, cloche_err *err);
/* Removes what crashed sandboxes left, ends those whose program has died, in which nothing runs and
 * whose lifetime is over, and tries again what could not be destroyed. */
CLOCHE_API int cloche_manager_collect(cloche_manager *manager, cloche_err *err);

/* A sandbox that this manager has made and not destroyed. Borrowed for the call. */
typedef struct cloche_managed {
	const char *id;
	const char *name;    /* "": none */
	const char *run_id;  /* "": none */
	uint64_t created_us; /* since 1970 */
	bool running;
} cloche_managed;
/* Calls fn with each, the oldest first, until it returns false. fn may call the manager. */
typedef bool (*cloche_managed_fn)(const cloche_managed *sandbox, void *user);
CLOCHE_API int cloche_manager_each(
	cloche_manager *manager, cloche_managed_fn fn, void *user, cloche_err *err);

/* --- runs with a sandbox of their own (cloche/run.h, cloche/task.h) --- */

/* Waits as cloche_manager_create() until a run of this configuration may begin, and counts it as
 * one that runs until cloche_manager_leave() with the same memory limit. */
CLOCHE_API int cloche_manager_enter(
	cloche_manager *manager, const cloche_sandbox *sb, uint64_t wait_ms, cloche_err *err);
CLOCHE_API void cloche_manager_leave(cloche_manager *manager, const cloche_sandbox *sb);

/* --- how it is --- */

/* cloche_status_read(), with a member "manager" in the document: id, provider (what the defaults
 * say), activeSandboxes, activeRuns, waiting, maxConcurrentRuns (null: any number),
 * promisedMemoryMB, cleanupIntervalMs, lastCleanup, lastError. */
CLOCHE_API int cloche_manager_status(cloche_manager *manager, cloche_status **ret, cloche_err *err);
/* For a server's check of whether it lives: the manager's thread, if there is one, works. */
CLOCHE_API bool cloche_manager_is_live(cloche_manager *manager);
/* For a server's check of whether it can take work: a sandbox of the defaults' provider could be
 * made now. The error says why not. */
CLOCHE_API int cloche_manager_is_ready(cloche_manager *manager, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
