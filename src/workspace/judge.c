/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/judge.h"
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "workspace/gitconfig.h"
#include "workspace/look.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MAX_CONFIG = 1024 * 1024 };

/* Reads a whole regular file; -errno for anything else. */
static int judge_read(int dir, const char *name, struct buf *ret)
{
	_cleanup_fd_ int fd = fs_open_beneath(dir, name, O_RDONLY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	return fd_read_to_end(fd, ret);
}

/* Whether ".." follows a name in path. If that name is a link, the system goes elsewhere than
 * fs_resolve(). Git writes no such path. */
static bool judge_turns_back(const char *path)
{
	struct str rest = str_from(path);
	bool named = false;

	while (rest.n) {
		struct str part = str_next(&rest, '/');

		if (str_eq(part, STR("..")) && named)
			return true;
		named |= part.n && !str_eq(part, STR(".")) && !str_eq(part, STR(".."));
	}
	return false;
}

/* Whether path is a directory of the mount that is reached through no link. */
static bool judge_is_directory(int root, const char *path)
{
	_cleanup_fd_ int fd = fs_open_beneath(root, path, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

/* What follows the last component .git of path, or NULL. */
static const char *judge_below_git(const char *path)
{
	const char *ret = NULL;

	for (const char *at = path; (at = strstr(at, ".git/")); at++)
		if (at == path || at[-1] == '/')
			ret = at + 5;
	return ret;
}

/* Whether path is a submodule's place: ".git/modules/..." or ".git/worktrees/NAME/modules/...", at
 * the root or further down. A cloned repository cannot contain such a path. */
static bool judge_is_module(const char *path)
{
	static const char worktrees[] = "worktrees/", modules[] = "modules/";
	const char *below = judge_below_git(path);

	if (below && strncmp(below, worktrees, sizeof(worktrees) - 1) == 0) {
		below = strchr(below + sizeof(worktrees) - 1, '/');
		below += below != NULL;
	}
	return below && strncmp(below, modules, sizeof(modules) - 1) == 0 &&
	       below[sizeof(modules) - 1];
}

/* Whether path is a worktree's place: worktrees/NAME directly in .git or in a submodule's place. */
static bool judge_is_worktree(const char *path)
{
	static const char worktrees[] = "/worktrees/";
	char above[PATH_MAX];
	size_t n;

	if (!fs_resolve(path, "../..", above))
		return false;
	n = strlen(above);
	return (judge_is_module(above) || strcmp(above, ".git") == 0 ||
		       str_ends(str_from(above), STR("/.git"))) &&
	       strncmp(path + n, worktrees, sizeof(worktrees) - 1) == 0;
}

/* Whether the directory `path` of a mount is a worktree's place, or with `module` a submodule's, by
 * its path on the host. */
static bool judge_is_place(int root, const char *source, const char *path, bool module)
{
	char whole[2 * PATH_MAX];

	if (fs_join_in(whole, sizeof(whole), source, path) < 0 || strlen(whole) >= PATH_MAX)
		return false;
	return (judge_is_worktree(whole + 1) || (module && judge_is_module(whole + 1))) &&
	       judge_is_directory(root, path);
}

/* The same for an absolute path, in any mount that the room could write to. */
static bool judge_is_place_elsewhere(const struct judge *j, const char *path)
{
	char in[PATH_MAX];

	for (size_t i = 0; j->look && i < j->look->mounts_n; i++) {
		const struct look_mount *m = &j->look->mounts[i];
		const char *below = fs_below(path, m->source);

		if (below && m->fd >= 0 && fs_resolve("", below, in) &&
			judge_is_place(m->fd, m->source, in, true))
			return true;
	}
	return false;
}

/* Finds where the file .git in `in` ("gitdir: PATH") leads to. True if that is a place of a
 * worktree or submodule in the mount. */
static bool judge_link(const struct judge *j, const char *in, char *text, char ret[PATH_MAX])
{
	const char *absolute;
	static const char key[] = "gitdir: ";
	const char *path = text + sizeof(key) - 1, *below;
	size_t n = strlen(text);

	if (strncmp(text, key, sizeof(key) - 1) != 0)
		return false;
	while (text[n - 1] == '\n' || text[n - 1] == '\r')
		text[--n] = '\0';
	/* Git takes all that is left for the path, even lines. */
	if (strpbrk(text, "\r\n") || judge_turns_back(path))
		return false;
	absolute = path[0] == '/' ? path : NULL;
	ret[0] = '\0';
	if (absolute) {
		below = fs_below(path, j->target);
		path = below ? below : fs_below(path, j->source);
		in = "";
	}
	if (path)
		return fs_resolve(in, path, ret) && judge_is_place(j->root, j->source, ret, true);
	return absolute && judge_is_place_elsewhere(j, absolute);
}

/* Reads a file without a NUL in it. NULL if it is none; the text is b's. */
static char *judge_text(int dir, const char *name, struct buf *b)
{
	char *text = judge_read(dir, name, b) == 0 ? buf_cstr(b) : NULL;

	return text && strlen(text) == buf_len(b) ? text : NULL;
}

/* Find the worktree around j->in that git has made inside of the worktree to which its repository
 * belongs. True with both paths from the root. */
static bool judge_worktrees(const struct judge *j, char made[PATH_MAX], char main[PATH_MAX])
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * PATH_MAX);
	char name[PATH_MAX], place[PATH_MAX] = "", *text, *git;
	size_t n = strlen(j->in);

	snprintf(made, PATH_MAX, "%s", j->in);
	for (;;) {
		struct stat st;

		if (n == 0 || fs_join_in(name, sizeof(name), made, ".git") < 0)
			return false;
		if (fstatat(j->root, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			break;
		while (n && made[n] != '/')
			n--;
		made[n] = '\0';
	}
	text = judge_text(j->root, name, &b);
	if (!text || !judge_link(j, made, text, place) || !judge_is_worktree(place))
		return false;
	/* "MAIN/.git/worktrees/NAME"; a submodule has its files elsewhere. */
	git = strstr(place, ".git/worktrees/");
	if (!git || git != judge_below_git(place) - 5 || (git != place && git[-1] != '/'))
		return false;
	git[git == place ? 0 : -1] = '\0';
	snprintf(main, PATH_MAX, "%s", place);
	return !main[0] || fs_below(made, main) != NULL;
}

bool judge_is_twin(const struct judge *j, const struct stat *st, judge_kept_fn kept, void *user)
{
	_cleanup_(buf_donep) struct buf ours = BUF_INIT(MAX_CONFIG), theirs = BUF_INIT(MAX_CONFIG);
	char made[PATH_MAX], path[PATH_MAX], name[PATH_MAX], full[PATH_MAX];
	struct stat other;

	if (!S_ISREG(st->st_mode) || !judge_worktrees(j, made, path) ||
		fs_join_in(full, sizeof(full), j->in, j->name) < 0 ||
		fs_join_in(name, sizeof(name), path, full + strlen(made) + 1) < 0 ||
		fstatat(j->root, name, &other, AT_SYMLINK_NOFOLLOW) < 0 ||
		(other.st_mode & 0111) != (st->st_mode & 0111) || !kept(user, j->root, name))
		return false;
	return judge_read(j->dir, j->name, &ours) == 0 && judge_read(j->root, name, &theirs) == 0 &&
	       str_eq(buf_str(&ours), buf_str(&theirs));
}

bool judge_leads_away(const struct judge *j)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * PATH_MAX);
	char *text = judge_text(j->dir, j->name, &b), path[PATH_MAX];

	if (!text)
		return true;
	if (strcmp(j->name, ".git") == 0)
		return !judge_link(j, j->in, text, path);
	/* As git writes it for a worktree. */
	return !(strcmp(text, "../..\n") == 0 && judge_is_place(j->root, j->source, j->in, false));
}

/* Whether a directory is git's by its content. */
static bool judge_is_git_dir(int fd)
{
	static const char *const names[] = {"HEAD", "objects", "refs", "commondir"};
	struct obeyed_signs signs = {0};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			obeyed_see(&signs, str_from(names[i]));
	return obeyed_is_git(&signs);
}

/* The same for the directory `path` of the mount; true if it cannot be opened. */
static bool judge_is_git(int root, const char *path)
{
	_cleanup_fd_ int fd = fs_open_beneath(root, path, O_PATH | O_DIRECTORY);

	return fd < 0 || judge_is_git_dir(fd);
}

/* Whether the table says something about files directly in the directory `path`, or about all that
 * lies in a directory on the way to it. */
static bool judge_is_obeyed(int root, const char *path)
{
	enum obeyed_place place = OBEYED_ANY;
	struct str rest = str_from(path);
	char at[PATH_MAX];

	if (judge_is_git(root, ""))
		return true;
	while (rest.n) {
		struct str part = str_next(&rest, '/');
		const struct obeyed *row = obeyed_find(place, part);

		if (!row)
			row = obeyed_find(OBEYED_ANY, part);
		snprintf(at, sizeof(at), "%.*s", (int)(part.p + part.n - path), path);
		if ((row && (row->below == OBEYED_NONE || row->below == OBEYED_GIT)) ||
			judge_is_git(root, at))
			return true;
		place = row ? row->below : OBEYED_ANY;
	}
	return place != OBEYED_ANY;
}

/* Whether the directory `path` is the worktree of the git directory j->in, as git sees it when it
 * is started there. */
static bool judge_leads_back(const struct judge *j, const char *path)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * PATH_MAX);
	char name[PATH_MAX], to[PATH_MAX], *text;

	if (fs_join_in(name, sizeof(name), path, ".git") < 0)
		return false;
	if (strcmp(name, j->in) == 0)
		return true;
	text = judge_text(j->root, name, &b);
	return text && judge_link(j, path, text, to) && strcmp(to, j->in) == 0;
}

