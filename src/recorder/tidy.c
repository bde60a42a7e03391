/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: two things that somebody starts us for and does not wait for to the end, so
 * the first process exits as soon as the second one does the work, detached. Neither can write
 * anywhere but beneath the directories of logs and of contents.
 *
 * The writer of a log that has become long has it compacted. The supervisor of a sandbox that was
 * never completed, because whoever made it is gone, has its log removed, for which it waits; the
 * contents that no log names any more are removed after that, as all logs have to be read. */
#include "base/fd.h"
#include "ipc/statedir.h"
#include "jail/landlock.h"
#include "record/background.h"
#include "record/compact.h"
#include "record/logs.h"
#include "recorder/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LOGS = 3 };

/* Keep the descriptor (-1: none) besides the standard ones, and gain no rights any more. */
static bool tidy_prepare(int keep)
{
	return fd_sanitize_stdio() == 0 && fd_close_from(3, &keep, keep >= 0) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* Go on in another process. Return 0 there, else -1 with the exit status of this one. */
static int tidy_detach(int *ret_status)
{
	pid_t pid = fork();

	*ret_status = pid > 0 ? 0 : 125;
	return pid == 0 && setsid() >= 0 ? 0 : -1;
}

static enum oplog_sync tidy_sync(const char *name)
{
	if (strcmp(name, "always") == 0)
		return OPLOG_SYNC_ALWAYS;
	return strcmp(name, "never") == 0 ? OPLOG_SYNC_NEVER : OPLOG_SYNC_INTERVAL;
}

int compactor_program(const char *name, const char *sync)
{
	static const char *const writable[] = {"/proc/self/fd/3"};
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	struct compaction done;
	int status;

	if (!tidy_prepare(LOGS))
		return 125;
	if (tidy_detach(&status) < 0)
		return status;
	if (landlock_restrict(writable, ARRAY_SIZE(writable), NULL) < 0 ||
		oplog_open(&l, LOGS, name, true, NULL) < 0)
		return 125;
	l.sync = tidy_sync(sync);
	return oplog_compact(&l, false, &done, NULL) < 0 ? 125 : 0;
}

int remover_program(const char *id)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_(freep) char *logs_path = NULL, *blobs_path = NULL;
	_cleanup_fd_ int logs = -1, blobs = -1;
	uint64_t removed, bytes;
	int status;

	if (!rundir_is_id(str_from(id)) || !tidy_prepare(-1) ||
		statedir_path(STATEDIR_LOGS, &logs_path, NULL) < 0 ||
		statedir_path(STATEDIR_BLOBS, &blobs_path, NULL) < 0)
		return 125;
	logs = open(logs_path, flags);
	blobs = open(blobs_path, flags);
	const char *const writable[] = {logs_path, blobs_path};

	if (landlock_restrict(writable, ARRAY_SIZE(writable), NULL) < 0)
		return 125;
	/* Nothing was ever recorded if there is no such directory. */
	if (logs >= 0 && oplog_remove(logs, id, NULL) < 0)
		return 125;
	if (logs < 0 || blobs < 0)
		return 0;
	if (tidy_detach(&status) < 0)
		return status;
	return oplogs_collect(logs, blobs, &removed, &bytes, NULL) < 0 ? 125 : 0;
}
