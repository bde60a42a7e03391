/* SPDX-License-Identifier: Apache-2.0 */
#include "farside/fardir.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "far/kept.h"
#include "farside/hold.h"
#include "fs/fs.h"
#include "ipc/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ROOMS "cloche-far/rooms"
#define SOCKET "link"
#define KEPT "kept-"

enum {
	MAKE_TRIES = 20,
	SWEEP_MAX = 64,
	PROGRAM_SEC = 30 * 24 * 3600,
	KEPT_MAX = 8,
	KEPT_NAME_BYTES = sizeof(KEPT) + FAR_KEPT_BYTES,
	REAP_MS = 5000,
	BACKLOG = 4,
};

/* Open the directory of all rooms. */
static int fardir_open_rooms(struct cloche_err *err)
{
	const char *home = getenv("HOME");
	char path[PATH_MAX];
	int r;

	if (!home || home[0] != '/')
		return err_set(
			err, E_UNSUPPORTED, "the account there has no home directory (HOME)");
	snprintf(path, sizeof(path), "%s/.cache/" ROOMS, home);
	r = fs_mkdirs(path, 0700, err);
	return r < 0 ? r : fs_open_private_dir(path, err);
}

int fardir_enter_rooms(struct cloche_err *err)
{
	_cleanup_fd_ int rooms = fardir_open_rooms(err);

	if (rooms < 0)
		return rooms;
	return fchdir(rooms) < 0 ? err_sys(err, errno, "go to the directory of rooms") : 0;
}

static int fardir_open_rooms_for(const char *id, struct cloche_err *err)
{
	if (!rundir_is_id(str_from(id)))
		return err_set(err, E_USAGE, "\"%s\" is no sandbox id", id);
	return fardir_open_rooms(err);
}

