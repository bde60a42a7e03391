/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_FORK_H
#define CLOCHE_FORK_H
/* Copies of a sandbox that runs: made with the same options, with its files, variables and storage
 * as they are at the moment, each with a life (and an operation log) of its own. */

#include <stdbool.h>

#include "error.h"
#include "files.h"
#include "instance.h"
#include "secrets.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLOCHE_FORKS_MAX = 100, CLOCHE_SNAPSHOTS_MAX = 32 };

typedef struct cloche_fork_options {
	unsigned count;   /* how many; 0 is 1, at most CLOCHE_FORKS_MAX */
	const char *name; /* of the one, of several with "-1", "-2", ... behind it; NULL: none */
	/* Directories of the host that the sandbox may write to are mounted in the forks, too;
	 * else a fork has copies of what is in them among its own files. */
	bool share;
	/* Masked secrets for those that the sandbox was made with, by the same names: their values
	 * are kept nowhere. Borrowed; NULL: none. CLOCHE_E_CONFIG if one is missing. */
	const cloche_secrets *secrets;
	cloche_files_progress_fn progress; /* told of bytes copied; NULL: nobody */
	void *progress_user;
} cloche_fork_options;

/* Told of each fork that is complete; the handle is borrowed for the call. False: no more. */
typedef bool (*cloche_fork_fn)(const cloche_instance *fork, void *user);

/* Makes forks of a sandbox that runs. Its processes stand still meanwhile (SIGSTOP), so that the
 * copies are of one moment; they are not copied. One that begins in it meanwhile does run. A fork
 * that is not complete goes with the caller, however that ends; those that fn was told of stay.
 * options (borrowed, as all it names) may be NULL; warning (may be NULL) is told of what is not
 * copied. Not for one that keeps its changes itself: a fork does not keep them. CLOCHE_E_NOT_FOUND
 * if the sandbox has ended, CLOCHE_E_UNSUPPORTED if an older version made it. */
CLOCHE_API int cloche_instance_fork(const cloche_instance *instance,
	const cloche_fork_options *options, cloche_fork_fn fn, cloche_warning_fn warning,
	void *user, cloche_err *err);

/* Keeps what a sandbox that runs holds at this moment, its files, variables and storage, as an
 * operation log ID@NAME (cloche/state.h): cloche_oplog_open() and cloche_oplog_replay() make it
 * again, cloche_oplog_remove() removes it. It stays when the sandbox is gone. The same holds as for
 * a fork. CLOCHE_E_EXISTS if there is one of that name, CLOCHE_E_LIMIT above
 * CLOCHE_SNAPSHOTS_MAX. */
CLOCHE_API int cloche_instance_snapshot(const cloche_instance *instance, const char *name,
	cloche_warning_fn warning, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
