/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_MANAGER_H
#define CLOCHE_MANAGER_H
/* Managers are for programs that make many sandboxes. A manager gives all its sandboxes the same
 * defaults, limits how many run at a time, waits until the machine has memory for the next one,
 * knows which sandbox belongs to which run, and ends its sandboxes when the program ends. There is
 * no daemon: the managers of all processes of a user share the machine's memory, see the same
 * sandboxes (cloche_instance_list()), and do not touch each other's.
 *
 * If a program dies without a cleanup, its sandboxes are ended once their lifetime is over and
 * nothing runs in them: by the next cleanup of any manager, or the next command that lists
 * sandboxes.
 *
 * Functions may be called by any number of threads at a time, and in any number of jobs of one
 * thread (cloche/job.h), but not in a child that was forked without exec. A job that waits its turn
 * gives way, and leaves the queue when it is cancelled. Functions that return int return 0 or a
 * negated error code and describe the failure in err (which may be NULL). */

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

/* cloche_manager is declared in status.h. */

/* --- opening --- */

/* Open a manager. The defaults are two CPUs, 4096 MiB of memory, a lifetime and a timeout of 3600
 * seconds, no network, five runs at a time and a cleanup every five minutes, unless the AGENTGATE_
 * environment variables say otherwise (cloche(1)). If the default limit of CPUs or memory cannot be
 * enforced, that is only a warning; a limit that is set afterwards or by a variable is enforced, or
 * no sandbox is made. fn (may be NULL) is called with warnings and with what cleanups end, on any
 * thread, until the manager is closed. CLOCHE_E_USAGE: a variable has an invalid value. */
CLOCHE_API int cloche_manager_open(
	cloche_warning_fn fn, void *user, cloche_manager **ret, cloche_err *err);

/* Return the manager shared by the whole process. The first call opens it, without a function for
 * warnings. It cleans up at exit and must not be closed. */
CLOCHE_API int cloche_manager_shared(cloche_manager **ret, cloche_err *err);

/* End the manager's own thread and free the manager. NULL is allowed. No other thread may be using
 * it. Its sandboxes stay, and are treated like those of a program that has died. */
CLOCHE_API void cloche_manager_close(cloche_manager *manager);

/* Return the configuration that its sandboxes start from, borrowed. Change it before other threads
 * use the manager. */
CLOCHE_API cloche_sandbox *cloche_manager_defaults(cloche_manager *manager);
/* Return a copy of the defaults, to be changed for one sandbox. The caller frees it. NULL, with
 * errno, if out of memory or descriptors. */
CLOCHE_API cloche_sandbox *cloche_manager_configure(const cloche_manager *manager);

/* What can be set. CLOCHE_MANAGER_OPTIONS_INIT leaves everything as it is. */
typedef struct cloche_manager_options {
	size_t size;       /* of this struct; error.h */
	uint64_t max_runs; /* how many may run at a time; 0: no limit */
	/* Milliseconds after which a sandbox counts as left over if its program has died. Applies
	 * to sandboxes that are made from now on. */
	uint64_t lifetime_ms;
	/* How often the manager's own thread calls cloche_manager_collect(), in milliseconds. 0:
	 * never, and there is no such thread. */
	uint64_t cleanup_interval_ms;
	/* 1: cloche_manager_cleanup() is called when the process exits normally; after that the
	 * manager makes no more sandboxes. 0 (the default): it is not. */
	int cleanup_at_exit;
} cloche_manager_options;

#define CLOCHE_MANAGER_UNCHANGED UINT64_MAX
#define CLOCHE_MANAGER_OPTIONS_INIT                                                                \
	{                                                                                          \
		sizeof(cloche_manager_options), CLOCHE_MANAGER_UNCHANGED,                          \
			CLOCHE_MANAGER_UNCHANGED, CLOCHE_MANAGER_UNCHANGED, -1                     \
	}

/* Set options (borrowed for the call). */
CLOCHE_API int cloche_manager_set_options(
	cloche_manager *manager, const cloche_manager_options *options, cloche_err *err);