static int fardir_open(int rooms, const char *id)
{
	return openat(rooms, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Make it and lock it. Return its descriptor, or -errno; -ESTALE: another start has swept it away
 * between the two. */
static int fardir_make_once(int rooms, const char *id)
{
	_cleanup_fd_ int dir = -1;
	struct stat st;

	if (mkdirat(rooms, id, 0700) < 0)
		return -errno;
	dir = fardir_open(rooms, id);
	if (dir < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	/* Who sweeps holds the lock for a moment. */
	if (flock(dir, LOCK_EX) < 0 || fstat(dir, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -ESTALE : TAKE_FD(dir);
}

int fardir_make(const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int rooms = fardir_open_rooms_for(id, err);
	int dir = -ESTALE;

	if (rooms < 0)
		return rooms;
	for (int i = 0; i < MAKE_TRIES && dir == -ESTALE; i++)
		dir = fardir_make_once(rooms, id);
	if (dir == -EEXIST)
		return err_set(err, E_BUSY, "the room exists already");
	return dir < 0 ? err_sys(err, -dir, "make the room's directory") : dir;
}

static void fardir_name(int dir, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* The path may be too long for an address. */
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" SOCKET, dir);
}

int fardir_listen(int dir, struct cloche_err *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;

	fardir_name(dir, &addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		listen(fd, BACKLOG) < 0)
		return err_sys(err, errno, "make the room's socket");
	return TAKE_FD(fd);
}

int fardir_listen_again(int listener)
{
	return listen(listener, BACKLOG) < 0 ? -errno : 0;
}

/* Connect, and store who listens if ret_pid is not NULL. */
static int fardir_dial(int dir, pid_t *ret_pid)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	struct ucred cred;
	socklen_t n = sizeof(cred);

	fardir_name(dir, &addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	if (ret_pid && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return -errno;
	if (ret_pid)
		*ret_pid = cred.pid;
	return TAKE_FD(fd);
}

int fardir_connect(const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int rooms = fardir_open_rooms_for(id, err), dir = -1;
	int fd;

	if (rooms < 0)
		return rooms;
	dir = fardir_open(rooms, id);
	fd = dir < 0 ? -errno : fardir_dial(dir, NULL);
	return fd < 0 ? err_set(err, E_NOT_FOUND, "the room is not there any more") : fd;
}

void fardir_remove(const char *id)
{
	_cleanup_fd_ int rooms = fardir_open_rooms(NULL);

	if (rooms >= 0)
		(void)!fs_remove_tree(rooms, id);
}

/* Whether nobody holds the room. */
static bool fardir_is_left(int dir)
{
	return flock(dir, LOCK_EX | LOCK_NB) == 0;
}

/* Wait until the lock is free. */
static bool fardir_await(int dir)
{
	uint64_t until = clock_mono_usec() + REAP_MS * USEC_PER_MSEC;

	while (!fardir_is_left(dir)) {
		if (clock_mono_usec() > until)
			return false;
		poll(NULL, 0, 10);
	}
	return true;
}

int fardir_reap(const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int rooms = fardir_open_rooms_for(id, err), dir = -1, fd = -1;
	pid_t holder = 0;

	if (rooms < 0)
		return rooms;
	dir = fardir_open(rooms, id);
	if (dir < 0)
		return 0;
	fd = fardir_is_left(dir) ? -1 : fardir_dial(dir, &holder);
	/* As long as the connection is open, the number is that of who listens. */
	if (fd >= 0 && holder > 0)
		kill(holder, SIGTERM);
	if (!fardir_await(dir))
		return err_set(err, E_BUSY, "the room does not end");
	stand_undo(dir, false);
	(void)!fs_remove_tree(rooms, id);
	return 0;
}

/* Open the directory of programs: ours of each version, and those that are kept. */
static int fardir_open_programs(int rooms)
{
	return rooms < 0 ? -1 : openat(rooms, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Remove programs that nobody has used for a month. */
static void fardir_sweep_programs(int rooms)
{
	_cleanup_fd_ int dir = fardir_open_programs(rooms);
	_cleanup_(fs_list_closep) DIR *list = dir < 0 ? NULL : fs_list(dir, ".");
	time_t now = time(NULL);
	struct dirent *e;
	struct stat st;

	for (int i = 0; list && i < SWEEP_MAX && (e = fs_list_next(list)); i++)
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
			st.st_mtime < now - PROGRAM_SEC)
			(void)!unlinkat(dir, e->d_name, 0);
}

/* Where a kept program is: the directory, and the name in it. Return -1 if none is called so. */
static int fardir_find_kept(struct str kept, char ret[KEPT_NAME_BYTES])
{
	_cleanup_fd_ int rooms = far_kept_is_name(kept) ? fardir_open_rooms(NULL) : -1;

	snprintf(ret, KEPT_NAME_BYTES, KEPT "%.*s", STR_FMT(str_prefix(kept, FAR_KEPT_BYTES)));
	return fardir_open_programs(rooms);
}

void fardir_take_kept(struct str kept, int dir, const char *name)
{
	char from[KEPT_NAME_BYTES];
	_cleanup_fd_ int programs = fardir_find_kept(kept, from);

	/* It is in use: so it is new. */
	if (programs >= 0 && linkat(programs, from, dir, name, 0) == 0)
		(void)!utimensat(programs, from, NULL, AT_SYMLINK_NOFOLLOW);
}

/* Remove the one that has not been used for the longest time, if there are too many. */
static void fardir_sweep_kept(int programs)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(programs, ".");
	char oldest[KEPT_NAME_BYTES] = "";
	struct timespec then = {0};
	struct dirent *e;
	struct stat st;
	int n = 0;

	while (list && (e = fs_list_next(list))) {
		if (!str_starts(str_from(e->d_name), STR(KEPT)) ||
			fstatat(programs, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (n++ > 0 && (st.st_mtim.tv_sec > then.tv_sec ||
				       (st.st_mtim.tv_sec == then.tv_sec &&
					       st.st_mtim.tv_nsec >= then.tv_nsec)))
			continue;
		then = st.st_mtim;
		snprintf(oldest, sizeof(oldest), "%s", e->d_name);
	}
	if (n > KEPT_MAX)
		(void)!unlinkat(programs, oldest, 0);
}

void fardir_put_kept(struct str kept, int dir, const char *name)
{
	char to[KEPT_NAME_BYTES], is[FAR_KEPT_BYTES + 1];
	_cleanup_fd_ int programs = fardir_find_kept(kept, to), fd = -1;
	struct stat st;

	fd = programs < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	/* With a second name it was taken. */
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_nlink > 1 || far_kept_name(fd, is) < 0 ||
		!str_eq(str_from(is), kept))
		return;
	if (linkat(dir, name, programs, to, 0) == 0)
		fardir_sweep_kept(programs);
}

void fardir_sweep(void)
{
	_cleanup_fd_ int rooms = fardir_open_rooms(NULL);
	_cleanup_(fs_list_closep) DIR *list = rooms < 0 ? NULL : fs_list(rooms, ".");
	struct dirent *e;

	/* It is in use: so it is new. */
	(void)!utimensat(AT_FDCWD, "/proc/self/exe", NULL, 0);
	if (rooms >= 0)
		fardir_sweep_programs(rooms);
	for (int i = 0; list && i < SWEEP_MAX && (e = fs_list_next(list)); i++) {
		_cleanup_fd_ int dir = fardir_open(rooms, e->d_name);

		if (dir < 0 || !fardir_is_left(dir))
			continue;
		stand_undo(dir, false);
		(void)!fs_remove_tree(rooms, e->d_name);
	}
}
