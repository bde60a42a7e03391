/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the trees are walked (fs/fswalk.h), and each name is compared with what was
 * seen in the turn before. A file is read again if its inode or change time (ctime, which cannot be
 * set in the room) differs, or if that time is so close to our last look that a later change may
 * have the same; then its digest shows whether it has changed. By the same rule the names in a
 * directory are read again: each change of them changes the directory's time. This happens under
 * the log's lock, so that nothing is written from outside meanwhile. The room may write; its
 * changes are found in this turn or the next.
 *
 * A mapping is written to without a system call. On a disk, the first such write after a page was
 * written back changes the time; so a file is read again as long as somebody has it open for
 * writing. In memory (tmpfs), not even that is so: there, every file is read again in each turn.
 *
 * What was seen is noted when it is on record. So if an entry cannot be written (a full disk), the
 * look ends, and the next one finds the rest. If this was the first one, nobody can tell what of
 * that was there before the first command: the record says so in front of it.
 *
 * In the root's own layer a directory that was removed and made again hides what lies below it. So
 * its deletion is recorded first, and then all that it has.
 *
 * Only directories and regular files are opened, by their names in an open directory, and no link
 * is followed. Other file systems mounted in a tree are not entered.
 *
 * Root in the room of an ordinary user can open files that this user, and so the recorder, cannot.
 * These, and whatever else could be a hiding place, get one entry, until they could be looked at
 * again. What was seen before in a directory that cannot be looked at counts as unchanged. */
#include "base/clock.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/fswalk.h"
#include "recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utlist.h>

/* Change times are only as exact as the kernel's tick, or as seconds (two, on FAT). */
#define UNSURE_NSEC ((uint64_t)40 * 1000 * 1000)
#define COARSE_NSEC ((uint64_t)2000 * 1000 * 1000)

static const char UNREADABLE[] = "it cannot be read";

enum { ENDED = 1 /* the walk, with a result */ };

/* A directory on the way: the top, or one that was or may be entered. */
struct place {
	struct seen *s; /* NULL for the top */
	struct stat st; /* before it was opened; then of what was opened */
	bool is_new, entered;
	bool anew;              /* what was known below it is void: the record has deleted it */
	bool known;             /* its names are not read */
	struct seen *at, *next; /* of the known ones */
	struct dirnames *names;
	struct sight *sight;
	size_t path_n;
};

struct walk {
	struct recorder *r;
	const struct recorder_tree *tree;
	uint32_t index;
	dev_t device;
	bool untimed;         /* what is written through a mapping need not change a time */
	struct place *places; /* RECORDER_MAX_DEPTH + 1: the top, and those on the way */
	char path[STATE_PATH_MAX + 1];
	struct cloche_err *err;
	int result; /* with which the walk ended */
};

static uint64_t nsec_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* Whether a change after this look may leave the change time as it is. */
static bool is_unsure(const struct recorder *r, const struct stat *st)
{
	return nsec_of(st->st_ctim) + (st->st_ctim.tv_nsec ? UNSURE_NSEC : COARSE_NSEC) >
	       r->looked_nsec;
}

/* Note that of names in a directory nothing can be seen, and put it on record if it is not. */
static int note_blind(struct recorder *r, struct sight *s, const char *path, const char *why,
	struct cloche_err *err)
{
	s->blind = r->turn;
	return entry_of_missed(r, s, path, 0, why, err);
}

/* Whether the name has meanwhile gone, or become something else. */
static bool is_gone(int sys_errno)
{
	return sys_errno == ENOENT || sys_errno == ELOOP || sys_errno == ENOTDIR ||
	       sys_errno == ENXIO;
}

static bool is_hidden(const struct walk *w, const struct stat *st)
{
	return w->tree->layer && fs_is_whiteout(st);
}

/* Whether the file is unchanged since the turn before. Notes its current state. */
static bool is_as_before(const struct walk *w, struct seen *s, const struct stat *st)
{
	uint64_t changed = nsec_of(st->st_ctim);
	bool same = !s->unsure && s->inode == st->st_ino && s->changed_nsec == changed &&
		    s->size == (uint64_t)st->st_size &&
		    !(w->untimed && S_ISREG(st->st_mode) && *s->digest);

	s->inode = st->st_ino;
	s->changed_nsec = changed;
	s->size = (uint64_t)st->st_size;
	s->unsure = is_unsure(w->r, st);
	return same;
}

