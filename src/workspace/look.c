/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: see look.h and fs/fsbroad.h. No process of the room runs any more, so only
 * the host itself can still change what is seen. Even so, every name is resolved beneath the mount
 * and through no link, and changes are made through the directory or the descriptor that was looked
 * at.
 *
 * A thing of the table counts if its own inode was changed, or if a directory between it and the
 * place that gives it a meaning (.git, .vscode) was moved there: an old file in an old directory
 * that was moved into .git has not changed itself. */
#include "workspace/look.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/fsbroad.h"
#include "workspace/aside.h"
#include "workspace/judge.h"
#include "workspace/told.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MOVED = 1, /* it came here with a directory that was moved, or made */
	CHANGED =
		2, /* it lies in a directory of git that was changed, known by its content alone */
	GUARDED = 4, /* it was read-only inside */
	MODULES = 8, /* below node_modules, where only git obeys anything */
	LINKED = 16, /* and GUARDED: some file there had another name when the room began */
	HOOKED = 32, /* below hooks that a configuration names: none there names more */
	MAX_TEXT = 32 * 1024 * 1024,
};

/* A directory that counts as one thing with all that lies in it. */
struct unit {
	const struct obeyed *row;
	char *path;
	bool told;
};

struct looker {
	const struct look *look;
	const struct look_mount *mount;
	struct look_told *told;
	struct fsbroad walk;
	struct unit *units; /* the first one is not used */
	size_t units_n;
	int error;
};

/* One entry of the directory that is open. */
struct seen {
	const struct fsbroad_item *in;
	const struct fsbroad_entry *entry;
	const struct obeyed *row;
	int dir;
	bool dir_changed, known; /* known: st holds it */
	struct stat st;
};

static bool look_is_after(const struct look *l, const struct stat *st)
{
	return st->st_ctim.tv_sec != l->since.tv_sec ? st->st_ctim.tv_sec > l->since.tv_sec
						     : st->st_ctim.tv_nsec >= l->since.tv_nsec;
}

static const struct look_id *look_kept(const struct look *l, const struct stat *st)
{
	for (size_t i = 0; i < l->kept_n; i++)
		if (l->kept[i].inode == st->st_ino && l->kept[i].device == st->st_dev)
			return &l->kept[i];
	return NULL;
}

/* Makes the path on the host; a path that is too long is cut, since it is for people. */
static void look_path(const struct looker *k, const struct fsbroad_item *in, const char *name,
	char ret[2 * PATH_MAX])
{
	snprintf(ret, 2 * PATH_MAX, "%s%s%s%s%s", k->mount->source, in->path[0] ? "/" : "",
		in->path, name[0] ? "/" : "", name);
}

static void look_tell(struct looker *k, const char *path, const char *what, const char *aside,
	const char *restore)
{
	int r = told_add(k->told, path, what, aside, restore);

	if (r < 0)
		k->error = r;
}

/* Reports a thing that has been renamed to `name`. */
static void look_tell_aside(
	struct looker *k, const struct seen *s, const char *path, const char *name)
{
	_cleanup_(buf_donep) struct buf restore = BUF_INIT(8 * 2 * PATH_MAX);
	char aside[2 * PATH_MAX];

	look_path(k, s->in, name, aside);
	if (aside_restore(&restore, aside, path) < 0)
		k->error = -ENOMEM;
	else
		look_tell(k, path, s->row->what, aside, buf_cstr(&restore));
}

/* Renames it in its directory and reports that. */
static void look_set_aside(struct looker *k, const struct seen *s, const char *path)
{
	char name[NAME_MAX + 1], what[256];
	int r = aside_rename(s->dir, s->entry->name, name);

	if (r < 0) {
		snprintf(what, sizeof(what), "%s; it could not be set aside: %s", s->row->what,
			strerror(-r));
		look_tell(k, path, what, NULL, NULL);
		return;
	}
	look_tell_aside(k, s, path, name);
}

static _noinline_ void look_found(struct looker *k, const struct seen *s)
{
	char path[2 * PATH_MAX];

	look_path(k, s->in, s->entry->name, path);
	if (s->row->end == OBEYED_ASIDE && !fs_is_within_any(path, k->look->opened))
		look_set_aside(k, s, path);
	else
		look_tell(k, path, s->row->what, NULL, NULL);
}

