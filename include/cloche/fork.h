/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_FORK_H
#define CLOCHE_FORK_H
/* Forks: copies of a running sandbox, made with the same options and with its current files,
 * variables and storage. Each fork has its own lifetime and its own operation log. */

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "files.h"
#include "instance.h"
#include "secrets.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLOCHE_FORKS_MAX = 100, CLOCHE_SNAPSHOTS_MAX = 32 };

typedef struct cloche_fork_options {
	size_t size;      /* of this struct; error.h */
	unsigned count;   /* 0 means 1; at most CLOCHE_FORKS_MAX */
	const char *name; /* if count > 1, "-1", "-2", ... is appended; NULL: none */
	/* True: host directories that the sandbox may write to are mounted in the forks too. False:
	 * each fork gets copies of their contents among its own files. */
	bool share;
	/* Masked secrets with the names of those that the sandbox was made with, because their
	 * values are not stored. Borrowed; NULL: none. CLOCHE_E_CONFIG if one is missing. */
	const cloche_secrets *secrets;
	cloche_files_progress_fn progress; /* called with the bytes copied so far; may be NULL */
	void *progress_user;
} cloche_fork_options;

#define CLOCHE_FORK_INIT                                                                           \
	{                                                                                          \
		sizeof(cloche_fork_options), 0, NULL, false, NULL, NULL, NULL                      \
	}

/* Receives each complete fork; the handle is borrowed for the call. Returns false to stop. */
typedef bool (*cloche_fork_fn)(const cloche_instance *fork, void *user);

/* Fork a running sandbox. Its processes are stopped meanwhile (SIGSTOP), so that the copies show a
 * single moment; processes are not copied. A process that starts during the call does run. When
 * the caller exits, however that happens, incomplete forks are removed with their logs; those that
 * fn has received stay. options (may be NULL) and everything in it is borrowed; warning (may be
 * NULL) is told what is not copied. If the sandbox keeps its changes in a directory, the forks do
 * not. CLOCHE_E_NOT_FOUND if the sandbox has ended, CLOCHE_E_UNSUPPORTED if an older version made
 * it. */
CLOCHE_API int cloche_instance_fork(const cloche_instance *instance,
	const cloche_fork_options *options, cloche_fork_fn fn, cloche_warning_fn warning,
	void *user, cloche_err *err);

/* Save the files, variables and storage that a running sandbox has now as an operation log ID@NAME
 * (cloche/state.h). Restore it with cloche_oplog_open() and cloche_oplog_replay(), remove it with
 * cloche_oplog_remove(). It remains after the sandbox is gone. Processes, warnings and errors are
 * as for a fork. Also CLOCHE_E_EXISTS if the name is taken, CLOCHE_E_LIMIT if the
 * sandbox has CLOCHE_SNAPSHOTS_MAX already. */
CLOCHE_API int cloche_instance_snapshot(const cloche_instance *instance, const char *name,
	cloche_warning_fn warning, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