/* Whether somebody can write to the file through a mapping that was written to before, and so
 * without a new change time: whoever has it mapped for writing counts as having it open for that,
 * and then nobody gets a lease for reading. A file system that has no leases does not tell. */
static bool is_being_written(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN || errno == EACCES;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

static int cannot_read(
	struct recorder *r, struct seen *s, const struct stat *st, struct cloche_err *err)
{
	/* If it is on record, so is a new mode. */
	int e = *s->digest ? entry_of_mode(r, s, st->st_mode, err) : 0;

	s->unsure = true;
	if (e < 0)
		return e;
	s->mode = st->st_mode;
	return entry_of_missed(r, &s->sight, s->path, (uint64_t)st->st_size, UNREADABLE, err);
}

/* before: what the name was before it was opened. */
static int look_at_file(struct walk *w, struct seen *s, int dir, const char *name,
	const struct stat *before, struct cloche_err *err)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	bool is_written;
	int e;

	if (fd < 0 && !is_gone(errno))
		return cannot_read(w->r, s, before, err);
	/* It is gone, or something else by now: left to the next turn. If that is when the command
	 * has ended, the record must not say that the command made it. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		s->unsure = true;
		return w->r->whole ? 0
				   : entry_of_skip(w->r, s->path, 0,
					     "it changed while it was looked at", err);
	}
	is_written = !w->untimed && is_being_written(fd);
	if (outside_is_appended(s, fd, (uint64_t)st.st_size))
		e = entry_of_mode(w->r, s, st.st_mode, err);
	else
		e = entry_of_file(w->r, s, fd, &st, err);
	if (e < 0)
		return e;
	s->mode = st.st_mode;
	s->unsure = s->unsure || (is_written && *s->digest);
	s->sight.told = s->sight.told && !*s->digest;
	return 0;
}

static int look_at_link(
	struct walk *w, struct seen *s, int dir, const char *name, struct cloche_err *err)
{
	char target[STATE_PATH_MAX + 1];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));
	char digest[SHA256_HEX_MAX];
	int e;

	if (n <= 0 || n > STATE_PATH_MAX)
		return 0;
	sha256_text(str_make(target, (size_t)n), digest);
	s->mode = S_IFLNK;
	if (strcmp(digest, s->digest) == 0)
		return 0;
	/* The link replaces anything with that name. */
	e = entry_of_name(w->r, STATE_FS_DELETE, s->path, STR_NULL, STATE_NO_MODE, err);
	if (e == 0)
		e = entry_of_name(w->r, STATE_FS_SYMLINK, s->path, str_make(target, (size_t)n),
			STATE_NO_MODE, err);
	if (e == 0)
		memcpy(s->digest, digest, sizeof(s->digest));
	return e;
}

/* Whether a directory in a layer has come to hide what lies below it. Then the record has to
 * delete that, and with it everything that it had in this directory. */
static bool hides_anew(struct walk *w, struct seen *s, int fd)
{
	bool before = s->opaque;

	if (!w->tree->layer || fd < 0)
		return false;
	s->opaque = fs_is_opaque(fd);
	return s->opaque && !before;
}

/* What was seen could not be put on record. The next look has to find it again. */
static int look_failed(struct recorder *r, struct seen *s, bool is_new, int e)
{
	s->unsure = true;
	if (is_new)
		seen_remove(r, s);
	return e;
}

/* Record a directory. fd: it is open; -1: it cannot be, for errnum. */
static int look_at_directory(
	struct walk *w, struct place *p, int fd, int errnum, struct cloche_err *err)
{
	struct seen *s = p->s;
	bool anew = hides_anew(w, s, fd);
	int e = 0;

