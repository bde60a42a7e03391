/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the way up goes by descriptors from the directory itself, so no name is
 * looked up that a room could have exchanged; each step is compared with the path of which it has
 * to be the beginning. The first .git on the way decides, as in git.
 *
 * Where .git is a file, it names a directory elsewhere, and a hostile clone can name any. So that
 * directory has to name the project back, in a file that lies in it: the record of a worktree by
 * its file gitdir, the place of a submodule by core.worktree. Who wrote that file could write to
 * the directory anyway. It has to have the form and the name of a git directory besides, so that
 * somebody who was granted a whole directory cannot pass it off as one. */
#include "workspace/project.h"
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "workspace/gitconfig.h"
#include "workspace/obeyed.h"
#include "workspace/worktree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROJECT_DEEPEST = 256, PROJECT_MAX_CONFIG = 1024 * 1024 };

/* As git's safe.directory: root also uses what belongs to the user of sudo. */
static bool project_is_own(const struct stat *st)
{
	const char *sudo = geteuid() == 0 ? secure_getenv("SUDO_UID") : NULL;
	char own[16];

	snprintf(own, sizeof(own), "%u", (unsigned)st->st_uid);
	return st->st_uid == geteuid() || (sudo && strcmp(sudo, own) == 0);
}

static bool project_owns(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && project_is_own(&st);
}

static bool project_is_same(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Whether the directory is a repository's own one: it has everything itself. */
static bool project_is_git(int fd)
{
	struct stat st;

	return fstatat(fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(fd, "objects", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       fstatat(fd, "refs", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Whether a path is named as git names its directories. */
static bool project_is_named(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct str name = str_from(slash ? slash + 1 : path);

	return (str_ends(name, STR(".git")) || str_eq(name, STR(".bare")) ||
		strstr(path, "/.git/modules/"));
}

/* The directory that the worktrees of this record share, which is that around its worktrees/. */
static bool project_linked(int record, int top, struct project *ret)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(PATH_MAX);
	char path[PATH_MAX], place[PATH_MAX];
	_cleanup_fd_ int link = fs_open_beneath(record, "commondir", O_RDONLY);
	_cleanup_fd_ int file = worktree_find(record, path), common = -1;

	if (file < 0 || link < 0 || fd_read_to_end(link, &b) < 0 ||
		!str_eq(buf_str(&b), STR("../..\n")) || fd_path(record, place) < 0)
		return false;
	path[strlen(path) - strlen("/.git")] = '\0';
	common = openat(record, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (common < 0 || !project_is_same(top, path[0] ? path : "/") ||
		fd_path(common, ret->git) < 0 || !project_owns(common) || !project_is_git(common))
		return false;
	ret->git_fd = TAKE_FD(common);
	return project_is_named(ret->git) && fs_is_within(place, ret->git) &&
	       str_starts(str_from(fs_below(place, ret->git)), STR("worktrees/"));
}

/* Whether this is the place of the submodule top, in the .git of a superproject. */
static bool project_module(int git, int top, struct project *ret)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(PROJECT_MAX_CONFIG);
	_cleanup_fd_ int config = fs_open_beneath(git, "config", O_RDONLY), there = -1;
	_cleanup_(freep) char *value = NULL;
	char path[PATH_MAX];
	struct stat st;

	if (config < 0 || fstat(config, &st) < 0 || !S_ISREG(st.st_mode) ||
		fd_read_to_end(config, &text) < 0)
		return false;
	value = gitconfig_value(buf_str(&text), "core.worktree");
	if (!value)
		return false;
	there = openat(git, value, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (there < 0 || fd_path(there, path) < 0 || !project_is_same(top, path) ||
		fd_path(git, ret->git) < 0)
		return false;
	fd_close(ret->git_fd);
	ret->git_fd = openat(git, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return ret->git_fd >= 0 && project_is_git(git) && strstr(ret->git, "/.git/modules/");
}

/* Find out where the file .git of the top leads. */
static void project_follow(int top, struct project *ret)
{
	_cleanup_fd_ int file = openat(top, ".git", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int git = worktree_open_git(top, file);

	if (git >= 0 && !project_owns(git))
		ret->kind = PROJECT_GIT_STRANGE;
	else if (git >= 0 && project_linked(git, top, ret))
		ret->kind = PROJECT_GIT_LINKED;
	else if (git >= 0 && project_module(git, top, ret))
		ret->kind = PROJECT_GIT_MODULE;
	else
		ret->kind = PROJECT_GIT_STRANGE;
	if (ret->kind == PROJECT_GIT_STRANGE && (git < 0 || fd_path(git, ret->git) < 0))
		ret->git[0] = '\0';
	if (ret->git[0] && fs_is_within(ret->git, ret->top)) {
		ret->kind = PROJECT_GIT_NONE;
		ret->git[0] = '\0';
	}
}

/* Look at one directory. Returns whether the search is over. */
static bool project_at(int at, const char *path, struct project *ret)
{
	_cleanup_fd_ int git = -1;
	struct stat st;

	/* Somebody who works in a git directory means that one, and not the project. */
	if (project_is_git(at))
		return true;
	if (fstatat(at, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISDIR(st.st_mode)) {
		git = openat(at, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (git < 0 || !project_is_git(git))
			return false;
	} else if (!S_ISREG(st.st_mode)) {
		return true;
	}
	ret->foreign = !project_is_own(&st) || !project_owns(at);
	if (ret->foreign) {
		snprintf(ret->git, sizeof(ret->git), "%s", path);
	} else {
		ret->top_fd = openat(at, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		snprintf(ret->top, sizeof(ret->top), "%s", ret->top_fd < 0 ? "" : path);
	}
	if (ret->top[0] && S_ISREG(st.st_mode))
		project_follow(at, ret);
	return true;
}

void project_done(struct project *p)
{
	fd_close(p->top_fd);
	fd_close(p->git_fd);
	*p = PROJECT_NULL;
}

void project_find(int dir, const char *path, bool up, struct project *ret)
{
	_cleanup_fd_ int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char here[PATH_MAX];
	struct stat first, st;

	snprintf(here, sizeof(here), "%s", path);
	if (at < 0 || fstat(at, &first) < 0 || here[0] != '/')
		return;
	for (int i = 0; i < PROJECT_DEEPEST; i++) {
		char *slash = strrchr(here, '/');
		int above;

		if (fstat(at, &st) < 0 || st.st_dev != first.st_dev || !project_is_same(at, here) ||
			project_at(at, here, ret) || !up || here[1] == '\0')
			return;
		above = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(at);
		at = above;
		slash[slash == here] = '\0';
		if (at < 0)
			return;
	}
}
