/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a new file has no name until it is complete, so that nothing is left if we
 * are killed. File systems without unnamed files get a temporary name. */
#include "base/fd.h"
#include "fileclient/session.h"
#include "files/replace.h"
#include "fs/hostpath.h"

#include <cloche/host_file.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct cloche_host_file {
	struct hostpath at;
	struct replace named; /* unless the file has no name yet */
	int fd;
	bool device;
	char *path;
};

int cloche_host_open(const char *path, int *ret_fd, cloche_err *err)
{
	struct stat st;
	int fd;

	if (hostpath_is_device(path)) {
		fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return files_host_error(err, errno, "read", path);
	} else {
		fd = files_host_open(path, "read", &st, err);
		if (fd < 0)
			return fd;
	}
	*ret_fd = fd;
	return 0;
}

void cloche_host_file_abort(cloche_host_file *f)
{
	if (!f)
		return;
	/* The temporary file has the same descriptor. */
	if (f->named.fd >= 0)
		replace_abort(&f->named);
	else
		fd_close(f->fd);
	hostpath_done(&f->at);
	free(f->path);
	free(f);
}

static int open_new(struct cloche_host_file *f, mode_t mode)
{
	int r;

	f->fd = openat(f->at.dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	if (f->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	r = replace_begin(&f->named, f->at.dir, mode);
	f->fd = f->named.fd;
	return r;
}

static int begin(struct cloche_host_file *f, const char *path, mode_t mode, struct cloche_err *err)
{
	int r;

	f->path = strdup(path);
	if (!f->path)
		return err_nomem(err);
	if (hostpath_is_device(path)) {
		f->device = true;
		f->fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
		return f->fd < 0 ? files_host_error(err, errno, "write", path) : 0;
	}
	r = files_host_find(path, "write", &f->at, err);
	if (r == 0)
		r = files_host_check_replaced(&f->at, path, err);
	if (r < 0)
		return r;
	r = open_new(f, mode);
	return r < 0 ? files_host_error(err, -r, "write", path) : 0;
}

int cloche_host_file_begin(
	const char *path, unsigned mode, cloche_host_file **ret, int *ret_fd, cloche_err *err)
{
	struct cloche_host_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_nomem(err);
	f->at = HOSTPATH_NULL;
	f->named = REPLACE_NULL;
	f->fd = -1;
	r = begin(f, path, mode, err);
	if (r < 0) {
		cloche_host_file_abort(f);
		return r;
	}
	*ret = f;
	*ret_fd = f->fd;
	return 0;
}

/* link() does not replace a file, rename() needs a name. */
static int give_name(struct cloche_host_file *f, bool over)
{
	char name[REPLACE_NAME_MAX], unnamed[64];

	if (f->named.fd >= 0) {
		f->fd = -1; /* the same descriptor, which is closed here */
		return replace_commit(&f->named, f->at.name, over);
	}
	snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", f->fd);
	replace_name(name);
	if (linkat(AT_FDCWD, unnamed, f->at.dir, over ? name : f->at.name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return over ? replace_rename(f->at.dir, name, f->at.name, true) : 0;
}

int cloche_host_file_commit(cloche_host_file *f, bool over, cloche_err *err)
{
	int r = f->device ? 0 : give_name(f, over);

	if (r < 0)
		r = files_host_error(err, -r, "write", f->path);
	else if (f->fd >= 0 && close(TAKE_FD(f->fd)) < 0)
		r = files_host_error(err, errno, "write", f->path);
	cloche_host_file_abort(f);
	return r;
}
