/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a directory belongs to whoever holds the lock of the file in it. A crash
 * releases the lock, so whoever gets it without waiting knows that the owner is dead, whatever the
 * records say, and may clean up. While it does so it holds the lock itself.
 *
 * Between making a directory and locking its file there is a moment in which a sweep may take it
 * for a leftover. The maker notices afterwards (the file it locked has no name any more, or the
 * lock is taken) and begins again. */
#include "rundirs.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/fs.h"
#include "ipc/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TRIES = 8, MAX_RECORD = 64 * 1024, BACKLOG = 64 };

/* 1: ours; 0: a sweep was faster, try again; negative: -errno. */
static int try_make(struct sandbox_dir *d, const char *id)
{
	_cleanup_fd_ int fd = -1, lock = -1;
	struct stat st;

	if (mkdirat(d->base, id, 0700) < 0)
		return -errno;
	fd = openat(d->base, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
	d->fd = TAKE_FD(fd);
	d->lock = TAKE_FD(lock);
	return 1;
}

int sandbox_dir_make(struct sandbox_dir *d, const char *id, struct cloche_err *err)
{
	int r = 0;

	d->base = rundir_open(err);
	if (d->base < 0)
		return d->base;
	for (int i = 0; i < TRIES && r == 0; i++)
		r = try_make(d, id);
	if (r == -EEXIST)
		return err_set(err, E_EXISTS, "sandbox %s exists already", id);
	if (r <= 0)
		return err_sys(err, r ? -r : EAGAIN, "make the sandbox's directory");
	d->id = strdup(id);
	return d->id ? 0 : err_nomem(err);
}

int sandbox_dir_plan(struct sandbox_dir *d, const struct provider *provider,
	const struct room_spec *spec, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_RECORD);
	size_t head;
	int r;

	if (buf_printf(&b, "%s\n", provider->name) < 0)
		return err_nomem(err);
	head = buf_len(&b);
	r = provider->plan(spec, &b, err);
	if (r < 0)
		return r;
	if (buf_len(&b) == head)
		return 0;
	r = sandbox_dir_make(d, spec->id, err);
	if (r < 0)
		return r;
	return fs_write_atomic(d->fd, RUNDIR_OWNED, buf_str(&b), 0600, false, err);
}

/* A JSON string. Bytes are taken for UTF-8. */
static int add_json(struct buf *b, const char *z)
{
	int r = buf_add_char(b, '"');

	for (; z && *z && r == 0; z++) {
		unsigned char c = (unsigned char)*z;

		if (c < 0x20 || c == 0x7f)
			r = buf_printf(b, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			r = buf_printf(b, "\\%c", c);
		else
			r = buf_add_char(b, *z);
	}
	return r < 0 ? r : buf_add_char(b, '"');
}

static int add_labels(struct buf *b, char *const *labels)
{
	int r = buf_add_char(b, '{');

	for (size_t i = 0; labels && labels[i] && r == 0; i++) {
		struct str label = str_from(labels[i]);
		size_t eq = str_chr(label, '=');
		_cleanup_(freep) char *key = str_dup(str_prefix(label, eq));
		_cleanup_(freep) char *value = str_dup(str_from_index(label, eq + 1));

		if (!key || !value)
			return -ENOMEM;
		r = i ? buf_add_char(b, ',') : 0;
		if (r == 0)
			r = add_json(b, key);
		if (r == 0)
			r = buf_add_char(b, ':');
		if (r == 0)
			r = add_json(b, value);
	}
	return r < 0 ? r : buf_add_char(b, '}');
}

/* Field 22 of /proc/self/stat: with the pid it names a process for good. */
static uint64_t own_start_time(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);
	unsigned long long start = 0;
	char *text, *at;

	if (fs_read_file(AT_FDCWD, "/proc/self/stat", &b, NULL) < 0)
		return 0;
	text = buf_cstr(&b);
	at = text ? strrchr(text, ')') : NULL;
	if (!at ||
		sscanf(at + 1,
			" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %llu",
			&start) != 1)
		return 0;
	return start;
}

int sandbox_dir_write_record(struct sandbox_dir *d, const struct ctl_start *start,
	const struct room *room, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_RECORD);
	char created[CLOCK_ISO_MAX];
	int r;

	clock_format_utc(clock_real_usec(), created);
	r = buf_printf(&b, "{\"id\":\"%s\",\"name\":", d->id);
	if (r == 0)
		r = add_json(&b, start->name);
	if (r == 0)
		r = buf_printf(&b, ",\"labels\":");
	if (r == 0)
		r = add_labels(&b, start->labels);
	if (r == 0)
		r = buf_printf(&b,
			",\"provider\":\"%s\",\"pid\":%d,\"pid_start\":%llu,\"init_pid\":%d,"
			"\"created\":\"%s\",\"one_shot\":%s,\"detached\":%s,\"gateway\":%s}\n",
			room->provider->name, getpid(), (unsigned long long)own_start_time(),
			room->pid, created, start->one_shot ? "true" : "false",
			start->detached ? "true" : "false", start->gateway ? "true" : "false");
	if (r < 0)
		return err_nomem(err);
	return fs_write_atomic(d->fd, RUNDIR_RECORD, buf_str(&b), 0600, false, err);
}

int sandbox_dir_listen(struct sandbox_dir *d, struct cloche_err *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	/* By way of the descriptor, so that the length of the directory's path does not matter. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" RUNDIR_SOCKET, d->fd);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		listen(fd, BACKLOG) < 0)
		return err_sys(err, errno, "make the control socket");
	d->listen = TAKE_FD(fd);
	return 0;
}

/* The lock goes last: a directory with content and without a lock would belong to nobody. */
static void remove_dir(int base, int dir, const char *id)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (list && (e = readdir(list)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			strcmp(e->d_name, RUNDIR_LOCK) != 0)
			fs_remove_tree(dir, e->d_name);
	if (list)
		closedir(list);
	else
		fd_close(fd);
	fs_remove_tree(base, id);
}

void sandbox_dir_remove(struct sandbox_dir *d)
{
	d->listen = fd_close(d->listen);
	if (d->lock >= 0 && d->id)
		remove_dir(d->base, d->fd, d->id);
	d->fd = fd_close(d->fd);
	d->lock = fd_close(d->lock);
	d->base = fd_close(d->base);
	free(d->id);
	d->id = NULL;
}

/* The record is only as good as the directory it lies in, which is ours alone. It is written before
 * anything is made that could outlive us, so where there is none nothing is left. */
static void reap_owned(int dir)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_RECORD);
	const struct provider *p;
	struct str text;
	size_t n;

	if (fs_read_file(dir, RUNDIR_OWNED, &b, NULL) < 0)
		return;
	text = buf_str(&b);
	n = str_chr(text, '\n');
	p = provider_find(str_prefix(text, n));
	if (p)
		(void)p->reap(str_from_index(text, n + 1), NULL);
}

static void sweep_one(int base, const char *id)
{
	_cleanup_fd_ int dir = openat(base, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int lock = -1;
	struct stat st;

	if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid())
		return;
	lock = openat(dir, RUNDIR_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (lock < 0) {
		/* Only an empty one goes: its maker may be about to put the lock there. */
		if (errno == ENOENT)
			unlinkat(base, id, AT_REMOVEDIR);
		return;
	}
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return;
	reap_owned(dir);
	remove_dir(base, dir, id);
}

void sandbox_dirs_sweep(int base)
{
	int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (rundir_is_id(str_from(e->d_name)))
			sweep_one(base, e->d_name);
	closedir(dir);
}
