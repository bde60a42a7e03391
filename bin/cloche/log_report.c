/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the HTML page of a log. The file appears completely or not at all. */
#include "cli.h"
#include "log.h"

#include <cloche/host_file.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int exists(cloche_err *err, const char *path)
{
	return wrong_usage(
		err, "--force replaces the file", "log: cannot write %s: it exists already", path);
}

int write_report(cloche_oplog *log, const char *path, bool force, cloche_err *err)
{
	cloche_host_file *file;
	int fd, r;

	if (strcmp(path, "-") == 0)
		return cloche_oplog_report(log, STDOUT_FILENO, err);
	/* Check this before the work. */
	if (!force && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return exists(err, path);
	r = cloche_host_file_begin(path, 0600, &file, &fd, err);
	if (r < 0)
		return r;
	r = cloche_oplog_report(log, fd, err);
	if (r < 0) {
		cloche_host_file_abort(file);
		return r;
	}
	r = cloche_host_file_commit(file, force, err);
	return r == -CLOCHE_E_EXISTS ? exists(err, path) : r;
}
