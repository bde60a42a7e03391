/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what was done from outside is on record already. So each such entry is
 * applied to the files as they were last seen, and the next look finds only what differs from that.
 * Contents are known by their digest; of a file that was appended to, the digests of what was there
 * and of what was added. Paths are taken as they are written.
 *
 * Whether the root's own layer has a file that was not looked at yet is not known here. If a
 * session changes a part of such a file, the next look records it whole. */
#include "base/fd.h"
#include "files/beneath.h"
#include "files/tar.h"
#include "recorder/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

struct appended {
	uint64_t n;
	struct sha256 digest;
};

void outside_forget_appended(struct seen *s)
{
	free(s->appended);
	s->appended = NULL;
}

/* Append the names of path to ret, which holds n bytes of a path. Return the new length, or -1 if
 * it does not say which file is meant: "..", or too long. */
static ssize_t join(char ret[STATE_PATH_MAX + 1], size_t n, struct str path)
{
	struct str name;

	while (beneath_next(&path, &name)) {
		if (str_eq(name, STR("..")) || n + 1 + name.n > STATE_PATH_MAX)
			return -1;
		ret[n++] = '/';
		memcpy(ret + n, name.p, name.n);
		n += name.n;
	}
	ret[n] = '\0';
	return (ssize_t)n;
}

/* Find the mount that contains the path. Paths elsewhere in the root cannot be told by their
 * name. */
static uint32_t tree_of(const struct recorder *r, const char *path)
{
	uint32_t best = RECORDER_MAX_TREES;
	size_t longest = 0;

	for (uint32_t i = 0; i < r->trees_n; i++) {
		size_t n = strlen(r->trees[i].path);

		if (r->trees[i].layer || n < longest || strncmp(path, r->trees[i].path, n) != 0 ||
			(path[n] && path[n] != '/'))
			continue;
		best = i;
		longest = n;
	}
	return best;
}

/* Whether the path is the root or the top of a mount, which no look finds. */
static bool is_top(const struct recorder *r, const char *path)
{
	for (uint32_t i = 0; i < r->trees_n; i++)
		if (!r->trees[i].layer && strcmp(path, r->trees[i].path) == 0)
			return true;
	return path[0] == '\0';
}

static bool has_type(const struct seen *s)
{
	return s->mode & S_IFMT;
}

/* What is done at the path of a link is done elsewhere. */
static bool is_link(const struct seen *s)
{
	return s && S_ISLNK(s->mode);
}

/* Note that something of this type is at the path. s: what was there, or NULL. */
static struct seen *set(
	struct recorder *r, struct seen *s, const char *path, uint32_t type, uint32_t mode)
{
	bool hidden = s && S_ISCHR(s->mode);

	if (s && has_type(s) && (s->mode & S_IFMT) != type) {
		seen_remove(r, s);
		s = NULL;
	}
	if (!s) {
		s = seen_add(r, path);
		if (!s)
			return NULL;
		s->tree = tree_of(r, path);
		s->opaque = hidden;
	}
	outside_forget_appended(s);
	s->unsure = true;
	s->sight.told = false;
	if (mode != STATE_NO_MODE || !has_type(s)) {
		s->any_mode = mode == STATE_NO_MODE;
		s->mode = type | (s->any_mode ? 0 : mode);
	}
	return s;
}

/* Note the directories on the way to the path, which are made if they are missing. Return false if
 * one of them is something else, such as a link: then another file is meant. */
static bool set_parents(struct recorder *r, const char *path)
{
	char up[STATE_PATH_MAX + 1];

	snprintf(up, sizeof(up), "%s", path);
	for (char *at = strchr(up + 1, '/'); at; at = strchr(at + 1, '/')) {
		struct seen *s;
		bool gone;

		*at = '\0';
		s = seen_find(r, up);
		gone = !s || S_ISCHR(s->mode);
		if (!gone && has_type(s) && !S_ISDIR(s->mode))
			return false;
		if (gone && !is_top(r, up))
			(void)set(r, s, up, S_IFDIR, STATE_NO_MODE);
		*at = '/';
	}
	return true;
}

