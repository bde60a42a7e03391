/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/find.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/fsbroad.h"
#include "workspace/judge.h"
#include "workspace/worktree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct finder {
	struct fsbroad walk;
	const char *source;
	const struct find_calls *calls;
};

enum { FINDER_RECORDS = 1 }; /* the flag of a directory with records of worktrees */

/* Git tracks nothing below a name .git. What lies elsewhere may be tracked, so inside, too, it has
 * to be what the project has. in: the git directory; "" is the mount itself. */
static bool finder_is_tracked(const char *in, const char *path)
{
	return in[0] && strncmp(path, ".git/", 5) != 0 && !strstr(path, "/.git/");
}

static enum find_kind finder_hooks_kind(const char *in, const char *path)
{
	return finder_is_tracked(in, path) ? FIND_READ_ONLY : FIND_HOOKS;
}

static enum find_kind finder_kind(
	const struct obeyed *row, const char *in, const char *path, bool dir)
{
	if (dir && row->below == OBEYED_HOOKS)
		return finder_hooks_kind(in, path);
	if (!dir && row->place == OBEYED_GIT && row->judge == OBEYED_COMMANDS &&
		!finder_is_tracked(in, path))
		return FIND_CONFIG;
	return !dir || row->protect == OBEYED_READONLY ? FIND_READ_ONLY : FIND_PINNED;
}

/* Reports the entry name of the open directory fd. It counts as what it is now, which may be more
 * than was read of the directory. */
