/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a directory belongs to the process that holds the lock of the file in it. A
 * crash releases the lock, so a process that gets it without waiting knows that the owner is dead,
 * whatever the records say, and may clean up. It holds the lock while it does so.
 *
 * A directory is made under a name that no list shows, locked, and only then renamed to the
 * sandbox's id: a directory with an id is never unlocked while its maker lives. A sweep that finds
 * an unfinished directory may remove it; the maker notices this (the lock is taken, or the locked
 * file has no name any more) and starts again. */
#include "manager/own.h"
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "manager/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define NEW_SOCKET RUNDIR_SOCKET ".new"

enum { TRIES = 8, MAX_OWNED = 64 * 1024, BACKLOG = 128, NEW_RANDOM = 12 };

/* Return 1 if the directory is ours, 0 if a sweep was faster (try again), or -errno. */
static int try_make(struct sandbox_dir *d, const char *id)
{
	char made[sizeof(MANAGER_NEW) + NEW_RANDOM] = MANAGER_NEW;
	_cleanup_fd_ int fd = -1, lock = -1;
	struct stat st;
	int r;

	rand_id(made + sizeof(MANAGER_NEW) - 1, NEW_RANDOM);
	if (mkdirat(d->base, made, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = openat(d->base, made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	lock = openat(fd, RUNDIR_LOCK, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (fstat(lock, &st) < 0)
		return -errno;
	if (st.st_nlink == 0)
		return 0;
	r = fs_rename_new(d->base, made, id);
	if (r < 0) {
		manager_remove_dir(d->base, fd, made);
		return r;
	}
	d->fd = TAKE_FD(fd);
	d->lock = TAKE_FD(lock);
	return 1;
}

int sandbox_dir_failed(const struct sandbox_dir *d, int r, struct cloche_err *err)
{
	char path[PATH_MAX];

	if (r != -E_SYSTEM || fd_path(d->base, path) < 0)
		return r;
	err_hint(err,
		"%s has to be writable and needs some room; CLOCHE_RUNTIME_DIR names another "
		"directory",
		path);
	return err_wrap(err, r, "keep a sandbox in %s", path);
}

int sandbox_dir_make(struct sandbox_dir *d, const char *id, struct cloche_err *err)
{
	int r = 0;

	if (d->lock >= 0)
		return 0;
	d->base = rundir_open(err);
	if (d->base < 0)
		return d->base;
	for (int i = 0; i < TRIES && r == 0; i++)
		r = try_make(d, id);
	if (r == -EEXIST || r == -ENOTEMPTY)
		return err_set(err, E_EXISTS, "sandbox %s exists already", id);
	if (r <= 0)
		return sandbox_dir_failed(
			d, err_sys(err, r ? -r : EAGAIN, "make its directory"), err);
	d->id = strdup(id);
	return d->id ? 0 : err_nomem(err);
}

int sandbox_dir_take_name(struct sandbox_dir *d, const char *name, struct cloche_err *err)
{
	_cleanup_(freep) char *copy = strdup(name);
	int r;

	if (!copy)
		return err_nomem(err);
	r = names_take(d->base, name, d->id, err);
	if (r == 0)
		d->name = TAKE_PTR(copy);
	return r;
}

int sandbox_dir_plan(struct sandbox_dir *d, const struct provider *provider,
	const struct room_spec *spec, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_OWNED);
	size_t head;
	int r;

	if (buf_printf(&b, "%s\n", provider->path ? provider->path : provider->name) < 0)
		return err_nomem(err);
	head = buf_len(&b);
	r = provider->plan(provider, spec, &b, err);
	if (r < 0)
		return r;
	if (buf_len(&b) == head)
		return 0;
	r = sandbox_dir_make(d, spec->id, err);
	if (r < 0)
		return r;
	r = fs_write_atomic(d->fd, RUNDIR_OWNED, buf_str(&b), 0600, false, err);
	return sandbox_dir_failed(d, r, err);
}

int sandbox_dir_write_record(struct sandbox_dir *d, struct str json, struct cloche_err *err)
{
	int r = fs_write_atomic(d->fd, RUNDIR_RECORD, json, 0600, false, err);

	return sandbox_dir_failed(d, r, err);
}

int sandbox_dir_listen(struct sandbox_dir *d, struct cloche_err *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int r = rundir_word_make(d->fd, d->word, err);

	if (r < 0)
		return sandbox_dir_failed(d, r, err);
	/* Use the descriptor's path, so that the length of the directory's path does not matter. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" NEW_SOCKET, d->fd);
	/* It gets its name when it listens, and whoever waits for that is told of the name. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		listen(fd, BACKLOG) < 0 || renameat(d->fd, NEW_SOCKET, d->fd, RUNDIR_SOCKET) < 0)
		return sandbox_dir_failed(d, err_sys(err, errno, "make the control socket"), err);
	d->listen = TAKE_FD(fd);
	return 0;
}

static void unlock(struct sandbox_dir *d)
{
	d->fd = fd_close(d->fd);
	d->lock = fd_close(d->lock);
	d->base = fd_close(d->base);
	free(d->id);
	free(d->name);
	d->id = d->name = NULL;
}

int sandbox_dir_reap(struct sandbox_dir *d, struct cloche_err *err)
{
	return d->fd >= 0 ? manager_reap(d->fd, err) : 0;
}

void sandbox_dir_remove(struct sandbox_dir *d)
{
	d->listen = fd_close(d->listen);
	if (d->lock >= 0 && d->id) {
		/* No list shows a sandbox that is being removed, so its name is free by then. */
		if (d->name)
			names_drop(d->base, d->id);
		manager_remove_dir(d->base, d->fd, d->id);
	}
	unlock(d);
}

void sandbox_dir_leave(struct sandbox_dir *d)
{
	d->listen = fd_close(d->listen);
	if (d->fd >= 0)
		manager_tidy(d->fd);
	unlock(d);
}