/* --- sandboxes --- */

/* Make a sandbox like cloche_instance_create(). It gets the labels cloche.manager, cloche.lifetime
 * (seconds) and, if run_id is not NULL, cloche.run-id.
 *
 * Wait, first come first served, for at most wait_ms milliseconds (UINT64_MAX: no limit), while the
 * maximum number is running, while the memory limits of all sandboxes made by managers of this
 * user, including this one, exceed the memory of the machine or of this process's control group, or
 * while this one's limit is more than the memory that is available now. A sandbox with a place
 * takes none of this machine's memory, so only the first of these counts. CLOCHE_E_BUSY: the time
 * is over. CLOCHE_E_LIMIT: the limit of this sandbox is more than all of the memory.
 * CLOCHE_E_USAGE: the configuration or run_id (1 to 128 printable characters) is wrong. */
CLOCHE_API int cloche_manager_create(cloche_manager *manager, const cloche_sandbox *sb,
	const char *run_id, uint64_t wait_ms, cloche_instance **ret, cloche_err *err);

/* End a sandbox of this manager and remove everything of it. If that fails, each
 * cloche_manager_collect() tries again. CLOCHE_E_NOT_FOUND: the manager has no such sandbox. */
CLOCHE_API int cloche_manager_destroy(cloche_manager *manager, const char *id, cloche_err *err);
/* Do the same for all sandboxes of a run, and store their number in *ret (may be NULL). Continue
 * after a failure, and return the first one. */
CLOCHE_API int cloche_manager_destroy_run(
	cloche_manager *manager, const char *run_id, size_t *ret, cloche_err *err);
/* Do the same for all sandboxes of this manager, then call cloche_manager_collect(). */
CLOCHE_API int cloche_manager_cleanup(cloche_manager *manager, cloche_err *err);
/* Remove what crashed sandboxes left, end sandboxes whose program has died, whose lifetime is over
 * and in which nothing runs, and try again to remove what could not be destroyed. */
CLOCHE_API int cloche_manager_collect(cloche_manager *manager, cloche_err *err);

/* A sandbox that this manager has made and not destroyed. Borrowed for the call. */
typedef struct cloche_managed {
	const char *id;
	const char *name;    /* "": none */
	const char *run_id;  /* "": none */
	uint64_t created_us; /* since 1970 */
	bool running;
} cloche_managed;
/* Call fn for each, the oldest first, until it returns false. fn may call the manager. */
typedef bool (*cloche_managed_fn)(const cloche_managed *sandbox, void *user);
CLOCHE_API int cloche_manager_each(
	cloche_manager *manager, cloche_managed_fn fn, void *user, cloche_err *err);

/* --- runs with a sandbox of their own (cloche/run.h, cloche/task.h) --- */

/* Wait like cloche_manager_create() until a run with this configuration may start, and count it as
 * running until cloche_manager_leave() is called with the same memory limit. */
CLOCHE_API int cloche_manager_enter(
	cloche_manager *manager, const cloche_sandbox *sb, uint64_t wait_ms, cloche_err *err);
CLOCHE_API void cloche_manager_leave(cloche_manager *manager, const cloche_sandbox *sb);

/* --- status --- */

/* cloche_status_read() tells of a manager, in the member "manager" of its document: id, provider
 * (that of the defaults), activeSandboxes, activeRuns, waiting, maxConcurrentRuns (null: no limit),
 * promisedMemoryMB, cleanupIntervalMs, lastCleanup, lastError (why a sandbox could not be made or
 * removed; null: that never happened). */

/* For a server's liveness check: return true if the manager's thread, if there is one, is alive.
 * False once the cleanup at exit has begun: the manager makes no more sandboxes. */
CLOCHE_API bool cloche_manager_is_live(cloche_manager *manager);
/* For a server's readiness check: return 0 if the provider of the defaults could make a sandbox
 * now, as far as cloche_provider_each() can tell. The error says why not. */
CLOCHE_API int cloche_manager_is_ready(cloche_manager *manager, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
