/* SPDX-License-Identifier: Apache-2.0 */
/* The files as they were last looked at, or as the log says that they were changed from outside
 * since. */
#include "recorder/recorder.h"

#include <sys/stat.h>

struct seen *seen_find(const struct recorder *r, const char *path)
{
	struct seen *s = NULL;

	HASH_FIND_STR(r->seen, path, s);
	return s;
}

struct seen *seen_add(struct recorder *r, const char *path)
{
	struct seen *s = NULL;
	size_t n = strlen(path);

	if (HASH_COUNT(r->seen) < RECORDER_MAX_SEEN)
		s = calloc(1, sizeof(*s) + n + 1);
	if (!s) {
		r->overfull = true;
		return NULL;
	}
	memcpy(s->path, path, n);
	HASH_ADD_STR(r->seen, path, s);
	if (!s->hh.tbl) {
		free(s);
		r->overfull = true;
		return NULL;
	}
	return s;
}

void seen_remove(struct recorder *r, struct seen *s)
{
	HASH_DEL(r->seen, s);
	free(s);
}

void seen_set_digest(struct seen *s, struct str data)
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, data);
	sha256_hex(&h, s->digest);
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

static uint32_t type_of(enum state_op_kind kind)
{
	if (kind == STATE_FS_WRITE || kind == STATE_ASSETS_UPLOAD)
		return S_IFREG;
	if (kind == STATE_FS_MKDIR)
		return S_IFDIR;
	return kind == STATE_FS_SYMLINK ? S_IFLNK : 0;
}

int seen_take_entry(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct recorder *r = user;
	char path[STATE_PATH_MAX + 1];
	struct seen *s;
	uint32_t type;

	/* A compacted log has replaced the one that was read, so known entries come again. */
	if (op->number <= r->told)
		return 0;
	if (op->exec || state_op_about(op->kind) != STATE_FILES || op->subject.n > STATE_PATH_MAX)
		return 0;
	r->told_files = true;
	snprintf(path, sizeof(path), "%.*s", STR_FMT(op->subject));
	s = seen_find(r, path);
	type = type_of(op->kind);
	if (s && (op->kind == STATE_FS_DELETE || (type && s->mode && (s->mode & S_IFMT) != type))) {
		seen_remove(r, s);
		s = NULL;
	}
	if (!type)
		return 0;
	if (!s)
		s = seen_add(r, path);
	if (!s)
		return 0;
	s->unsure = true;
	s->any_mode = op->mode == STATE_NO_MODE && !s->mode;
	if (op->mode != STATE_NO_MODE || !s->mode)
		s->mode = type | (s->any_mode ? 0 : op->mode);
	s->tree = tree_of(r, path);
	if (op->is_ref)
		snprintf(s->digest, sizeof(s->digest), "%.*s",
			STR_FMT(str_from_index(op->object, 7)));
	else if (type != S_IFDIR)
		seen_set_digest(s, op->object);
	return 0;
}
