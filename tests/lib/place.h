/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <fcntl.h>
#include <stdbool.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Where a test makes and removes thousands of files: in memory, if that has the room and the
 * features that these tests need. A disk's file system passes over what was removed a moment ago at
 * each new file, which slows all tests that run at the same time. */
static inline const char *fast_place(void)
{
	static const char memory[] = "/dev/shm";
	struct statvfs v;
	int fd;
	bool good;

	if (statvfs(memory, &v) < 0 || (double)v.f_bavail * (double)v.f_frsize < 1e9)
		return "/tmp";
	fd = open(memory, O_TMPFILE | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return "/tmp";
	good = fsetxattr(fd, "user.cloche", "1", 1, 0) == 0;
	close(fd);
	return good ? memory : "/tmp";
}
