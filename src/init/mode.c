/* SPDX-License-Identifier: Apache-2.0 */
#include "init/mode.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

bool mode_read_call(const struct asked *from, struct mode_call *ret)
{
	const uint64_t *a = from->args;

	*ret = (struct mode_call){.dir = AT_FDCWD};
	switch (from->call) {
#ifdef SYS_chmod
	case SYS_chmod:
		ret->path = a[0];
		ret->mode = (mode_t)a[1];
		return true;
#endif
	case SYS_fchmod:
		ret->dir = (int)a[0];
		ret->mode = (mode_t)a[1];
		ret->flags = AT_EMPTY_PATH;
		return true;
	case SYS_fchmodat2:
		ret->flags = (int)a[3];
		/* fall through */
	case SYS_fchmodat:
		ret->dir = (int)a[0];
		ret->path = a[1];
		ret->mode = (mode_t)a[2];
		return true;
	}
	return false;
}

static int mode_read_path(const struct asked *a, const struct mode_call *q, char ret[PATH_MAX])
{
	if (q->path)
		return asked_read_text(a, q->path, ret, PATH_MAX);
	ret[0] = '\0';
	return q->flags & AT_EMPTY_PATH ? 0 : -EFAULT;
}

/* What "self" is for the caller, which leads to us here. */
static const char *mode_after_self(const char *path)
{
	static const char *const names[] = {"/proc/self/", "/proc/thread-self/"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(path, names[i], strlen(names[i])) == 0)
			return path + strlen(names[i]);
	return NULL;
}

int mode_open(const struct asked *a, const struct mode_call *q)
{
	const int flags = O_PATH | O_CLOEXEC | (q->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
	char path[PATH_MAX], of[PATH_MAX + 64];
	_cleanup_fd_ int dir = -1;
	const char *self;
	int fd, r = mode_read_path(a, q, path);

	if (r < 0)
		return r;
	self = mode_after_self(path);
	if (self)
		snprintf(of, sizeof(of), "/proc/%d/%s", (int)a->thread, self);
	else if (q->dir == AT_FDCWD)
		snprintf(of, sizeof(of), "/proc/%d/cwd", (int)a->thread);
	else
		snprintf(of, sizeof(of), "/proc/%d/fd/%d", (int)a->thread, q->dir);
	if (self || (!path[0] && q->flags & AT_EMPTY_PATH)) {
		fd = open(of, self ? flags : O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (path[0] != '/') {
		dir = open(of, O_PATH | O_CLOEXEC);
		if (dir < 0)
			return -errno;
	}
	fd = openat(dir, path, flags);
	return fd < 0 ? -errno : fd;
}
