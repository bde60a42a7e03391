/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: where no namespaces can be made, a room shows the files of the container
 * that it stands in. So the copies of a mount have to be found at the mount's own path there: by a
 * link to them that is made for as long as the room lives, or because an empty directory that is
 * there already becomes their place. What was taken is noted in the room's directory (a link
 * "at-K-N" to the path, with K directories above it that were made), so that it is given back even
 * if the holder was killed. */
#include "base/fd.h"
#include "farside/hold.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARENTS_MAX = 64, TAKEN_MAX = 2 * FAR_MAX_MOUNTS };

/* A path, by the directory that it is in. */
struct stand_spot {
	int parent;
	unsigned made; /* directories above it that were made */
	char name[NAME_MAX + 1];
};

/* Take the next name of a path. Return false at the end, or if it is none. */
static bool stand_next(const char **path, char ret[NAME_MAX + 1])
{
	size_t n;

	*path += strspn(*path, "/");
	n = strcspn(*path, "/");
	if (n == 0 || n > NAME_MAX)
		return false;
	memcpy(ret, *path, n);
	ret[n] = '\0';
	*path += n;
	return strcmp(ret, ".") != 0 && strcmp(ret, "..") != 0;
}

/* Open what it is in, through no link. make: directories that are missing. Return 0 or -errno. */
static int stand_find(const char *path, bool make, struct stand_spot *ret)
{
	_cleanup_fd_ int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned made = 0;

	if (at < 0 || !stand_next(&path, ret->name))
		return -EINVAL;
	for (int i = 0; path[strspn(path, "/")] != '\0'; i++) {
		int next;

		if (i == PARENTS_MAX)
			return -ELOOP;
		if (make && mkdirat(at, ret->name, 0755) == 0)
			made++;
		next = openat(at, ret->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		fd_close(at);
		at = next;
		if (!stand_next(&path, ret->name))
			return -EINVAL;
	}
	ret->parent = TAKE_FD(at);
	ret->made = made;
	return 0;
}

static int stand_note(struct hold *h, unsigned made, const char *path, struct cloche_err *err)
{
	char name[32];

	for (int i = 0; i < TAKEN_MAX; i++) {
		snprintf(name, sizeof(name), "at-%u-%d", made, i);
		if (symlinkat(path, h->dir, name) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_sys(err, errno, "note what the room takes");
}

static int stand_is_taken(const char *path, struct cloche_err *err)
{
	err_set(err, E_BUSY, "another room stands at %s in this container", path);
	err_hint(err, "wait until it has ended, or use another container");
	return -E_BUSY;
}

/* Whether a link leads to the copies of a room. */
static bool stand_is_of_room(int parent, const char *name)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(parent, name, text, sizeof(text) - 1);

	text[MAX(n, 0)] = '\0';
	return strstr(text, "/cloche-far/rooms/") != NULL;
}

static bool stand_is_empty(int dir)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");

	return list && !fs_list_next(list) && errno == 0;
}

/* Use an empty directory itself. Return its descriptor, -EEXIST if it is none, or another negative
 * with err set. */
static int stand_use(
	struct hold *h, const struct stand_spot *spot, const char *path, struct cloche_err *err)
{
	_cleanup_fd_ int dir =
		openat(spot->parent, spot->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dir < 0)
		return errno == ELOOP || errno == ENOTDIR
			       ? stand_is_of_room(spot->parent, spot->name)
					 ? stand_is_taken(path, err)
					 : -EEXIST
			       : -EEXIST;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? stand_is_taken(path, err) : -EEXIST;
	if (!stand_is_empty(dir) || faccessat(spot->parent, spot->name, W_OK | X_OK, 0) < 0)
		return -EEXIST;
	r = stand_note(h, 0, path, err);
	return r < 0 ? r : TAKE_FD(dir);
}

int stand_take(
	struct hold *h, const char *path, const char *copies, int *ret_dir, struct cloche_err *err)
{
	struct stand_spot spot = {.parent = -1};
	_cleanup_fd_ int parent = -1;
	int r = stand_find(path, true, &spot);

	if (ret_dir)
		*ret_dir = -1;
	parent = spot.parent;
	if (r < 0)
		return 1;
	if (symlinkat(copies, parent, spot.name) == 0)
		return stand_note(h, spot.made, path, err);
	if (errno != EEXIST || !ret_dir)
		return 1;
	r = stand_use(h, &spot, path, err);
	if (r == -EEXIST)
		return 1;
	if (r < 0)
		return r;
	*ret_dir = r;
	return 0;
}

/* --- giving it back --- */

static void stand_empty(int dir)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");
	struct dirent *e;

	while (list && (e = fs_list_next(list)))
		(void)!fs_remove_tree(dir, e->d_name);
}

/* Remove directories that were made, from the lowest on. */
static void stand_remove_parents(char *path, unsigned made)
{
	for (; made > 0; made--) {
		struct stand_spot spot = {.parent = -1};
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return;
		*slash = '\0';
		if (stand_find(path, false, &spot) < 0)
			return;
		(void)!unlinkat(spot.parent, spot.name, AT_REMOVEDIR);
		fd_close(spot.parent);
	}
}

/* own: the path of the room's directory. */
static void stand_give_back(char *path, unsigned made, const char *own, bool is_ours)
{
	struct stand_spot spot = {.parent = -1};
	char text[PATH_MAX];
	ssize_t n;

	if (stand_find(path, false, &spot) < 0)
		return;
	n = readlinkat(spot.parent, spot.name, text, sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	if (n > 0 && fs_is_within(text, own)) {
		(void)!unlinkat(spot.parent, spot.name, 0);
		stand_remove_parents(path, made);
	} else if (n < 0 && made == 0) {
		_cleanup_fd_ int dir = openat(
			spot.parent, spot.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (dir >= 0 && (is_ours || flock(dir, LOCK_EX | LOCK_NB) == 0))
			stand_empty(dir);
	}
	fd_close(spot.parent);
}

void stand_undo(int room, bool is_ours)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(room, ".");
	char own[PATH_MAX], path[PATH_MAX];
	struct dirent *e;

	if (!list || fd_path(room, own) < 0)
		return;
	while ((e = fs_list_next(list))) {
		ssize_t n;

		if (strncmp(e->d_name, "at-", 3) != 0)
			continue;
		n = readlinkat(room, e->d_name, path, sizeof(path) - 1);
		if (n <= 0)
			continue;
		path[n] = '\0';
		stand_give_back(path, (unsigned)strtoul(e->d_name + 3, NULL, 10), own, is_ours);
	}
}