/* Git writes files into this directory as soon as somebody checks something out. */
static bool judge_worktree(void *user, const char *value)
{
	const struct judge *j = user;
	char path[PATH_MAX];

	return value[0] && value[0] != '/' && !judge_turns_back(value) &&
	       fs_resolve(j->in, value, path) && judge_is_directory(j->root, path) &&
	       judge_leads_back(j, path) && !judge_is_obeyed(j->root, path);
}

bool judge_has_commands(const struct judge *j)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_CONFIG);
	struct judge copy = *j;

	if (judge_read(j->dir, j->name, &text) < 0 ||
		!gitconfig_is_harmless(buf_str(&text), judge_worktree, &copy))
		return true;
	/* It goes before the repository's own, so it could lead the next push elsewhere. */
	return strcmp(j->name, "config.worktree") == 0 &&
	       gitconfig_is_of_repository(buf_str(&text));
}

/* The directory in which git runs hooks of the git directory `in`: its worktree, or itself. */
static void judge_above(const char *in, char ret[PATH_MAX])
{
	struct str path = str_from(in);

	if (str_eq(path, STR(".git")))
		path.n = 0;
	else if (str_ends(path, STR("/.git")))
		path.n -= 5;
	snprintf(ret, PATH_MAX, "%.*s", STR_FMT(path));
}

