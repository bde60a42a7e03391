/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the HTML page of a log. The file appears completely or not at all: where the file system
 * supports it, the file has no name until it is finished, so that not even a signal leaves a part
 * of it. */
#include "cli.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(cloche_err *err, const char *path, int number)
{
	return wrong_usage(err, number == EEXIST ? "--force replaces the file" : NULL,
		"log: cannot write %s: %s", path,
		number == EEXIST ? "it exists already" : strerror(number));
}

/* Return the directory of path. The caller frees it. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

/* Link the file under a temporary name, then rename it, which replaces path atomically. */
static int replace(const char *fd_name, const char *path)
{
	char *other = NULL;
	int r = -ENOMEM;

	if (asprintf(&other, "%s.%d.tmp", path, (int)getpid()) < 0)
		return r;
	r = linkat(AT_FDCWD, fd_name, AT_FDCWD, other, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
	if (r == 0 && rename(other, path) < 0) {
		r = -errno;
		unlink(other);
	}
	free(other);
	return r;
}

static int write_unnamed(cloche_oplog *log, int fd, const char *path, bool force, cloche_err *err)
{
	char name[64];
	int r = cloche_oplog_report(log, fd, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	r = linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
	if (r == -EEXIST && force)
		r = replace(name, path);
	return r < 0 ? failed(err, path, -r) : 0;
}

/* Rename `other` to path. link() does not replace an existing file. Where links are not supported,
 * rely on the earlier check. */
static int give_name(const char *other, const char *path, bool force)
{
	if (!force && link(other, path) == 0)
		return unlink(other) < 0 ? -errno : 0;
	if (!force && errno != EPERM && errno != EOPNOTSUPP)
		return -errno;
	return rename(other, path) < 0 ? -errno : 0;
}

/* For file systems without unnamed files. */
static int write_named(cloche_oplog *log, const char *path, bool force, cloche_err *err)
{
	char *other = NULL;
	int fd, r;

	if (asprintf(&other, "%s.%d.tmp", path, (int)getpid()) < 0)
		return failed(err, path, ENOMEM);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? failed(err, path, errno) : cloche_oplog_report(log, fd, err);
	if (r == 0) {
		r = give_name(other, path, force);
		r = r < 0 ? failed(err, path, -r) : 0;
	}
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && r < 0)
		unlink(other);
	free(other);
	return r;
}

int write_report(cloche_oplog *log, const char *path, bool force, cloche_err *err)
{
	char *dir = NULL;
	int fd, r;

	if (strcmp(path, "-") == 0)
		return cloche_oplog_report(log, STDOUT_FILENO, err);
	/* Check this before the work. */
	if (!force && access(path, F_OK) == 0)
		return failed(err, path, EEXIST);
	dir = directory_of(path);
	if (!dir)
		return failed(err, path, ENOMEM);
	fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		r = write_named(log, path, force, err);
	else
		r = fd < 0 ? failed(err, path, errno) : write_unnamed(log, fd, path, force, err);
	if (fd >= 0)
		close(fd);
	free(dir);
	return r;
}