	w->r->changed_usec = nsec_of(p->st.st_ctim) / 1000;
	if (anew) {
		e = entry_of_name(w->r, STATE_FS_DELETE, s->path, STR_NULL, STATE_NO_MODE, err);
		s->names.unchanged_nsec = 0;
		s->any_mode = false;
	}
	if (e == 0 && (p->is_new || anew))
		e = entry_of_name(
			w->r, STATE_FS_MKDIR, s->path, STR_NULL, p->st.st_mode & 07777, err);
	else if (e == 0)
		e = entry_of_mode(w->r, s, p->st.st_mode, err);
	if (e < 0) {
		s->opaque = s->opaque && !anew;
		return look_failed(w->r, s, p->is_new, e);
	}
	/* After a change of its mode, tell again if it still cannot be looked at. */
	s->sight.told = s->sight.told && s->mode == p->st.st_mode;
	s->mode = p->st.st_mode;
	p->anew = p->anew || anew;
	if (fd >= 0)
		return 0;
	if (errnum == EXDEV)
		return note_blind(w->r, &s->sight, s->path, "it is on another file system", err);
	if (errnum == ENAMETOOLONG)
		return note_blind(w->r, &s->sight, s->path, "it is too deep", err);
	if (!is_gone(errnum))
		return note_blind(w->r, &s->sight, s->path, UNREADABLE, err);
	s->sight.blind = w->r->turn;
	return 0;
}

/* Record that something is there, and once more if its mode changes. */
static int look_at_special(
	struct walk *w, struct seen *s, const struct stat *st, struct cloche_err *err)
{
	bool same = (s->mode & S_IFMT) == (st->st_mode & S_IFMT) &&
		    (s->any_mode || s->mode == st->st_mode);
	int e = same ? 0 : entry_of_skip(w->r, s->path, 0, "it is no file, directory or link", err);

	if (e < 0)
		return e;
	s->mode = st->st_mode;
	s->any_mode = false;
	return 0;
}

/* Record what is no directory. */
static int look_at_thing(struct walk *w, const struct fswalk_entry *in, struct seen *s,
	const struct stat *st, struct cloche_err *err)
{
	struct recorder *r = w->r;
	bool same = is_as_before(w, s, st);
	int e = 0;

	if (is_hidden(w, st)) {
		if (!S_ISCHR(s->mode))
			e = entry_of_name(
				r, STATE_FS_DELETE, w->path, STR_NULL, STATE_NO_MODE, err);
		if (e == 0)
			s->mode = st->st_mode;
		return e;
	}
	if (same)
		return 0;
	if (S_ISREG(st->st_mode))
		return look_at_file(w, s, in->dir, in->name, st, err);
	if (S_ISLNK(st->st_mode))
		return look_at_link(w, s, in->dir, in->name, err);
	return look_at_special(w, s, st, err);
}

/* Return FSWALK_INTO for a directory, which is not recorded yet. known: as it was seen, or NULL. */
static int look_at(struct walk *w, const struct fswalk_entry *in, struct seen *known,
	const struct stat *st, struct cloche_err *err)
{
	struct recorder *r = w->r;
	struct place *up = &w->places[in->depth];
	struct seen *s = known;
	bool is_new, deleted = false;
	int e = 0;

	if (s && up->anew) {
		seen_remove(r, s);
		s = NULL;
	}
	if (s && s->mode & S_IFMT && (s->mode & S_IFMT) != (st->st_mode & S_IFMT)) {
		e = entry_of_name(r, STATE_FS_DELETE, w->path, STR_NULL, STATE_NO_MODE, err);
		if (e < 0)
			return e;
		seen_remove(r, s);
		s = NULL;
		deleted = true;
	}
	r->changed_usec = nsec_of(st->st_ctim) / 1000;
	is_new = !s;
	if (!s)
		s = seen_add(r, w->path);
	if (!s)
		return 0;
	s->opaque = s->opaque || deleted;
	seen_list(up->names, s);
	s->tree = w->index;
	s->turn = r->turn;
	r->visited++;
	if (S_ISDIR(st->st_mode)) {
		up[1] = (struct place){.s = s,
			.st = *st,
			.is_new = is_new,
			.anew = up->anew,
			.names = &s->names,
			.sight = &s->sight,
			.path_n = strlen(w->path)};
		return st->st_dev == w->device ? FSWALK_INTO
					       : look_at_directory(w, &up[1], -1, EXDEV, err);
	}
	e = look_at_thing(w, in, s, st, err);
	return e < 0 ? look_failed(r, s, is_new, e) : 0;
}

