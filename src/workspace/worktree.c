/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/worktree.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Reads a small regular file (O_PATH) to its end, without the newline that git writes there.
 * Nothing else is opened for reading. Returns the text, which is b's, or NULL. */
static const char *worktree_read(int file, struct buf *b)
{
	_cleanup_fd_ int fd = -1;
	char *text;
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	fd = fd_open_again(file, O_RDONLY | O_NONBLOCK);
	if (fd < 0 || fd_read_to_end(fd, b) < 0)
		return NULL;
	text = buf_cstr(b);
	if (!text || strlen(text) != buf_len(b))
		return NULL;
	text[strcspn(text, "\r\n")] = '\0';
	return text;
}

int worktree_open_git(int dir, int file)
{
	static const char key[] = "gitdir: ";
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * PATH_MAX);
	const char *text = worktree_read(file, &b);
	int fd;

	if (!text || strncmp(text, key, sizeof(key) - 1) != 0)
		return -EINVAL;
	fd = openat(dir, text + sizeof(key) - 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool worktree_is_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

int worktree_find(int record, char ret[PATH_MAX])
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(PATH_MAX);
	_cleanup_fd_ int gitdir = openat(record, "gitdir", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const char *text = worktree_read(gitdir, &b);
	_cleanup_(freep) char *plain = text ? fs_lexical(text) : NULL, *dir = NULL;
	_cleanup_fd_ int top = -1, file = -1, back = -1;
	char path[PATH_MAX];
	int n;

	if (!text || !str_ends(str_from(text), STR("/.git")))
		return -1;
	dir = strndup(text, strlen(text) - strlen("/.git"));
	top = dir ? openat(record, dir[0] ? dir : "/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	file = top < 0 ? -1 : openat(top, ".git", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	back = file < 0 ? -1 : worktree_open_git(top, file);
	if (back < 0 || !worktree_is_same(back, record) || fd_path(top, path) < 0)
		return -1;
	/* Git looks for the very name that is written, as long as it is a plain one. */
	n = plain && strcmp(plain, text) == 0 ? snprintf(ret, PATH_MAX, "%s", text)
					      : snprintf(ret, PATH_MAX, "%s/.git", path);
	return n < PATH_MAX ? TAKE_FD(file) : -1;
}