static bool look_know(struct seen *s)
{
	if (!s->known && fstatat(s->dir, s->entry->name, &s->st, AT_SYMLINK_NOFOLLOW) == 0)
		s->known = true;
	return s->known;
}

/* What applies to the contents of a directory that was protected, or not (kept: NULL). */
static unsigned look_guard(const struct look_id *kept)
{
	if (!kept || !kept->read_only)
		return 0;
	return kept->linked ? GUARDED | LINKED : GUARDED;
}

/* Whether it is the room's doing. The room can change a file that was read-only inside only by
 * another name of the same file, which it can remove afterwards. */
static bool look_is_rooms(const struct looker *k, const struct seen *s)
{
	bool changed = look_is_after(k->look, &s->st);
	unsigned guard = s->in->flags | look_guard(look_kept(k->look, &s->st));

	if (guard & GUARDED && !(guard & MOVED))
		return changed && !S_ISDIR(s->st.st_mode) && (guard & LINKED || s->st.st_nlink > 1);
	return changed || s->in->flags & (MOVED | CHANGED);
}

/* Whether the room could not change this file: it, or a directory around it, was read-only inside.
 */
static bool look_was_read_only(void *user, int root, const char *path)
{
	const struct looker *k = user;
	char part[PATH_MAX];
	struct stat st;

	for (size_t n = 0; n == 0 || path[n - 1]; n++) {
		const struct look_id *kept;

		n += strcspn(path + n, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		if (fstatat(root, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		kept = look_kept(k->look, &st);
		if (kept && kept->read_only)
			return !kept->linked;
	}
	return false;
}

/* Whether this directory counts as one thing, and lies in no such one. */
static bool look_is_unit(const struct obeyed *row, const struct fsbroad_item *below)
{
	return !row->below && row->judge == OBEYED_ALWAYS && !below->unit;
}

/* Begins a directory that counts as one thing. Returns 0 or -ENOMEM. */
static int look_unit(
	struct looker *k, const struct obeyed *row, const char *path, struct fsbroad_item *below)
{
	struct unit *more = reallocarray(k->units, k->units_n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	k->units = more;
	k->units[k->units_n] = (struct unit){.row = row, .path = strdup(path)};
	if (!k->units[k->units_n].path)
		return -ENOMEM;
	below->unit = k->units_n++;
	return 0;
}

static _noinline_ int look_unit_below(
	struct looker *k, const struct seen *s, struct fsbroad_item *below)
{
	char path[2 * PATH_MAX];

	look_path(k, s->in, s->entry->name, path);
	return look_unit(k, s->row, path, below);
}

/* Enters a directory, of the table or not, and sets what applies to its contents. */
static int look_enter(struct looker *k, struct seen *s)
{
	struct fsbroad_item below = {
		.place = OBEYED_ANY, .flags = s->in->flags, .unit = s->in->unit};
	const struct look_id *kept;
	int r;

	if (strcmp(s->entry->name, "node_modules") == 0)
		below.flags |= MODULES;
	if (!s->row || !look_know(s))
		return fsbroad_push(&k->walk, s->in, s->entry->name, &below);
	kept = look_kept(k->look, &s->st);
	if (s->row->below)
		below.place = s->row->below;
	if (!kept && s->dir_changed && look_is_after(k->look, &s->st))
		below.flags |= MOVED;
	below.flags |= look_guard(kept);
	r = look_is_unit(s->row, &below) ? look_unit_below(k, s, &below) : 0;
	if (r < 0)
		return r;
	return fsbroad_push(&k->walk, s->in, s->entry->name, &below);
}

/* Removes the rights that a program gives when it is executed. */
static void look_strip(
	struct looker *k, const struct stat *st, int dir, const char *name, const char *path)
{
	const char *rights = st->st_mode & (S_ISUID | S_ISGID)   ? "set-id bits"
			     : judge_has_capabilities(dir, name) ? "capabilities"
								 : NULL;
	char what[160];
	int e;

	if (!rights)
		return;
	e = -fs_strip_rights(dir, name);
	snprintf(what, sizeof(what),
		e ? "a program with %s; they could not be taken away: %s"
		  : "a program with %s, which lost them",
		rights, strerror(e));
	look_tell(k, path, what, NULL, NULL);
}

/* Removes a device, or what makes a program more than one. Returns false if the entry is gone. */
static _noinline_ bool look_mend_changed(struct looker *k, const struct seen *s)
{
	char path[2 * PATH_MAX], what[160];
	int e;

	look_path(k, s->in, s->entry->name, path);
	if (S_ISCHR(s->st.st_mode) || S_ISBLK(s->st.st_mode)) {
		e = unlinkat(s->dir, s->entry->name, 0) < 0 ? errno : 0;
		snprintf(what, sizeof(what),
			e ? "a device; it could not be removed: %s" : "a device, which was removed",
			strerror(e));
		look_tell(k, path, what, NULL, NULL);
		return e != 0;
	}
	if (S_ISREG(s->st.st_mode))
		look_strip(k, &s->st, s->dir, s->entry->name, path);
	return true;
}

/* Removes set-id bits and capabilities from a program, and removes a device (INV-NO-PRIVILEGE).
 * Returns false if the entry is gone. */
static bool look_mend(struct looker *k, struct seen *s)
{
	bool device = s->entry->type == DT_CHR || s->entry->type == DT_BLK;

	if (!device && s->entry->type != DT_REG)
		return true;
	/* This is so for most files, and looking at one costs more than all else. A file can only
	 * be bad if it came here while the room ran, or if its mode was changed, for which no room
	 * has the system calls. */
	if (!device && !s->dir_changed && !k->look->every)
		return true;
	if (!look_know(s) || !look_is_after(k->look, &s->st))
		return true;
	return look_mend_changed(k, s);
}

static struct judge look_judge(const struct looker *k, const struct seen *s)
{
	return (struct judge){.root = k->walk.top,
		.dir = s->dir,
		.in = s->in->path,
		.name = s->entry->name,
		.source = k->mount->source,
		.target = k->mount->target,
		.look = k->look};
}

static bool look_is_so(struct looker *k, const struct seen *s)
{
	const struct judge j = look_judge(k, s);
	/* A link, or a pipe, at which whoever reads it waits. */
	bool odd = !S_ISREG(s->st.st_mode);

	if (S_ISDIR(s->st.st_mode))
		return false;
	switch (s->row->judge) {
	case OBEYED_ALWAYS:
		return true;
	case OBEYED_EXECUTABLE:
		return odd || s->st.st_mode & 0111;
	case OBEYED_COMMANDS:
		return odd || judge_has_commands(&j);
	case OBEYED_REDIRECT:
		/* Only git accepts a file in place of the directory. */
		return odd || ((s->row->below == OBEYED_GIT || s->row->below == OBEYED_NONE) &&
				      judge_leads_away(&j));
	}
	return true;
}

/* Sets a link aside that leads to other hooks. path: its own, from the root. */
static int look_hooks_elsewhere(struct looker *k, char *path)
{
	const struct fsbroad_entry e = {.name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path};
	struct fsbroad_item in = {.path = path};
	struct seen s = {.in = &in, .entry = &e, .row = obeyed_find(OBEYED_GIT, STR("hooks"))};

	if (e.name == path)
		in.path = (char[]){""};
	else
		path[e.name - path - 1] = '\0';
	s.dir = fs_open_beneath(k->walk.top, in.path, O_PATH | O_DIRECTORY);
	if (s.dir >= 0)
		look_found(k, &s);
	fd_close(s.dir);
	return k->error;
}

/* Enters a directory of hooks, by its path from the root. The room may have put another directory
 * or a link in the place of it, or of one around it. */
static _noinline_ int look_hooks_named(struct looker *k, const char *path)
{
	const struct fsbroad_item top = {.path = (char[]){""}};
	struct fsbroad_item item = {.place = OBEYED_HOOKS};
	bool around, after, moved = false;
	const struct look_id *kept;
	char part[PATH_MAX];
	struct stat st;

	if (fstat(k->walk.top, &st) < 0)
		return 0;
	for (size_t n = 0; n == 0 || path[n - 1]; n++) {
		n += strcspn(path + n, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		around = look_is_after(k->look, &st);
		if (fstatat(k->walk.top, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		after = look_is_after(k->look, &st);
		if (S_ISLNK(st.st_mode) && (after || moved))
			return look_hooks_elsewhere(k, part);
		if (!S_ISDIR(st.st_mode))
			return 0;
		moved |= around && after;
	}
	kept = look_kept(k->look, &st);
	item.flags = HOOKED | (kept ? look_guard(kept) : moved ? MOVED : 0U);
	return fsbroad_push(&k->walk, &top, path, &item);
}

/* Enters the hooks directory of a configuration that is left as it is, usually the user's own. */
static int look_hooks(struct looker *k, const struct seen *s)
{
	const struct judge j = look_judge(k, s);
	/* The configuration itself may lie in the directory that it names. */
	_cleanup_(freep) char *path = s->in->flags & HOOKED ? NULL : judge_hooks(&j);

	return path ? look_hooks_named(k, path) : 0;
}

static const struct obeyed *look_row(
	const struct fsbroad_item *in, enum obeyed_place place, const char *name)
{
	const struct obeyed *row = obeyed_find(place, str_from(name));

	/* Another look has set it aside, and nothing is obeyed by such a name. */
	if (row && str_ends(row->pattern, STR("*")) && aside_is(str_from(name)))
		return NULL;
	if (!row && place != OBEYED_ANY)
		row = obeyed_find(OBEYED_ANY, str_from(name));
	if (row && in->flags & MODULES && row->place != OBEYED_GIT && row->place != OBEYED_HOOKS &&
		row->below != OBEYED_GIT)
		return NULL;
	return row;
}

/* Reports a thing that was set aside by a look that was killed before it could report it. True if
 * this is one. */
static _noinline_ bool look_at_aside(struct looker *k, const struct seen *at)
{
	size_t n = str_find(str_from(at->entry->name), STR(ASIDE));
	char name[NAME_MAX + 1], path[2 * PATH_MAX];
	struct seen s = *at;

	if (at->entry->name[n] == '\0')
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)n, at->entry->name);
	s.row = look_row(s.in, s.in->place, name);
	if (!s.row || s.row->end != OBEYED_ASIDE || !look_know(&s) || !look_is_rooms(k, &s))
		return false;
	look_path(k, s.in, name, path);
	look_tell_aside(k, &s, path, at->entry->name);
	return true;
}

/* Handles an entry that is not a directory. */
static int look_at_file(struct looker *k, struct seen *s)
{
	struct unit *u = s->in->unit ? &k->units[s->in->unit] : NULL;
	/* What runs by itself does so in a directory that counts as one thing, too. */
	bool single = s->row && (!u || s->row->end == OBEYED_ASIDE);
	struct judge j;
	bool rooms;

	if (!look_mend(k, s) || !(s->row || u) || !look_know(s))
		return k->error;
	j = look_judge(k, s);
	rooms = look_is_rooms(k, s) && !judge_is_twin(&j, &s->st, look_was_read_only, k);
	if (rooms && single && look_is_so(k, s)) {
		look_found(k, s);
		return k->error;
	}
	if (rooms && u && !u->told) {
		look_tell(k, u->path, u->row->what, NULL, NULL);
		u->told = true;
	}
	return single && s->row->judge == OBEYED_COMMANDS ? look_hooks(k, s) : k->error;
}

static int look_entry(struct looker *k, const struct fsbroad_item *in, int fd, bool changed,
	enum obeyed_place place, const struct fsbroad_entry *e)
{
	struct seen s = {.in = in,
		.entry = e,
		.dir = fd,
		.dir_changed = changed,
		.row = look_row(in, place, e->name)};

	if (e->type == DT_DIR)
		return look_enter(k, &s);
	/* This is so for most entries. */
	if (!s.row && !in->unit && !changed && !k->look->every && !k->look->again &&
		e->type != DT_CHR && e->type != DT_BLK)
		return 0;
	if (k->look->again && look_at_aside(k, &s))
		return k->error;
	return look_at_file(k, &s);
}

static int look_dir(struct looker *k, struct fsbroad_item *in, int fd, bool changed)
{
	struct obeyed_signs signs = {0};
	struct fsbroad_entry e;
	int r = 0;

	while (r == 0 && fsbroad_read(&k->walk, fd, &e)) {
		obeyed_see(&signs, str_from(e.name));
		r = look_entry(k, in, fd, changed, in->place, &e);
	}
	if (r < 0 || in->place == OBEYED_GIT || !obeyed_is_git(&signs) ||
		lseek(fd, 0, SEEK_SET) < 0)
		return r;
	/* A git directory by its content: the entries that make it one may be all that is new. */
	if (changed)
		in->flags |= CHANGED;
	while (r == 0 && fsbroad_read(&k->walk, fd, &e))
		if (obeyed_find(OBEYED_GIT, str_from(e.name)))
			r = look_entry(k, in, fd, changed, OBEYED_GIT, &e);
	return r;
}

/* Reports a directory that can be opened by no means if the room, which is root there, may have
 * made it so. */
static _noinline_ void look_closed(struct looker *k, const struct fsbroad_item *in, int error)
{
	_cleanup_fd_ int fd = fs_open_beneath(k->walk.top, in->path, O_PATH | O_DIRECTORY);
	char path[2 * PATH_MAX], what[128];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || !look_is_after(k->look, &st))
		return;
	look_path(k, in, "", path);
	snprintf(what, sizeof(what), "a directory that could not be looked into: %s",
		strerror(error));
	look_tell(k, path, what, NULL, NULL);
}

static int look_tree(struct looker *k, int root)
{
	const struct obeyed *row = judge_mounted(root);
	struct fsbroad_item item = {.place = row && row->below ? row->below : OBEYED_ANY};
	const struct fsbroad_bounds bounds = {.dirs = LOOK_MAX_DIRS,
		.entries = LOOK_MAX_ENTRIES,
		.depth = LOOK_MAX_DEPTH,
		.ordinary = OBEYED_ANY,
		.opens = true};
	struct stat st;
	int fd, r;

	k->units_n = 1;
	r = row && look_is_unit(row, &item) ? look_unit(k, row, k->mount->source, &item) : 0;
	if (r < 0)
		return r;
	r = fsbroad_init(&k->walk, root, &bounds, &item);
	while (r == 0 && fsbroad_next(&k->walk, &item, &fd, &st)) {
		if (fd >= 0)
			r = look_dir(k, &item, fd, look_is_after(k->look, &st));
		else
			look_closed(k, &item, -fd);
		fd_close(fd);
		fsbroad_leave(&item);
	}
	if (k->walk.cut)
		k->error = MIN(k->error, told_always(k->told, k->mount->source,
						 "too large to be looked through as a whole: look "
						 "at the rest before you use it"));
	fsbroad_done(&k->walk);
	for (size_t i = 1; k->units && i < k->units_n; i++)
		free(k->units[i].path);
	free(k->units);
	return r < 0 ? r : k->error;
}

/* Handles a file that is mounted by itself. The room could not rename it, and nothing was granted
 * of the directory in which it lies, so it is named only. */
static _noinline_ void look_single(struct looker *k, const struct stat *st)
{
	char path[PATH_MAX];
	const struct obeyed *row = judge_mount(k->mount->fd, path);
	char *slash = row ? strrchr(path, '/') : NULL;
	const struct fsbroad_item in = {.path = (char[]){""}};
	const struct fsbroad_entry e = {.name = slash ? slash + 1 : ""};
	struct seen s = {.in = &in, .entry = &e, .row = row, .st = *st, .known = true};

	if (!S_ISREG(st->st_mode) || !look_is_after(k->look, st))
		return;
	look_strip(k, st, k->mount->fd, "", k->mount->source);
	if (!slash)
		return;
	*slash = '\0';
	s.dir = k->walk.top = open(path[0] ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s.dir < 0 || look_is_so(k, &s))
		look_tell(k, k->mount->source, row->what, NULL, NULL);
	fd_close(s.dir);
}

static int look_mount(const struct look *l, const struct look_mount *m, struct look_told *told)
{
	struct looker k = {.look = l, .mount = m, .told = told};
	struct stat st;
	int r = 0;

	if (m->fd < 0 || fstat(m->fd, &st) < 0)
		look_tell(&k, m->source,
			"it is not where it was: what the sandbox left in it was not looked "
			"through",
			NULL, NULL);
	else if (S_ISDIR(st.st_mode))
		r = look_tree(&k, m->fd);
	else
		look_single(&k, &st);
	return r < 0 ? r : k.error;
}

int look_through(const struct look *l, struct look_told *ret)
{
	int r = 0;

	*ret = (struct look_told){.text = BUF_INIT(MAX_TEXT)};
	for (size_t i = 0; i < l->mounts_n; i++) {
		int e = look_mount(l, &l->mounts[i], ret);

		if (e < 0)
			(void)!told_always(ret, l->mounts[i].source,
				"there was not enough memory to look through it as a whole: look "
				"at the rest before you use it");
		r = MIN(r, e);
	}
	return r;
}