static struct seen *note(struct recorder *r, const char *path, uint32_t type, uint32_t mode)
{
	if (is_top(r, path) || !set_parents(r, path))
		return NULL;
	return set(r, seen_find(r, path), path, type, mode);
}

static struct seen *note_contents(
	struct recorder *r, const char *path, uint32_t type, uint32_t mode, struct str contents)
{
	struct seen *s = note(r, path, type, mode);

	if (s)
		sha256_text(contents, s->digest);
	return s;
}

/* An existing directory keeps its mode. */
static void note_directory(struct recorder *r, const char *path, uint32_t mode, bool is_new)
{
	struct seen *s = seen_find(r, path);

	if (is_link(s) || (s && S_ISDIR(s->mode) && !is_new))
		return;
	s = note(r, path, S_IFDIR, mode);
	/* It may have been in the layer below. */
	if (s && s->tree == RECORDER_MAX_TREES)
		s->any_mode = true;
}

/* Note that nothing is there any more. In the root's own layer, something then hides what lies
 * below. */
static void note_gone(struct recorder *r, const char *path)
{
	struct seen *s = seen_find(r, path), *one, *next;
	size_t n = strlen(path);

	if (is_top(r, path))
		return;
	if (s && !S_ISREG(s->mode))
		HASH_ITER (hh, r->seen, one, next)
			if (strncmp(one->path, path, n) == 0 && one->path[n] == '/')
				seen_remove(r, one);
	if (s)
		seen_remove(r, s);
	if (tree_of(r, path) != RECORDER_MAX_TREES || !set_parents(r, path))
		return;
	s = seen_add(r, path);
	if (s) {
		s->tree = RECORDER_MAX_TREES;
		s->mode = S_IFCHR;
	}
}

/* --- single files --- */

static void take_write(struct recorder *r, const struct state_op *op, const char *path)
{
	struct seen *s;

	if (is_link(seen_find(r, path)))
		return;
	s = note(r, path, S_IFREG, op->mode);
	if (s && op->is_ref)
		snprintf(s->digest, sizeof(s->digest), "%.*s",
			STR_FMT(str_from_index(op->object, 7)));
	else if (s)
		sha256_text(op->object, s->digest);
}

static void take_mkdir(struct recorder *r, const struct state_op *op, const char *path)
{
	note_directory(r, path, op->mode, false);
}

static void take_symlink(struct recorder *r, const struct state_op *op, const char *path)
{
	(void)note_contents(r, path, S_IFLNK, STATE_NO_MODE, op->object);
}

static void take_delete(struct recorder *r, const struct state_op *op, const char *path)
{
	note_gone(r, path);
}

static void take_chmod(struct recorder *r, const struct state_op *op, const char *path)
{
	struct seen *s = seen_find(r, path);

	if (is_link(s) || is_top(r, path) || !set_parents(r, path))
		return;
	/* In a mount, a command has made it since the last look; the next one finds it whole. */
	if (!s && tree_of(r, path) != RECORDER_MAX_TREES)
		return;
	if (!s) {
		s = seen_add(r, path);
		if (!s)
			return;
		s->tree = tree_of(r, path);
	}
	s->unsure = true;
	s->any_mode = false;
	s->mode = (s->mode & S_IFMT) | (op->mode & 07777);
}

