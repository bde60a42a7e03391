/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * overlayfs keeps in the upper layer a copy of every file that was made, written or had its
 * attributes changed; a character device 0/0 (whiteout) for a deleted file; and a mark on
 * directories that hide what lies below (opaque). It also contains the directories above a change,
 * and those that layers_own() made. So only a comparison with the lower layer shows what changed:
 * a walk through the upper tree (fs/fswalk.h) has the lower directory beside each of its own open.
 * Of one that an opaque directory hides, the names are in memory, and those that the walk does not
 * meet are deleted ones; they are reported where their place in the order is.
 *
 * A directory is reported before its entries, but whether any of them changed is known only later.
 * So the names of unreported directories stay on the path and are reported with the first change
 * below.
 *
 * An empty directory of the lower layer with the mode LAYERS_COVERED stands for the host's. An
 * owner in the room is the host's owner plus the room's first id, which the top of the upper layer
 * has. */
#include "room/changes.h"
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/fswalk.h"
#include "room/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PATH_MAX_BYTES = CHANGES_MAX_DEPTH * 257,
	CHUNK = 32 * 1024,
	ENDED = 1, /* the walk, with a result */
};
#define COMPARE_MAX (1ULL << 30) /* total bytes; a file beyond that counts as changed */

struct names {
	char **v;
	size_t n, cap, at;
};

/* A directory of the upper layer, and the one of the same name below it. */
struct pair {
	int lower;           /* owned; -1: there is none */
	bool host;           /* lower is the host's */
	size_t path_n;       /* length of their path */
	mode_t mode;         /* of the one of the upper layer */
	struct names hidden; /* those in lower that it hides */
};

struct walk {
	room_change_fn fn;
	void *user;
	struct buf path;
	size_t reported;    /* length of the part of path whose directories were reported */
	struct pair *pairs; /* CHANGES_MAX_DEPTH + 1: the top, and the directories on the path */
	size_t pairs_n;
	uint64_t hidden, compared;
	uid_t uid; /* root of the room, as we see it */
	gid_t gid;
	struct cloche_err *err; /* the first error */
	int incomplete;
	int result; /* with which the walk ended */
};

static void note_incomplete(struct walk *w, int code, const char *what)
{
	if (w->incomplete == 0)
		w->incomplete = err_set(w->err, code, "%s: %.*s", what, STR_FMT(buf_str(&w->path)));
}

static int call(struct walk *w, enum room_change_kind kind, size_t path_n, const struct stat *st)
{
	struct room_change c = {
		.kind = kind, .path = str_make(buf_data(&w->path), path_n), .mode = st->st_mode};
	char *end = buf_data(&w->path) + path_n, saved;
	int r;

	if (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode))
		c.size = (uint64_t)st->st_size;
	/* There is always a byte after the path: see changes_at(). */
	saved = *end;
	*end = '\0';
	r = w->fn(w->user, &c);
	*end = saved;
	return r;
}

/* Report the entry at the whole path, after the directories above it. */
static int report(struct walk *w, enum room_change_kind kind, const struct stat *st)
{
	struct stat dir = {0};
	size_t i, level = 0;
	int r = 0;

	for (i = 1; i < buf_len(&w->path) && r == 0; i++) {
		if (buf_data(&w->path)[i] != '/')
			continue;
		dir.st_mode = w->pairs[++level].mode;
		if (i > w->reported)
			r = call(w, ROOM_CHANGE_CHANGED, i, &dir);
	}
	w->reported = buf_len(&w->path);
	return r != 0 ? r : call(w, kind, buf_len(&w->path), st);
}

/* Make the path that of a directory on it. */
static void changes_back_to(struct walk *w, const struct pair *p)
{
	w->path.tail = w->path.head + p->path_n;
	w->reported = MIN(w->reported, p->path_n);
}

