/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of copies: finding paths, and single files. */
#include "base/fd.h"
#include "fileclient/session.h"
#include "files/replace.h"
#include "fs/fs.h"
#include "fs/hostpath.h"
#include "jail/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int files_host_error(struct cloche_err *err, int errnum, const char *verb, const char *path)
{
	const struct files_error e = {.sys_errno = errnum};

	return files_tell(err, verb, path, &e);
}

int files_host_find(
	const char *path, const char *verb, struct hostpath *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *home = fs_home();
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = hostpath_find(path, home, verb, ret, &why);

	if (r == 0)
		r = source_judge_path(ret, path, home, verb, &why);
	if (r < 0 && why.sys_errno)
		return files_host_error(err, why.sys_errno, verb, path);
	if (r < 0 && err)
		*err = why;
	return r;
}

struct host_file {
	int fd;
	int error; /* errno of a read or write that failed */
};

static long host_file_read(void *user, void *data, size_t size)
{
	struct host_file *file = user;
	ssize_t n;

	do
		n = read(file->fd, data, size);
	while (n < 0 && errno == EINTR);
	file->error = n < 0 ? errno : 0;
	return n;
}

int files_host_open(const char *path, const char *verb, struct stat *ret, struct cloche_err *err)
{
	static const struct files_error no_file = {
		.sys_errno = EINVAL, .why = "it is no regular file"};
	static const struct files_error is_link = {
		.sys_errno = ELOOP, .why = "it is a symbolic link"};
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_fd_ int fd = -1;
	int r = files_host_find(path, verb, &at, err);

	if (r < 0)
		return r;
	fd = openat(at.dir, at.name[0] ? at.name : ".",
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ELOOP)
		return files_tell(err, "read", path, &is_link);
	if (fd < 0 || fstat(fd, ret) < 0)
		return files_host_error(err, errno, "read", path);
	if (S_ISDIR(ret->st_mode))
		return files_host_error(err, EISDIR, "read", path);
	/* A FIFO left by a room could make us wait without end. */
	if (!S_ISREG(ret->st_mode))
		return files_tell(err, "read", path, &no_file);
	return TAKE_FD(fd);
}

int cloche_files_upload_file(
	cloche_files *f, const char *host_from, const char *to, cloche_err *err)
{
	struct stat st;
	_cleanup_fd_ int fd = files_host_open(host_from, "copy", &st, err);
	struct host_file file = {.fd = fd};
	int r;

	if (fd < 0)
		return fd;
	r = cloche_files_write(
		f, to, 0, st.st_mode & 0777, cloche_from_fn(host_file_read, &file), err);
	return file.error ? files_host_error(err, file.error, "read", host_from) : r;
}

static int host_file_write(void *user, const void *data, size_t length)
{
	struct host_file *file = user;
	int r = fd_write_all(file->fd, data, length);

	file->error = -r;
	return r;
}

int files_host_check_replaced(const struct hostpath *at, const char *path, struct cloche_err *err)
{
	static const struct files_error no_file = {
		.sys_errno = EINVAL, .why = "something that is no file is there"};
	struct stat st;

	if (!at->name[0])
		return files_host_error(err, EISDIR, "write", path);
	if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISREG(st.st_mode) ||
		S_ISLNK(st.st_mode))
		return 0;
	return files_tell(err, "write", path, &no_file);
}

int cloche_files_download_file(
	cloche_files *f, const char *from, const char *host_to, cloche_err *err)
{
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	_cleanup_(replace_abortp) struct replace new = REPLACE_NULL;
	struct host_file file = {.fd = -1};
	cloche_file_stat st;
	int r = cloche_files_stat(f, from, true, &st, err);

	if (r == 0)
		r = files_host_find(host_to, "write", &at, err);
	if (r == 0)
		r = files_host_check_replaced(&at, host_to, err);
	if (r < 0)
		return r;
	r = replace_begin(&new, at.dir, 0600);
	if (r < 0)
		return files_host_error(err, -r, "write", host_to);
	file.fd = new.fd;
	r = cloche_files_read(f, from, 0, UINT64_MAX, host_file_write, &file, err);
	if (r < 0)
		return file.error ? files_host_error(err, file.error, "write", host_to) : r;
	r = fchmod(new.fd, st.mode & 0777 & ~fs_umask()) < 0 ? -errno : 0;
	if (r == 0)
		r = replace_commit(&new, at.name, true);
	return r < 0 ? files_host_error(err, -r, "write", host_to) : 0;
}