/* Pass contents from the log, or from beside it, to fn in pieces. */
static int each_piece(const struct recorder *r, const struct state_op *op,
	int (*fn)(void *user, struct str piece), void *user)
{
	_cleanup_fd_ int fd = op->is_ref ? blob_open(r->contents, op->object, NULL) : -1;
	_cleanup_(freep) char *chunk = fd >= 0 ? malloc(CHUNK) : NULL;
	ssize_t n;
	int e = 0;

	if (!op->is_ref)
		return fn(user, op->object);
	if (!chunk)
		return -1;
	while (e == 0 && (n = read(fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		e = n < 0 ? -1 : fn(user, str_make(chunk, (size_t)n));
	}
	return e;
}

static int append_piece(void *user, struct str piece)
{
	struct appended *a = user;

	a->n += piece.n;
	sha256_add(&a->digest, piece);
	return 0;
}

static void take_append(struct recorder *r, const struct state_op *op, const char *path)
{
	struct seen *s = seen_find(r, path);

	if (is_link(s))
		return;
	if (!s || !S_ISREG(s->mode))
		s = note_contents(r, path, S_IFREG, op->mode, STR_NULL);
	else if (op->mode != STATE_NO_MODE)
		take_chmod(r, op, path);
	if (!s)
		return;
	s->unsure = true;
	if (!s->appended) {
		s->appended = calloc(1, sizeof(*s->appended));
		if (!s->appended)
			return;
		sha256_init(&s->appended->digest);
	}
	if (each_piece(r, op, append_piece, s->appended) < 0)
		outside_forget_appended(s);
}

/* --- renames --- */

static void move(struct recorder *r, struct seen *s, const char *path)
{
	const size_t from = offsetof(struct seen, tree), n = offsetof(struct seen, path) - from;
	struct seen *to = seen_find(r, path) ? NULL : seen_add(r, path);

	if (to) {
		memcpy((char *)to + from, (const char *)s + from, n);
		to->unsure = true;
		to->tree = tree_of(r, path);
		s->appended = NULL;
	}
	seen_remove(r, s);
}

static void take_rename(struct recorder *r, const struct state_op *op, const char *from)
{
	struct seen *s, *hidden, *one, *next;
	char to[STATE_PATH_MAX + 1], path[STATE_PATH_MAX + 1];
	size_t n = strlen(from);

	/* A directory moves into itself only through a link: the next look finds what happened. */
	if (join(to, 0, op->object) < 0 || strcmp(from, to) == 0 ||
		(strncmp(to, from, n) == 0 && to[n] == '/'))
		return;
	note_gone(r, to);
	s = seen_find(r, from); /* not before: it may have been below */
	hidden = seen_find(r, to);
	if (hidden)
		seen_remove(r, hidden);
	if (s && !S_ISREG(s->mode))
		HASH_ITER (hh, r->seen, one, next)
			if (strncmp(one->path, from, n) == 0 && one->path[n] == '/' &&
				snprintf(path, sizeof(path), "%s%s", to, one->path + n) <
					(int)sizeof(path))
				move(r, one, path);
	if (s)
		move(r, s, to);
	note_gone(r, from);
}

/* --- archives --- */

struct unpacking {
	struct recorder *r;
	const struct state_op *op;
	struct tar_reader *tar;
	char path[STATE_PATH_MAX + 1], other[STATE_PATH_MAX + 1];
	size_t top; /* bytes of path that are the directory's */
	struct seen *file;
	struct sha256 digest;
};

static void unpack_hardlink(struct unpacking *u, const struct tar_entry *entry)
{
	const struct seen *other;
	struct seen *s;

	memcpy(u->other, u->path, u->top);
	other = join(u->other, u->top, entry->link) >= 0 ? seen_find(u->r, u->other) : NULL;
	if (!other || !S_ISREG(other->mode) || strcmp(u->path, u->other) == 0)
		return;
	s = note(u->r, u->path, S_IFREG, other->mode & 07777);
	if (s)
		memcpy(s->digest, other->digest, sizeof(s->digest));
}

static int on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct unpacking *u = user;
	ssize_t n = join(u->path, u->top, entry->path);

	u->file = NULL;
	if (n < 0)
		return 0;
	switch (entry->type) {
	case TAR_FILE:
		u->file = note(u->r, u->path, S_IFREG, entry->mode & 0777);
		sha256_init(&u->digest);
		break;
	case TAR_DIRECTORY:
		note_directory(
			u->r, u->path, entry->mode & 01777, u->op->is_new && (size_t)n == u->top);
		break;
	case TAR_SYMLINK:
		(void)note_contents(u->r, u->path, S_IFLNK, STATE_NO_MODE, entry->link);
		break;
	case TAR_HARDLINK:
		unpack_hardlink(u, entry);
		break;
	case TAR_FIFO:
		(void)note(u->r, u->path, S_IFIFO, STATE_NO_MODE);
		break;
	case TAR_CHAR_DEVICE:
	case TAR_BLOCK_DEVICE:
		break;
	}
	return 0;
}

static int on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct unpacking *u = user;

	sha256_add(&u->digest, str_make(p, n));
	return 0;
}