/* Make the path that of a name in such a directory. */
static int changes_at(struct walk *w, const struct pair *in, const char *name)
{
	changes_back_to(w, in);
	if (buf_add_char(&w->path, '/') < 0 || buf_add(&w->path, name, strlen(name)) < 0 ||
		!buf_cstr(&w->path))
		return err_nomem(w->err);
	return 0;
}

/* --- comparison of one entry --- */

static bool same_owner(const struct walk *w, const struct pair *p, const struct stat *upper,
	const struct stat *lower)
{
	uid_t uid = p->host ? upper->st_uid - w->uid : upper->st_uid;
	gid_t gid = p->host ? upper->st_gid - w->gid : upper->st_gid;

	return uid == lower->st_uid && gid == lower->st_gid;
}

static bool same_link(const struct pair *p, int upper, const char *name)
{
	char a[4096], b[4096];
	ssize_t n = readlinkat(upper, name, a, sizeof(a));
	ssize_t m = readlinkat(p->lower, name, b, sizeof(b));

	return n >= 0 && n < (ssize_t)sizeof(a) && n == m && memcmp(a, b, (size_t)n) == 0;
}

static int open_file(int dir, const char *name)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	/* It may have been replaced meanwhile. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return TAKE_FD(fd);
}

static bool same_bytes(
	struct walk *w, const struct pair *p, int upper, const char *name, uint64_t size)
{
	static _Thread_local char a[CHUNK], b[CHUNK];
	_cleanup_fd_ int fa = -1, fb = -1;

	if (size > COMPARE_MAX - w->compared)
		return false;
	fa = open_file(upper, name);
	fb = open_file(p->lower, name);
	if (fa < 0 || fb < 0)
		return false;
	w->compared += size;
	for (uint64_t at = 0; at < size;) {
		size_t want = (size_t)MIN((uint64_t)CHUNK, size - at);
		ssize_t n = pread(fa, a, want, (off_t)at), m = pread(fb, b, want, (off_t)at);

		if (n <= 0 || n != m || memcmp(a, b, (size_t)n) != 0)
			return false;
		at += (uint64_t)n;
	}
	return true;
}

/* Compare two existing entries that are not directories. */
static bool is_same(struct walk *w, const struct pair *p, const struct fswalk_entry *e,
	const struct stat *upper, const struct stat *lower)
{
	if ((upper->st_mode & S_IFMT) != (lower->st_mode & S_IFMT) ||
		!same_owner(w, p, upper, lower))
		return false;
	if (S_ISLNK(upper->st_mode))
		return same_link(p, e->dir, e->name);
	if (upper->st_mode != lower->st_mode)
		return false;
	if (S_ISREG(upper->st_mode))
		return upper->st_size == lower->st_size &&
		       same_bytes(w, p, e->dir, e->name, (uint64_t)upper->st_size);
	return upper->st_rdev == lower->st_rdev;
}

static bool same_dir(const struct walk *w, const struct pair *p, const struct stat *upper,
	const struct stat *lower)
{
	/* layers_own() makes a set-gid directory of the host as an ordinary one. */
	mode_t mask = p->host ? 01777 : 07777;

	if ((lower->st_mode & 07777) == LAYERS_COVERED)
		return true;
	return (upper->st_mode & mask) == (lower->st_mode & mask);
}

/* --- what an opaque directory hides --- */

static void names_done(struct names *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_add(struct walk *w, struct names *s, const char *name)
{
	char **v = array_room(s->v, s->n, &s->cap, sizeof(*v));

	if (!v)
		return err_nomem(w->err);
	s->v = v;
	s->v[s->n] = strdup(name);
	return s->v[s->n] ? (int)(s->n++, 0) : err_nomem(w->err);
}

static int names_read(struct walk *w, struct names *s, int fd)
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(fd, ".");
	struct dirent *e;
	int r = 0;

	if (!dir) {
		note_incomplete(w, E_SYSTEM, "cannot be read");
		return 0;
	}
	while (r == 0 && (e = fs_list_next(dir))) {
		if (w->hidden++ == CHANGES_MAX_ENTRIES) {
			note_incomplete(w, E_LIMIT, "too many entries");
			break;
		}
		r = names_add(w, s, e->d_name);
	}
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_bytes);
	return r;
}

