/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * overlayfs keeps in the upper layer a copy of every file that was made, written or had its
 * attributes changed; a character device 0/0 (whiteout) for a deleted file; and a mark on
 * directories that hide what lies below (opaque). It also contains the directories above a change,
 * and those that layers_own() made. So only a comparison with the lower layer shows what changed:
 * both trees are walked side by side, by name, relative to descriptors of their directories.
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
#include "room/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = CHANGES_MAX_DEPTH * 257, CHUNK = 32 * 1024 };
#define COMPARE_MAX (1ULL << 30) /* total bytes; a file beyond that counts as changed */

struct walk {
	room_change_fn fn;
	void *user;
	struct buf path;
	size_t reported; /* length of the part of path whose directories were reported */
	uint32_t depth, modes[CHANGES_MAX_DEPTH + 1]; /* of the directories on the path */
	uint64_t entries, compared;
	uid_t uid; /* root of the room, as we see it */
	gid_t gid;
	struct cloche_err *err; /* the first error */
	int incomplete;
};

/* The two directories under comparison. */
struct pair {
	int upper, lower; /* lower -1: there is none */
	bool host;        /* lower is the host's */
	bool opaque;
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
	/* There is always a byte after the path: see enter(). */
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
	uint32_t level = 0;
	size_t i;
	int r = 0;

	for (i = 1; i < buf_len(&w->path) && r == 0; i++) {
		if (buf_data(&w->path)[i] != '/')
			continue;
		dir.st_mode = w->modes[level++];
		if (i > w->reported)
			r = call(w, ROOM_CHANGE_CHANGED, i, &dir);
	}
	w->reported = buf_len(&w->path);
	return r != 0 ? r : call(w, kind, buf_len(&w->path), st);
}

/* Append "/name" to the path. */
static int enter(struct walk *w, const char *name)
{
	if (buf_add_char(&w->path, '/') < 0 || buf_add(&w->path, name, strlen(name)) < 0 ||
		!buf_cstr(&w->path))
		return err_nomem(w->err);
	return 0;
}

static void leave(struct walk *w, size_t n)
{
	w->path.tail = w->path.head + n;
	w->reported = MIN(w->reported, n);
}

/* --- comparison of one entry --- */

static bool same_owner(const struct walk *w, const struct pair *p, const struct stat *upper,
	const struct stat *lower)
{
	uid_t uid = p->host ? upper->st_uid - w->uid : upper->st_uid;
	gid_t gid = p->host ? upper->st_gid - w->gid : upper->st_gid;

	return uid == lower->st_uid && gid == lower->st_gid;
}