static int finder_found(struct finder *f, const struct fsbroad_item *in, int fd, const char *name,
	const struct obeyed *row)
{
	char path[PATH_MAX];
	struct stat st;

	if (fs_join_in(path, sizeof(path), in->path, name) < 0 ||
		fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		(!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return 0;
	return f->calls->found(
		f->calls->user, path, &st, finder_kind(row, in->path, path, S_ISDIR(st.st_mode)));
}

/* Git's other directories, often thousands, hold nothing that is obeyed. */
static bool finder_enters(enum obeyed_place place, const char *name)
{
	if (place == OBEYED_GIT)
		return strcmp(name, "modules") == 0 || strcmp(name, "worktrees") == 0;
	return place == OBEYED_ANY && strcmp(name, "node_modules") != 0;
}

/* Reports the directory of the project in which git looks for hooks. */
static int finder_hooks(struct finder *f, const struct fsbroad_item *in, int fd, const char *name)
{
	const struct judge j = {
		.root = f->walk.top, .dir = fd, .in = in->path, .name = name, .source = f->source};
	_cleanup_(freep) char *path = judge_hooks(&j);
	_cleanup_fd_ int hooks = -1;
	struct stat st;

	if (!path)
		return 0;
	hooks = fs_open_beneath(f->walk.top, path, O_PATH | O_DIRECTORY);
	return hooks >= 0 && fstat(hooks, &st) == 0 ? f->calls->found(f->calls->user, path, &st,
							      finder_hooks_kind(in->path, path))
						    : 0;
}

/* Reports the record of a worktree. Returns 1 if it need not be searched: nobody uses the record of
 * a worktree that does not exist. */
static int finder_record(struct finder *f, const struct fsbroad_item *in, const char *name)
{
	char path[PATH_MAX], file_path[PATH_MAX];
	_cleanup_fd_ int fd = fs_join_in(path, sizeof(path), in->path, name) < 0
				      ? -1
				      : fs_open_beneath(f->walk.top, path, O_RDONLY | O_DIRECTORY);
	_cleanup_fd_ int file = fd < 0 ? -1 : worktree_find(fd, file_path);
	struct stat st;

	return file >= 0 && fstat(fd, &st) == 0
		       ? f->calls->worktree(f->calls->user, path, &st, file, file_path)
		       : 1;
}

/* Reports a file that the room does not get. Returns 1 if it is none. */
static int finder_hidden(struct finder *f, const struct fsbroad_item *in, int fd, const char *name)
{
	char path[PATH_MAX];
	enum hidden hidden;
	struct stat st;

	if (!f->calls->hide || !hide_may_concern(f->calls->hide, name) ||
		fs_join_in(path, sizeof(path), in->path, name) < 0)
		return 1;
	hidden = hide_judge(f->calls->hide, path, fd, name);
	if (hidden == HIDDEN_NOT || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(st.st_mode))
		return 1;
	return f->calls->found(f->calls->user, path, &st,
		hidden == HIDDEN_BY_RULE ? FIND_HIDDEN_BY_RULE : FIND_HIDDEN_BY_DEFAULT);
}

/* Looks for what is to be hidden in a directory that is protected as a whole, or not at all. */
static int finder_push_plain(struct finder *f, const struct fsbroad_item *in, const char *name)
{
	const struct fsbroad_item below = {.place = OBEYED_NONE};

	return f->calls->hide ? fsbroad_push(&f->walk, in, name, &below) : 0;
}

/* Handles an entry that is obeyed. */
static int finder_obeyed(struct finder *f, const struct fsbroad_item *in, int fd,
	const struct obeyed *row, const struct fsbroad_entry *e, struct fsbroad_item *below)
{
	bool dir = e->type == DT_DIR;
	int r;

	if (row->protect == OBEYED_NOTHING || !(dir || e->type == DT_REG))
		return dir ? finder_push_plain(f, in, e->name) : 0;
	r = finder_found(f, in, fd, e->name, row);
	below->place = row->below;
	if (r == 0 && !dir && row->judge == OBEYED_COMMANDS)
		r = finder_hooks(f, in, fd, e->name);
	if (r < 0 || !dir)
		return r;
	return row->protect == OBEYED_PINNED ? fsbroad_push(&f->walk, in, e->name, below)
					     : finder_push_plain(f, in, e->name);
}

/* Handles an entry of a directory that counts as `place`. */
static int finder_entry(struct finder *f, const struct fsbroad_item *in, int fd,
	enum obeyed_place place, const struct fsbroad_entry *e)
{
	const struct obeyed *row = obeyed_find(place, str_from(e->name));
	struct fsbroad_item below = {.place = OBEYED_ANY};
	bool dir = e->type == DT_DIR;
	int r = e->type == DT_REG ? finder_hidden(f, in, fd, e->name) : 1;

	if (r <= 0)
		return r;
	if (dir && in->flags & FINDER_RECORDS) {
		r = finder_record(f, in, e->name);
		if (r != 0)
			return MIN(r, 0);
	}
	if (place == OBEYED_GIT && strcmp(e->name, "worktrees") == 0)
		below.flags = FINDER_RECORDS;
	if (row)
		return finder_obeyed(f, in, fd, row, e, &below);
	return dir && finder_enters(place, e->name) ? fsbroad_push(&f->walk, in, e->name, &below)
						    : 0;
}

static int finder_dir(struct finder *f, const struct fsbroad_item *in, int fd)
{
	struct obeyed_signs signs = {0};
	struct fsbroad_entry e;
	int r = 0;

	while (r == 0 && fsbroad_read(&f->walk, fd, &e)) {
		obeyed_see(&signs, str_from(e.name));
		r = finder_entry(f, in, fd, in->place, &e);
	}
	if (r < 0 || in->place != OBEYED_ANY || !obeyed_is_git(&signs) ||
		lseek(fd, 0, SEEK_SET) < 0)
		return r;
	while (r == 0 && fsbroad_read(&f->walk, fd, &e))
		r = finder_entry(f, in, fd, OBEYED_GIT, &e);
	return r;
}

int workspace_find(int dir, const char *source, const struct find_calls *calls, bool *ret_cut)
{
	const struct obeyed *row = judge_mounted(dir);
	struct finder f = {.source = source, .calls = calls};
	struct fsbroad_item item = {.place = row && row->below ? row->below : OBEYED_ANY};
	const struct fsbroad_bounds bounds = {.dirs = FIND_MAX_DIRS,
		.entries = FIND_MAX_ENTRIES,
		.depth = FIND_MAX_DEPTH,
		.ordinary = OBEYED_ANY};
	int fd, r = fsbroad_init(&f.walk, dir, &bounds, &item);
	struct stat st;

	while (r == 0 && fsbroad_next(&f.walk, &item, &fd, &st)) {
		if (fd >= 0)
			r = finder_dir(&f, &item, fd);
		fd_close(fd);
		fsbroad_leave(&item);
	}
	if (ret_cut)
		*ret_cut = f.walk.cut;
	fsbroad_done(&f.walk);
	return r;
}