/* Return whether something is always mounted over this path, so that no process inside sees it. */
static bool is_covered(struct str path)
{
	static const char *const covered[] = {"/dev", "/proc", "/run", "/sys", "/tmp", "/etc/hosts",
		"/etc/hostname", "/etc/resolv.conf"};

	for (size_t i = 0; i < ARRAY_SIZE(covered); i++)
		if (str_eq(path, str_from(covered[i])))
			return true;
	return false;
}

/* Report the hidden names before this one (NULL: all that are left) as deleted. */
static int changes_hidden(struct walk *w, struct pair *p, const char *before)
{
	struct names *s = &p->hidden;
	int r = 0, order = -1;

	for (; r == 0 && s->at < s->n; s->at++) {
		struct stat lower;

		order = before ? strcmp(s->v[s->at], before) : -1;
		if (order > 0)
			break;
		if (order == 0)
			continue;
		r = changes_at(w, p, s->v[s->at]);
		if (r == 0 && !is_covered(buf_str(&w->path)) &&
			fstatat(p->lower, s->v[s->at], &lower, AT_SYMLINK_NOFOLLOW) == 0)
			r = report(w, ROOM_CHANGE_DELETED, &lower);
	}
	return r;
}

/* --- the walk --- */

/* Leave all directories but so many on the path. */
static void changes_leave(struct walk *w, size_t n)
{
	while (w->pairs_n > n) {
		struct pair *p = &w->pairs[--w->pairs_n];

		fd_close(p->lower);
		names_done(&p->hidden);
	}
	changes_back_to(w, &w->pairs[n - 1]);
}

