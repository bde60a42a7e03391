/* SPDX-License-Identifier: Apache-2.0 */
/* The side of the worker, which is hostile: it may list what it likes. So the number of entries,
 * the depth and the length of paths have bounds, and a name comes once in a directory. */
#include "sync/internal.h"

#include <stdio.h>
#include <string.h>

struct there_queue {
	struct sync_node **v;
	size_t n, cap, next;
};

struct there_list {
	struct sync *s;
	const char *in; /* path of the directory; "" for the top */
	struct there_queue *queue;
	int code; /* why the listing was ended: a negative code, or 0 */
	struct cloche_err *err;
};

static enum sync_type type_of(enum cloche_node_type type)
{
	switch (type) {
	case CLOCHE_NODE_FILE:
		return SYNC_FILE;
	case CLOCHE_NODE_DIRECTORY:
		return SYNC_DIRECTORY;
	case CLOCHE_NODE_SYMLINK:
		return SYNC_LINK;
	case CLOCHE_NODE_FIFO:
	case CLOCHE_NODE_SOCKET:
	case CLOCHE_NODE_CHAR_DEVICE:
	case CLOCHE_NODE_BLOCK_DEVICE:
	default:
		return SYNC_ABSENT;
	}
}

static struct sync_facts there_facts(const cloche_file_stat *st)
{
	enum sync_type type = type_of(st->type);

	return (struct sync_facts){.type = type,
		.mode = type == SYNC_LINK ? 0 : st->mode & 0777,
		.size = type == SYNC_DIRECTORY ? 0 : st->size,
		.mtime = {st->mtime_sec, st->mtime_nsec}};
}

static int there_push(struct there_queue *q, struct sync_node *n)
{
	struct sync_node **v = array_room(q->v, q->n, &q->cap, sizeof(struct sync_node *));

	if (!v)
		return -ENOMEM;
	q->v = v;
	q->v[q->n++] = n;
	return 0;
}

