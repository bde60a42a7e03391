/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the supervisor of a sandbox that was never completed has started us, because
 * whoever made the sandbox is gone. It waits for our first process, which removes the log. The
 * second one removes the contents that no log names any more, detached, as all logs have to be read
 * for that. Both can write only beneath the directories of logs and of contents. */
#include "base/fd.h"
#include "ipc/statedir.h"
#include "jail/landlock.h"
#include "recorder/program.h"
#include "state/logs.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int collect(int logs, int blobs)
{
	uint64_t removed, bytes;

	return oplogs_collect(logs, blobs, &removed, &bytes, NULL) < 0 ? 125 : 0;
}

int remover_program(const char *id)
{
	_cleanup_(freep) char *logs_path = NULL, *blobs_path = NULL;
	_cleanup_fd_ int logs = -1, blobs = -1;
	const char *writable[2];
	pid_t pid;

	if (!rundir_is_id(str_from(id)) || fd_sanitize_stdio() < 0 ||
		fd_close_from(3, NULL, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		statedir_path(STATEDIR_LOGS, &logs_path, NULL) < 0 ||
		statedir_path(STATEDIR_BLOBS, &blobs_path, NULL) < 0)
		return 125;
	logs = open_dir(logs_path);
	blobs = open_dir(blobs_path);
	writable[0] = logs_path;
	writable[1] = blobs_path;
	if (landlock_restrict(writable, ARRAY_SIZE(writable), NULL) < 0)
		return 125;
	/* Nothing was ever recorded if there is no such directory. */
	if (logs >= 0 && oplog_remove(logs, id, NULL) < 0)
		return 125;
	if (logs < 0 || blobs < 0)
		return 0;
	pid = fork();
	if (pid != 0)
		return pid < 0 ? 125 : 0;
	return setsid() < 0 ? 125 : collect(logs, blobs);
}
