/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the writer of the log has started us and waits for our first process, which
 * exits at once. The second one does the work, detached. It can write only beneath the directory of
 * logs. */
#include "base/fd.h"
#include "jail/landlock.h"
#include "recorder/program.h"
#include "state/background.h"
#include "state/compact.h"

#include <sys/prctl.h>
#include <unistd.h>

enum { LOGS = 3 };

static enum oplog_sync policy(const char *name)
{
	if (strcmp(name, "always") == 0)
		return OPLOG_SYNC_ALWAYS;
	return strcmp(name, "never") == 0 ? OPLOG_SYNC_NEVER : OPLOG_SYNC_INTERVAL;
}

static int compact(const char *name, const char *sync)
{
	static const char *const writable[] = {"/proc/self/fd/3"};
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	struct compaction done;

	if (landlock_restrict(writable, ARRAY_SIZE(writable), NULL) < 0 ||
		oplog_open(&l, LOGS, name, true, NULL) < 0)
		return 125;
	l.sync = policy(sync);
	return oplog_compact(&l, false, &done, NULL) < 0 ? 125 : 0;
}

int compactor_program(const char *name, const char *sync)
{
	const int keep[] = {LOGS};
	pid_t pid;

	if (fd_sanitize_stdio() < 0 || fd_close_from(3, keep, ARRAY_SIZE(keep)) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 125;
	pid = fork();
	if (pid != 0)
		return pid < 0 ? 125 : 0;
	return setsid() < 0 ? 125 : compact(name, sync);
}