static bool same_link(const struct pair *p, const char *name)
{
	char a[4096], b[4096];
	ssize_t n = readlinkat(p->upper, name, a, sizeof(a));
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

static bool same_bytes(struct walk *w, const struct pair *p, const char *name, uint64_t size)
{
	static _Thread_local char a[CHUNK], b[CHUNK];
	_cleanup_fd_ int fa = -1, fb = -1;

	if (size > COMPARE_MAX - w->compared)
		return false;
	fa = open_file(p->upper, name);
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
static bool is_same(struct walk *w, const struct pair *p, const char *name,
	const struct stat *upper, const struct stat *lower)
{
	if ((upper->st_mode & S_IFMT) != (lower->st_mode & S_IFMT) ||
		!same_owner(w, p, upper, lower))
		return false;
	if (S_ISLNK(upper->st_mode))
		return same_link(p, name);
	if (upper->st_mode != lower->st_mode)
		return false;
	if (S_ISREG(upper->st_mode))
		return upper->st_size == lower->st_size &&
		       same_bytes(w, p, name, (uint64_t)upper->st_size);
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

/* --- names --- */

struct names {
	char **v;
	size_t n, cap;
};

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
	char **v;

	if (w->entries++ >= CHANGES_MAX_ENTRIES) {
		note_incomplete(w, E_LIMIT, "too many entries");
		return 1;
	}
	v = array_room(s->v, s->n, &s->cap, sizeof(*v));
	if (!v)
		return err_nomem(w->err);
	s->v = v;
	s->v[s->n] = strdup(name);
	return s->v[s->n] ? (int)(s->n++, 0) : err_nomem(w->err);
}

/* Add the names of a directory (opened for reading). */
static int names_read(struct walk *w, struct names *s, int fd)
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(fd, ".");
	struct dirent *e;
	int r = 0;

	if (!dir) {
		note_incomplete(w, E_SYSTEM, "cannot be read");
		return 0;
	}
	while (r == 0 && (e = fs_list_next(dir)))
		r = names_add(w, s, e->d_name);
	return r < 0 ? r : 0;
}

/* --- the walk --- */

static int walk_dir(struct walk *w, const struct pair *p);

static int open_dir(int dir, const char *name)
{
	return openat(
		dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Open the lower directory of that name, or the host's directory if it stands for that. */
static int open_lower(struct walk *w, const struct pair *p, const char *name, const struct stat *st,
	bool *ret_host)
{
	const char *const *host = layers_host_dirs();

	*ret_host = p->host;
	if (w->depth > 1 || (st->st_mode & 07777) != LAYERS_COVERED)
		return open_dir(p->lower, name);
	for (; *host; host++)
		if (strcmp(*host + 1, name) == 0) {
			*ret_host = true;
			return open_dir(AT_FDCWD, *host);
		}
	return open_dir(p->lower, name);
}

/* lower: status of the lower entry, or NULL. */
static int visit_dir(struct walk *w, const struct pair *p, const char *name,
	const struct stat *upper, const struct stat *lower)
{
	_cleanup_fd_ int up = -1, low = -1;
	struct pair inner = {.lower = -1};
	bool below = lower && S_ISDIR(lower->st_mode);
	int r = 0;

	if (!below)
		r = report(w, lower ? ROOM_CHANGE_CHANGED : ROOM_CHANGE_ADDED, upper);
	else if (!same_dir(w, p, upper, lower))
		r = report(w, ROOM_CHANGE_CHANGED, upper);
	if (r != 0)
		return r;
	if (w->depth == CHANGES_MAX_DEPTH) {
		note_incomplete(w, E_LIMIT, "too deep");
		return 0;
	}
	up = open_dir(p->upper, name);
	if (up < 0) {
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			note_incomplete(w, E_SYSTEM, "cannot be opened");
		return 0;
	}
	w->modes[w->depth - 1] = upper->st_mode;
	if (below)
		low = open_lower(w, p, name, lower, &inner.host);
	inner.upper = up;
	inner.lower = low;
	inner.opaque = below && fs_is_opaque(up);
	return walk_dir(w, &inner);
}

static int visit(struct walk *w, const struct pair *p, const char *name)
{
	struct stat upper, lower;
	bool has_upper = fstatat(p->upper, name, &upper, AT_SYMLINK_NOFOLLOW) == 0;
	bool has_lower = p->lower >= 0 && fstatat(p->lower, name, &lower, AT_SYMLINK_NOFOLLOW) == 0;

	if (!has_upper || fs_is_whiteout(&upper)) {
		/* An opaque directory hides everything below. */
		if (has_lower && (has_upper || p->opaque))
			return report(w, ROOM_CHANGE_DELETED, &lower);
		return 0;
	}
	if (S_ISDIR(upper.st_mode))
		return visit_dir(w, p, name, &upper, has_lower ? &lower : NULL);
	if (!has_lower)
		return report(w, ROOM_CHANGE_ADDED, &upper);
	if (!S_ISDIR(lower.st_mode) && is_same(w, p, name, &upper, &lower))
		return 0;
	return report(w, ROOM_CHANGE_CHANGED, &upper);
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

static int walk_dir(struct walk *w, const struct pair *p)
{
	struct names names = {0};
	size_t at = buf_len(&w->path);
	int r = names_read(w, &names, p->upper);

	if (r == 0 && p->opaque && p->lower >= 0)
		r = names_read(w, &names, p->lower);
	if (names.n > 1)
		qsort(names.v, names.n, sizeof(*names.v), by_bytes);
	w->depth++;
	for (size_t i = 0; i < names.n && r == 0; i++) {
		if (i > 0 && strcmp(names.v[i], names.v[i - 1]) == 0)
			continue;
		r = enter(w, names.v[i]);
		if (r == 0 && !is_covered(buf_str(&w->path)))
			r = visit(w, p, names.v[i]);
		leave(w, at);
	}
	w->depth--;
	names_done(&names);
	return r;
}

int changes_walk(int upper, int lower, room_change_fn fn, void *user, struct cloche_err *err)
{
	_cleanup_fd_ int up = open_dir(upper, "."), low = open_dir(lower, ".");
	struct walk w = {.fn = fn, .user = user, .path = BUF_INIT(PATH_MAX_BYTES), .err = err};
	struct pair p = {.upper = up, .lower = low};
	struct stat st;
	int r;

	if (up < 0 || low < 0 || fstat(up, &st) < 0)
		return err_sys(err, errno, "open the layers of changes");
	w.uid = st.st_uid;
	w.gid = st.st_gid;
	r = walk_dir(&w, &p);
	buf_done(&w.path);
	return r != 0 ? r : w.incomplete;
}
