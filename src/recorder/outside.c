/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what was done from outside is on record already. So each such entry is
 * applied to the files as they were last seen, and the next look finds only what differs from that.
 * Contents are known by their digest; of a file that was appended to, the digests of what was there
 * and of what was added. Paths are taken as they are written.
 *
 * Whether the root's own layer has a file that was not looked at yet is not known here. If a
 * session changes a part of such a file, the next look records it whole. */
#include "base/fd.h"
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

/* --- steps of operations --- */

#define RECORDER_OF(taker) container_of(taker, struct recorder, outside.taker)

/* Note the mode of a file that is there. */
static void note_mode(struct recorder *r, const char *path, uint32_t mode)
{
	struct seen *s = seen_find(r, path);
	uint32_t tree = tree_of(r, path);

	if (tree != RECORDER_MAX_TREES && strcmp(r->trees[tree].path, path) == 0)
		r->trees[tree].mode = S_IFDIR | (mode & 07777);
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
	s->mode = (s->mode & S_IFMT) | (mode & 07777);
}

/* Note that contents will be added. Return the file, or NULL if that cannot be noted. */
static struct seen *note_appended(struct recorder *r, const char *path, uint32_t mode)
{
	struct seen *s = seen_find(r, path);

	if (!s || !S_ISREG(s->mode))
		s = note_contents(r, path, S_IFREG, mode, STR_NULL);
	else if (mode != STATE_NO_MODE)
		note_mode(r, path, mode);
	if (!s)
		return NULL;
	s->unsure = true;
	if (!s->appended) {
		s->appended = calloc(1, sizeof(*s->appended));
		if (s->appended)
			sha256_init(&s->appended->digest);
	}
	return s->appended ? s : NULL;
}

static int outside_make(struct tree_taker *taker, const struct tree_path *path, enum tree_type type,
	uint32_t mode, unsigned flags, struct cloche_err *err)
{
	static const uint32_t types[] = {[TREE_DIRECTORY] = S_IFDIR,
		[TREE_FILE] = S_IFREG,
		[TREE_LINK] = S_IFLNK,
		[TREE_OTHER] = S_IFIFO};
	struct recorder *r = RECORDER_OF(taker);

	r->outside.at = NULL;
	r->outside.adds = flags & TREE_KEEP;
	if (type == TREE_DIRECTORY)
		note_directory(r, path->text, mode, flags & TREE_NEW);
	else if (flags & TREE_THROUGH && is_link(seen_find(r, path->text)))
		return 0;
	else if (r->outside.adds)
		r->outside.at = note_appended(r, path->text, mode);
	else
		r->outside.at = note(r, path->text, types[type], mode);
	sha256_init(&r->outside.digest);
	return 0;
}

static int outside_sum(void *user, struct str piece, struct cloche_err *err)
{
	struct recorder *r = user;

	if (!r->outside.adds) {
		sha256_add(&r->outside.digest, piece);
		return 0;
	}
	r->outside.at->appended->n += piece.n;
	sha256_add(&r->outside.at->appended->digest, piece);
	return 0;
}

static int outside_add(
	struct tree_taker *taker, struct str piece, bool is_ref, struct cloche_err *err)
{
	struct recorder *r = RECORDER_OF(taker);
	struct seen *s = r->outside.at;
	int e = 0;

	if (!s)
		return 0;
	if (!is_ref)
		return outside_sum(r, piece, err);
	/* The name of all contents is their digest. */
	if (!r->outside.adds) {
		snprintf(s->digest, sizeof(s->digest), "%.*s", STR_FMT(str_from_index(piece, 7)));
		r->outside.at = NULL;
		return 0;
	}
	e = tree_stream(taker, piece, outside_sum, r, err);
	if (e < 0)
		outside_forget_appended(s);
	return e;
}

static int outside_end(struct tree_taker *taker, struct cloche_err *err)
{
	struct recorder *r = RECORDER_OF(taker);

	if (r->outside.at && !r->outside.adds)
		sha256_hex(&r->outside.digest, r->outside.at->digest);
	r->outside.at = NULL;
	return 0;
}

static int outside_link(struct tree_taker *taker, const struct tree_path *path,
	const struct tree_path *from, uint32_t mode, struct cloche_err *err)
{
	struct recorder *r = RECORDER_OF(taker);
	const struct seen *other = seen_find(r, from->text);
	struct seen *s;

	if (!other || !S_ISREG(other->mode) || strcmp(path->text, from->text) == 0)
		return 0;
	s = note(r, path->text, S_IFREG, other->mode & 07777);
	/* What was there may have been above the other. */
	other = seen_find(r, from->text);
	if (s && other)
		memcpy(s->digest, other->digest, sizeof(s->digest));
	return 0;
}

static int outside_gone(
	struct tree_taker *taker, const struct tree_path *path, struct cloche_err *err)
{
	note_gone(RECORDER_OF(taker), path->text);
	return 0;
}

static int outside_mode(struct tree_taker *taker, const struct tree_path *path, uint32_t mode,
	struct cloche_err *err)
{
	note_mode(RECORDER_OF(taker), path->text, mode);
	return 0;
}

static void move_seen(struct recorder *r, struct seen *s, const char *path)
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

static int outside_move(struct tree_taker *taker, const struct tree_path *from,
	const struct tree_path *to, struct cloche_err *err)
{
	struct recorder *r = RECORDER_OF(taker);
	struct seen *s, *hidden, *one, *next;
	char path[STATE_PATH_MAX + 1];

	/* Its end, if it cannot be told: the next look finds what happened. */
	if (to->dots || to->relative)
		return 0;
	note_gone(r, to->text);
	s = seen_find(r, from->text); /* not before: it may have been below */
	hidden = seen_find(r, to->text);
	if (hidden)
		seen_remove(r, hidden);
	if (s && !S_ISREG(s->mode))
		HASH_ITER (hh, r->seen, one, next)
			if (strncmp(one->path, from->text, from->n) == 0 &&
				one->path[from->n] == '/' &&
				snprintf(path, sizeof(path), "%s%s", to->text,
					one->path + from->n) < (int)sizeof(path))
				move_seen(r, one, path);
	if (s)
		move_seen(r, s, to->text);
	note_gone(r, from->text);
	return 0;
}

static int outside_open(void *user, struct str ref, struct cloche_err *err)
{
	const struct recorder *r = user;

	return blob_open(r->contents, ref, err);
}

void outside_init(struct recorder *r)
{
	r->outside.taker = (struct tree_taker){.make = outside_make,
		.add = outside_add,
		.end = outside_end,
		.link = outside_link,
		.gone = outside_gone,
		.mode = outside_mode,
		.move = outside_move,
		.open = outside_open,
		.open_user = r};
}

/* --- entries --- */

int outside_take_entry(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct recorder *r = user;
	struct tree_path path;

	/* A compacted log has replaced the one that was read, so known entries come again. */
	if (op->number <= r->told)
		return 0;
	if (op->exec || state_op_about(op->kind) != STATE_FILES)
		return 0;
	r->told_files = true;
	/* It does not say which file is meant; a relative path is in a log of a former version. */
	if (!tree_path_make(&path, op->subject) || path.dots || path.relative)
		return 0;
	if (tree_take(&r->outside.taker, op, err) < 0)
		err_clear(err); /* the next look finds what could not be noted */
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