/* Find the part below the mount of a path that git reads in the host's file system. Links are
 * followed on the way to the mount. What lies in the mount is named: a room may make links there.
 */
static bool judge_inside(const struct judge *j, const char *path, char ret[PATH_MAX])
{
	const char *home = path[0] == '~' ? secure_getenv("HOME") : NULL;
	_cleanup_(freep) char *full =
		home ? fs_join(home, path + strspn(path, "~/")) : strdup(path);
	char top[PATH_MAX];

	if (fd_path(j->root, top) < 0)
		return false;
	for (char *at = full; at; at += strcspn(at, "/")) {
		_cleanup_(freep) char *real = NULL;
		const char *below;
		char before[PATH_MAX];

		at += strspn(at, "/");
		snprintf(before, sizeof(before), "%.*s", (int)(at - full), full);
		real = realpath(before, NULL);
		below = real ? fs_below(real, top) : NULL;
		if (below && fs_resolve(below, at, ret))
			return true;
		if (!*at)
			break;
	}
	return false;
}

/* The path from the root for a value of core.hooksPath. */
static _noinline_ char *judge_hooks_path(const struct judge *j, const char *value)
{
	bool elsewhere = value[0] == '/' || str_starts(str_from(value), STR("~/"));
	char above[PATH_MAX], path[PATH_MAX];

	judge_above(j->in, above);
	if (!(elsewhere ? judge_inside(j, value, path) : fs_resolve(above, value, path)) ||
		!path[0])
		return NULL;
	return strdup(path);
}

char *judge_hooks(const struct judge *j)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_CONFIG);
	_cleanup_(freep) char *value = NULL;

	if (judge_read(j->dir, j->name, &text) < 0)
		return NULL;
	value = gitconfig_value(buf_str(&text), "core.hookspath");
	return value && value[0] ? judge_hooks_path(j, value) : NULL;
}

/* Whether the directory of an absolute path is git's by its content. */
static _noinline_ bool judge_is_git_path(struct str path)
{
	_cleanup_fd_ int dir = -1;
	char text[PATH_MAX];

	snprintf(text, sizeof(text), "%.*s", STR_FMT(path));
	dir = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && judge_is_git_dir(dir);
}

/* The row for an absolute path, by its last names: one and as many before it as `around` says. */
static const struct obeyed *judge_row(struct str path, unsigned around)
{
	const struct obeyed *outer = NULL, *row = NULL;
	struct str above = path, name;

	while (above.n && above.p[above.n - 1] != '/')
		above.n--;
	name = str_from_index(path, above.n);
	if (!above.n || !name.n)
		return NULL;
	above.n--;
	if (around)
		outer = judge_row(above, around - 1);
	if (outer && outer->below)
		row = obeyed_find(outer->below, name);
	if (!row)
		row = obeyed_find(OBEYED_ANY, name);
	if (!row) {
		row = obeyed_find(OBEYED_GIT, name);
		row = row && judge_is_git_path(above) ? row : NULL;
	}
	/* A directory that counts as one thing with all that lies in it. */
	return !row && outer && !outer->below ? outer : row;
}

const struct obeyed *judge_mount(int fd, char path[PATH_MAX])
{
	if (fd_path(fd, path) < 0)
		path[0] = '\0';
	return judge_row(str_from(path), 2);
}

const struct obeyed *judge_mounted(int fd)
{
	char path[PATH_MAX];

	return judge_mount(fd, path);
}

bool judge_has_capabilities(int dir, const char *name)
{
	char path[64 + NAME_MAX];

	/* Capabilities that an ordinary user can give are worth nothing outside that user's
	 * namespaces. */
	if (geteuid() != 0)
		return false;
	if (!name[0]) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
		return getxattr(path, FS_CAPABILITIES, NULL, 0) > 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	return lgetxattr(path, FS_CAPABILITIES, NULL, 0) > 0;
}