static size_t there_depth(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Return 0 or a negative code. */
static int there_take(struct there_list *l, const char *path, const cloche_file_stat *st)
{
	struct sync *s = l->s;
	struct sync_node *n = sync_state_add(s->state, str_from(path));
	bool deep = there_depth(path) + 1 >= SYNC_MAX_DEPTH;

	if (!n)
		return err_nomem(l->err);
	if (n->there.type != SYNC_ABSENT || st->size > INT64_MAX)
		return files_malformed(s->f, l->err);
	n->there = there_facts(st);
	if (n->there.type == SYNC_ABSENT || (n->there.type == SYNC_DIRECTORY && deep)) {
		n->blind = true;
		sync_tell(
			s, n->there.type == SYNC_ABSENT ? SYNC_SPECIAL : SYNC_TOO_DEEP, path, NULL);
		return 0;
	}
	if (n->there.type == SYNC_DIRECTORY && there_push(l->queue, n) < 0)
		return err_nomem(l->err);
	return 0;
}

static bool there_entry(const char *name, const cloche_file_stat *st, void *user)
{
	struct there_list *l = user;
	struct sync *s = l->s;
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s%s", l->in, *l->in ? "/" : "", name);

	sync_pulse(s);
	if (++s->listed > s->max_entries) {
		l->code = err_set(
			l->err, E_LIMIT, "the copy has more than %zu entries", s->max_entries);
		return false;
	}
	if (n < 0 || (size_t)n >= sizeof(path))
		sync_tell(s, SYNC_TOO_DEEP, path, NULL);
	else if (!sync_is_temporary(name) &&
		 !sync_is_ignored(s, path, st->type == CLOCHE_NODE_DIRECTORY))
		l->code = there_take(l, path, st);
	return l->code == 0;
}

/* A directory that has gone meanwhile, or is closed, is left alone with all that is in it. */
static int there_list_dir(
	struct sync *s, struct there_list *l, struct sync_node *dir, struct cloche_err *err)
{
	char path[PATH_MAX + 1];
	int r;

	l->in = dir ? dir->path : "";
	sync_there_path(s, l->in, path);
	r = cloche_files_list(s->f, path, there_entry, l, err);
	if (l->code < 0)
		return l->code;
	if (r < 0 && dir && sync_can_go_on(s, r)) {
		err_clear(err);
		dir->blind = true;
		sync_tell(s, SYNC_UNREADABLE, dir->path, NULL);
		return 0;
	}
	return r;
}

/* Look at the one file. */
static int there_scan_one(struct sync *s, struct cloche_err *err)
{
	char path[PATH_MAX + 1];
	cloche_file_stat st;
	struct sync_node *n;
	int r;

	sync_there_path(s, s->o->one, path);
	r = cloche_files_stat(s->f, path, false, &st, err);
	if (r == -E_NOT_FOUND && sync_can_go_on(s, r)) {
		err_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	s->listed++;
	n = sync_state_add(s->state, str_from(s->o->one));
	if (!n)
		return err_nomem(err);
	if (st.type != CLOCHE_NODE_FILE || st.size > INT64_MAX)
		return files_malformed(s->f, err);
	n->there = there_facts(&st);
	return 0;
}

int there_scan(struct sync *s, struct cloche_err *err)
{
	struct there_queue q = {0};
	struct there_list l = {.s = s, .queue = &q, .err = err};
	int r;

	if (s->o->one)
		return there_scan_one(s, err);
	r = there_list_dir(s, &l, NULL, err);

	while (r == 0 && q.next < q.n)
		r = there_list_dir(s, &l, q.v[q.next++], err);
	free(q.v);
	return r;
}

enum sync_side there_side(const struct sync_node *n, bool unsure)
{
	const struct sync_before *b = &n->before;
	const struct sync_facts *t = &n->there;

	if (b->type == SYNC_ABSENT)
		return t->type != SYNC_ABSENT ? SYNC_NEW : SYNC_NEVER;
	if (t->type == SYNC_ABSENT)
		return SYNC_GONE;
	if (t->type != b->type || t->size != b->size || t->mode != b->mode)
		return SYNC_CHANGED;
	if (t->type != SYNC_DIRECTORY &&
		((unsure && b->unsure_there) || !sync_time_eq(t->mtime, b->there)))
		return SYNC_CHANGED;
	return SYNC_SAME;
}

/* --- the first push --- */

struct there_names {
	char **v;
	size_t n, max;
	bool full;
	int error;
};

static bool there_name(const char *name, const cloche_file_stat *st, void *user)
{
	struct there_names *names = user;

	names->full = ++names->n > names->max;
	if (!names->full)
		names->error = strv_add(&names->v, str_from(name));
	return !names->full && names->error == 0;
}

/* In turns, so that there may be any number of names. */
int there_clear(struct sync *s, bool only_look, struct cloche_err *err)
{
	enum { SOME = 100, TURNS = 20 * 1000 };
	int r = 0;

	for (unsigned turn = 0; r == 0 && turn < TURNS; turn++) {
		_cleanup_(strv_freep) char **found = NULL;
		struct there_names names = {.max = SOME};

		r = cloche_files_list(s->f, "/", there_name, &names, err);
		found = names.v;
		if (r < 0 || names.n == 0)
			return r;
		if (names.error < 0)
			return err_nomem(err);
		if (only_look)
			return err_set(err, E_EXISTS, "the directory of the copy is not empty");
		for (size_t i = 0; r == 0 && found && found[i]; i++) {
			char path[PATH_MAX + 1] = "/";

			str_copy(path + 1, PATH_MAX, str_from(found[i]));
			r = cloche_files_remove(s->f, path, true, err);
			sync_pulse(s);
		}
	}
	return r < 0 ? r : err_set(err, E_LIMIT, "the directory of the copy cannot be emptied");
}
