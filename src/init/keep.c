/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a call that changes a mode waits for the guard, which opens the target as
 * the caller would, and changes the mode of what it has opened if that lies in what the room may
 * write. What the caller's memory and descriptors say a moment later does not matter, and the room
 * cannot move a file of others to where its own are. */
#include "init/keep.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "init/mode.h"

#include <errno.h>

enum { MODES = 01777 }; /* set-id bits are refused anyway */

static int keep_decide(const struct keep *k, const struct asked *a, const struct mode_call *q)
{
	_cleanup_fd_ int fd = mode_open(a, q);
	char path[PATH_MAX];

	if (!asked_is_valid(a))
		return -ESRCH;
	if (fd < 0)
		return fd == -ENOENT && q->path == 0 ? -EBADF : fd;
	if (fd_path(fd, path) < 0 || !fs_is_within_any(path, k->own))
		return -EPERM;
	return fd_chmod(fd, q->mode & MODES);
}

bool keep_answers(const struct keep *k, const struct asked *a, int *ret)
{
	struct mode_call q;

	if (!mode_read_call(a, &q))
		return false;
	*ret = keep_decide(k, a, &q);
	return true;
}