static int on_entry_end(void *user, struct files_error *e)
{
	struct unpacking *u = user;

	if (u->file)
		sha256_hex(&u->digest, u->file->digest);
	u->file = NULL;
	return 0;
}

static int unpack_piece(void *user, struct str piece)
{
	struct unpacking *u = user;

	return tar_reader_feed(u->tar, piece.p, piece.n, NULL);
}

static void take_unpack(struct recorder *r, const struct state_op *op, const char *path)
{
	static const struct tar_reader_ops ops = {on_entry, on_data, on_entry_end};
	struct unpacking u = {.r = r, .op = op, .top = strlen(path)};
	_cleanup_(tar_reader_freep) struct tar_reader *tar = tar_reader_new(&ops, &u);

	if (!tar)
		return;
	memcpy(u.path, path, u.top);
	u.tar = tar;
	(void)each_piece(r, op, unpack_piece, &u);
}

/* --- entries --- */

static const struct {
	enum state_op_kind kind;
	void (*fn)(struct recorder *r, const struct state_op *op, const char *path);
} takers[] = {
	{STATE_FS_WRITE, take_write},
	{STATE_FS_APPEND, take_append},
	{STATE_FS_DELETE, take_delete},
	{STATE_FS_MKDIR, take_mkdir},
	{STATE_FS_RENAME, take_rename},
	{STATE_FS_SYMLINK, take_symlink},
	{STATE_FS_CHMOD, take_chmod},
	{STATE_FS_UNPACK, take_unpack},
	{STATE_ASSETS_UPLOAD, take_write},
};
_Static_assert(ARRAY_SIZE(takers) == STATE_FILES_OPS, "an operation on files has no row");

int outside_take_entry(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct recorder *r = user;
	char path[STATE_PATH_MAX + 1];

	/* A compacted log has replaced the one that was read, so known entries come again. */
	if (op->number <= r->told)
		return 0;
	if (op->exec || state_op_about(op->kind) != STATE_FILES)
		return 0;
	r->told_files = true;
	/* A relative path in a log of a former version. */
	if (op->subject.n == 0 || op->subject.p[0] != '/')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (takers[i].kind == op->kind && join(path, 0, op->subject) >= 0)
			takers[i].fn(r, op, path);
	return 0;
}

/* Read the bytes [from, to) and get their digest; add them to all. Return false if they cannot be
 * read. */
static bool digest_part(
	int fd, uint64_t from, uint64_t to, struct sha256 *all, char ret[SHA256_HEX_MAX])
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	struct sha256 part;

	sha256_init(&part);
	while (chunk && from < to) {
		ssize_t n = pread(fd, chunk, (size_t)MIN(to - from, (uint64_t)CHUNK), (off_t)from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		sha256_add(&part, str_make(chunk, (size_t)n));
		sha256_add(all, str_make(chunk, (size_t)n));
		from += (uint64_t)n;
	}
	sha256_hex(&part, ret);
	return chunk != NULL;
}

bool outside_is_appended(struct seen *s, int fd, uint64_t size)
{
	char before[SHA256_HEX_MAX], after[SHA256_HEX_MAX], told[SHA256_HEX_MAX];
	struct sha256 all;
	uint64_t n, border;

	if (!s->appended)
		return false;
	n = s->appended->n;
	sha256_hex(&s->appended->digest, told);
	outside_forget_appended(s); /* whatever comes of it, it counts once */
	if (size < n || size > RECORDER_MAX_FILE)
		return false;
	border = size - n;
	sha256_init(&all);
	if (!digest_part(fd, 0, border, &all, before) ||
		!digest_part(fd, border, size, &all, after))
		return false;
	if (strcmp(before, s->digest) != 0 || strcmp(after, told) != 0)
		return false;
	sha256_hex(&all, s->digest);
	return true;
}