static int changes_open_dir(int dir, const char *name)
{
	return openat(
		dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Open the lower directory of that name, or the host's directory if it stands for that. */
static int open_lower(
	const struct pair *p, bool in_top, const char *name, const struct stat *st, bool *ret_host)
{
	const char *const *host = layers_host_dirs();

	*ret_host = p->host;
	if (!in_top || (st->st_mode & 07777) != LAYERS_COVERED)
		return changes_open_dir(p->lower, name);
	for (; *host; host++)
		if (strcmp(*host + 1, name) == 0) {
			*ret_host = true;
			return changes_open_dir(AT_FDCWD, *host);
		}
	return changes_open_dir(p->lower, name);
}

/* lower: status of the lower entry, or NULL. */
static int visit_dir(struct walk *w, const struct fswalk_entry *e, const struct stat *upper,
	const struct stat *lower)
{
	const struct pair *p = &w->pairs[e->depth];
	struct pair *inner = &w->pairs[w->pairs_n];
	bool below = lower && S_ISDIR(lower->st_mode);
	int r = 0;

	if (!below)
		r = report(w, lower ? ROOM_CHANGE_CHANGED : ROOM_CHANGE_ADDED, upper);
	else if (!same_dir(w, p, upper, lower))
		r = report(w, ROOM_CHANGE_CHANGED, upper);
	if (r != 0)
		return r;
	*inner = (struct pair){.lower = -1, .path_n = buf_len(&w->path), .mode = upper->st_mode};
	if (below)
		inner->lower = open_lower(p, e->depth == 0, e->name, lower, &inner->host);
	w->pairs_n++;
	return FSWALK_INTO;
}

static int visit(struct walk *w, const struct fswalk_entry *e)
{
	const struct pair *p = &w->pairs[e->depth];
	struct stat upper, lower;
	bool has_upper = fstatat(e->dir, e->name, &upper, AT_SYMLINK_NOFOLLOW) == 0;
	bool has_lower =
		p->lower >= 0 && fstatat(p->lower, e->name, &lower, AT_SYMLINK_NOFOLLOW) == 0;

	if (!has_upper)
		return 0;
	if (fs_is_whiteout(&upper))
		return has_lower ? report(w, ROOM_CHANGE_DELETED, &lower) : 0;
	if (S_ISDIR(upper.st_mode))
		return visit_dir(w, e, &upper, has_lower ? &lower : NULL);
	if (!has_lower)
		return report(w, ROOM_CHANGE_ADDED, &upper);
	if (!S_ISDIR(lower.st_mode) && is_same(w, p, e, &upper, &lower))
		return 0;
	return report(w, ROOM_CHANGE_CHANGED, &upper);
}

/* Give the walk's functions what ends it. */
static int changes_result(struct walk *w, int r)
{
	if (r == 0 || r == FSWALK_INTO)
		return r;
	w->result = r;
	return ENDED;
}

static int changes_entry(void *user, const struct fswalk_entry *e)
{
	struct walk *w = user;
	struct pair *p = &w->pairs[e->depth];
	int r = changes_hidden(w, p, e->name);

	if (r == 0)
		r = changes_at(w, p, e->name);
	if (r == 0 && !is_covered(buf_str(&w->path)))
		r = visit(w, e);
	return changes_result(w, r);
}

static int changes_entered(void *user, const struct fswalk_entry *e, int fd, const struct stat *st)
{
	struct walk *w = user;
	struct pair *p = &w->pairs[e->depth + 1];

	return p->lower >= 0 && fs_is_opaque(fd)
		       ? changes_result(w, names_read(w, &p->hidden, p->lower))
		       : 0;
}

static int changes_left(void *user, const struct fswalk_entry *e)
{
	struct walk *w = user;
	int r = changes_hidden(w, &w->pairs[e->depth + 1], NULL);

	changes_leave(w, e->depth + 1);
	return changes_result(w, r);
}

static int changes_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	struct walk *w = user;

	changes_back_to(w, &w->pairs[e->depth + 1]);
	if (errnum == ENAMETOOLONG)
		note_incomplete(w, E_LIMIT, "too deep");
	else if (errnum == E2BIG)
		note_incomplete(w, E_LIMIT, "too many entries");
	else if (errnum == ESTALE)
		note_incomplete(w, E_SYSTEM, "was moved meanwhile");
	else if (errnum != ENOENT && errnum != ENOTDIR && errnum != ELOOP)
		note_incomplete(w, E_SYSTEM, "cannot be read");
	changes_leave(w, e->depth + 1);
	return 0;
}

int changes_walk(int upper, int lower, room_change_fn fn, void *user, struct cloche_err *err)
{
	struct walk w = {.fn = fn, .user = user, .path = BUF_INIT(PATH_MAX_BYTES), .err = err};
	const struct fswalk_how how = {.levels = CHANGES_MAX_DEPTH,
		.names = CHANGES_MAX_ENTRIES,
		.sorted = true,
		.untyped = true,
		.user = &w,
		.entry = changes_entry,
		.entered = changes_entered,
		.left = changes_left,
		.missed = changes_missed};
	struct stat st;
	int r;

	w.pairs = calloc(CHANGES_MAX_DEPTH + 1, sizeof(*w.pairs));
	if (!w.pairs)
		return err_nomem(err);
	w.pairs[0] = (struct pair){.lower = changes_open_dir(lower, ".")};
	if (w.pairs[0].lower < 0 || fstat(upper, &st) < 0) {
		r = -errno;
	} else {
		w.pairs_n = 1;
		w.uid = st.st_uid;
		w.gid = st.st_gid;
		r = fswalk(upper, "", &how);
		changes_leave(&w, 1);
	}
	fd_close(w.pairs[0].lower);
	free(w.pairs);
	buf_done(&w.path);
	if (r == -E2BIG)
		note_incomplete(&w, E_LIMIT, "too many entries");
	else if (r < 0)
		return err_sys(err, -r, "look through the layers of changes");
	return r == ENDED ? w.result : w.incomplete;
}