/* Whether the room does not get the file. */
static bool is_kept_away(const struct recorder *r, const struct stat *st)
{
	for (unsigned i = 0; i < r->hidden_n; i++)
		if (r->hidden[i].inode == st->st_ino && r->hidden[i].device == st->st_dev)
			return true;
	return false;
}

/* known: as it was seen there before, or NULL. */
static int look_at_name(
	struct walk *w, const struct fswalk_entry *in, struct seen *known, struct cloche_err *err)
{
	const struct place *up = &w->places[in->depth];
	size_t n = strlen(in->name);
	struct stat st;

	w->path[up->path_n] = '\0';
	if (up->path_n + 1 + n > STATE_PATH_MAX)
		return entry_of_missed(
			w->r, up->sight, w->path, 0, "a path in it is too long", err);
	if (fstatat(in->dir, in->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_gone(errno) ? 0 : note_blind(w->r, up->sight, w->path, UNREADABLE, err);
	if (is_kept_away(w->r, &st))
		return 0;
	w->path[up->path_n] = '/';
	memcpy(w->path + up->path_n + 1, in->name, n + 1);
	return look_at(w, in, known ? known : seen_find(w->r, w->path), &st, err);
}

/* Give the walk's functions what ends it. */
static int walk_result(struct walk *w, int e)
{
	if (e >= 0)
		return e;
	w->result = e;
	return ENDED;
}

/* Whether the names in a directory are those that were seen. */
static bool walk_knows(void *user, size_t depth, const struct stat *st)
{
	struct walk *w = user;
	struct place *p = &w->places[depth];

	p->st = *st;
	p->known =
		p->names->inode == st->st_ino && p->names->unchanged_nsec == nsec_of(st->st_ctim);
	p->next = p->names->first;
	if (!p->known)
		p->names->unchanged_nsec = 0;
	return p->known;
}

static const char *walk_next(void *user, size_t depth)
{
	struct walk *w = user;
	struct place *p = &w->places[depth];

	do {
		p->at = p->next;
		if (!p->at)
			return NULL;
		p->next = p->at->next;
	} while (p->at->turn == w->r->turn);
	return p->at->path + p->path_n + 1;
}

static int walk_entry(void *user, const struct fswalk_entry *e)
{
	struct walk *w = user;
	const struct place *p = &w->places[e->depth];

	return walk_result(w, look_at_name(w, e, p->known ? p->at : NULL, w->err));
}

static int walk_entered(void *user, const struct fswalk_entry *e, int fd, const struct stat *st)
{
	struct walk *w = user;
	struct place *p = &w->places[e->depth + 1];

	p->entered = true;
	return walk_result(w, look_at_directory(w, p, fd, 0, w->err));
}

/* All names in a directory were looked at. */
static void walk_finish(struct walk *w, const struct place *p)
{
	if (p->sight->missed != w->r->turn)
		p->sight->told = false;
	if (p->known || p->sight->missed == w->r->turn || w->r->overfull || is_unsure(w->r, &p->st))
		return;
	p->names->inode = p->st.st_ino;
	p->names->unchanged_nsec = nsec_of(p->st.st_ctim);
}

static int walk_left(void *user, const struct fswalk_entry *e)
{
	struct walk *w = user;

	walk_finish(w, &w->places[e->depth + 1]);
	return 0;
}

static int walk_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	struct walk *w = user;
	struct place *p = &w->places[e->depth + 1];

	if (!p->entered)
		return walk_result(w, look_at_directory(w, p, -1, errnum, w->err));
	/* It is left to the next turn, if it was moved. */
	p->sight->blind = w->r->turn;
	return errnum == ESTALE
		       ? 0
		       : walk_result(w, note_blind(w->r, p->sight, p->s->path, UNREADABLE, w->err));
}

/* The directory itself is the person's, not a name in a tree. Only a change of its mode is told. */
static int look_at_top(
	struct recorder *r, struct recorder_tree *t, const struct stat *st, struct cloche_err *err)
{
	int e = 0;

	if (!t->layer && t->mode && t->mode != st->st_mode) {
		r->changed_usec = nsec_of(st->st_ctim) / 1000;
		e = entry_of_name(r, STATE_FS_CHMOD, t->path, STR_NULL, st->st_mode & 07777, err);
	}
	if (e == 0)
		t->mode = st->st_mode;
	return e;
}

static int scan_tree(struct recorder *r, uint32_t index, struct cloche_err *err)
{
	struct recorder_tree *t = &r->trees[index];
	struct walk w = {.r = r, .tree = t, .index = index, .err = err};
	const struct fswalk_how how = {.levels = RECORDER_MAX_DEPTH,
		.stay = FSWALK_ON_DEVICE,
		.untyped = true,
		.user = &w,
		.knows = walk_knows,
		.next = walk_next,
		.entry = walk_entry,
		.entered = walk_entered,
		.left = walk_left,
		.missed = walk_missed};
	_cleanup_(freep) struct place *top = NULL;
	struct statfs fs;
	struct stat st;
	int e;

	if (fstat(t->fd, &st) < 0 || fstatfs(t->fd, &fs) < 0)
		return err_sys(err, errno, "look at %s", t->path);
	if (!S_ISDIR(st.st_mode))
		return 0;
	e = look_at_top(r, t, &st, err);
	if (e < 0)
		return e;
	w.places = top = calloc(RECORDER_MAX_DEPTH + 1, sizeof(*top));
	if (!top)
		return err_nomem(err);
	w.device = st.st_dev;
	w.untimed = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	top->names = &t->names;
	top->sight = &t->sight;
	top->path_n = strlen(t->path);
	memcpy(w.path, t->path, top->path_n + 1);
	e = fswalk(t->fd, "", &how);
	if (e == 0)
		walk_finish(&w, top);
	if (e == -ENOMEM)
		return err_nomem(err);
	if (e < 0)
		return note_blind(r, &t->sight, t->path, UNREADABLE, err);
	return e == ENDED ? w.result : 0;
}

/* What is not known may be anywhere. */
static int note_unknown(struct recorder *r, const char *why, struct cloche_err *err)
{
	int e = 0;

	for (unsigned i = 0; e == 0 && i < r->trees_n; i++)
		e = entry_of_skip(r, *r->trees[i].path ? r->trees[i].path : "/", 0, why, err);
	return e;
}

static int note_overfull(struct recorder *r, struct cloche_err *err)
{
	return r->overfull && !r->overfull_told
		       ? note_unknown(r, "there are too many files to know all", err)
		       : 0;
}

int scan_note_gap(struct recorder *r, struct cloche_err *err)
{
	int e;

	if (r->turn == 0 || r->whole || r->gap_told)
		return 0;
	e = note_unknown(r, "the first look at it failed", err);
	r->gap_told = e == 0;
	return e;
}

/* Until the room is over, the files of which it has a copy are not what it has. What was seen of
 * them counts as unchanged. */
static bool scan_is_due(struct recorder *r, uint32_t index)
{
	struct recorder_tree *t = &r->trees[index];

	if (!t->copied || !r->whole || r->last)
		return true;
	t->sight.blind = r->turn;
	return false;
}

int scan_trees(struct recorder *r, struct cloche_err *err)
{
	int e = 0;

	r->turn++;
	r->visited = 0;
	/* What is found may have been there before the command. */
	if (!r->whole)
		r->exec = 0;
	r->looked_nsec = clock_real_usec() * 1000;
	for (uint32_t i = 0; e == 0 && i < r->trees_n; i++) {
		r->quiet = !r->whole && r->trees[i].noted;
		e = scan_is_due(r, i) ? scan_tree(r, i, err) : 0;
	}
	r->quiet = false;
	/* After an incomplete walk, missing files may still exist. */
	if (e == 0)
		e = gone_put(r, err);
	if (e == 0)
		e = note_overfull(r, err);
	if (e < 0)
		return e;
	r->whole = true;
	r->told_files = false;
	return 0;
}
