/* SPDX-License-Identifier: Apache-2.0 */
/* Which names an undo has to look at, and which of them the host would obey: these may be a room's
 * (another one's, that ran when the record began), and nobody would see them run. So they are
 * removed, but never written (INV-NOTHING-PLANTED). */
#include "api/record/undo.h"
#include "fs/fs.h"

#include <dirent.h>
#include <utlist.h>

/* --- what the host obeys --- */

bool undo_is_git(const struct cloche_undo *u, const struct tree_node *n)
{
	static const char *const names[] = {"HEAD", "objects", "refs", "commondir"};
	struct obeyed_signs signs = {0};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (tree_child(&u->was, n, str_from(names[i])) ||
			tree_child(&u->is, n, str_from(names[i])))
			obeyed_see(&signs, str_from(names[i]));
	return obeyed_is_git(&signs);
}

/* Whether it is what git has stored below the name of its digest. Commits that were made since may
 * need it, and nothing else does. */
static bool undo_is_object(const struct cloche_undo *u, const struct undo_item *it)
{
	for (const struct tree_node *n = it->was; n->key->parent; n = n->key->parent)
		if (str_eq(tree_name(n), STR("objects")) && undo_is_git(u, n->key->parent))
			return undo_type(n->key->parent) != TREE_GONE;
	return false;
}

/* The place that is below a name for which the table has no row. */
static enum obeyed_place undo_place_below(enum obeyed_place place, struct str name)
{
	if (place == OBEYED_GIT && (str_eq(name, STR("modules")) || str_eq(name, STR("worktrees"))))
		return OBEYED_ANY;
	return place == OBEYED_ANY ? OBEYED_ANY : OBEYED_NONE;
}

/* The row for the next name on the way, or NULL. *place: of the directory that it is in; then of
 * itself, or OBEYED_NONE if nothing below is obeyed. */
static const struct obeyed *undo_obeyed_step(const struct cloche_undo *u, const struct tree_node *n,
	bool is_directory, bool *in_packages, enum obeyed_place *place)
{
	struct str name = tree_name(n);
	const struct obeyed *row = obeyed_find(*place, name);

	/* Below it, only git's own count. */
	if (*in_packages && row && row->place == OBEYED_ANY && row->below != OBEYED_GIT)
		row = NULL;
	if (!row && *place == OBEYED_ANY && undo_is_git(u, n->key->parent))
		row = obeyed_find(OBEYED_GIT, name);
	*in_packages = *in_packages || str_eq(name, STR("node_modules"));
	if (row && row->protect == OBEYED_PINNED && is_directory) {
		*place = row->below;
		return NULL;
	}
	if (row && row->protect == OBEYED_NOTHING && row->end == OBEYED_NAMED)
		row = NULL;
	if (!row)
		*place = undo_place_below(*place, name);
	return row;
}

const struct obeyed *undo_obeyed(const struct cloche_undo *u, const struct undo_item *it)
{
	static const struct obeyed hooks = {.what = "a hook of git"};
	const struct tree_node *way[TREE_PATH_MAX];
	enum obeyed_place place = it->top->place;
	const struct obeyed *row = NULL;
	bool in_packages = false;
	size_t n = 0;

	if (it->top->hooks && fs_is_within(it->path, it->top->hooks))
		return &hooks;
	for (const struct tree_node *at = it->was;
		n < ARRAY_SIZE(way) && at->key->parent && !at->other->mark[UNDO_TOP];
		at = at->key->parent)
		way[n++] = at;
	while (!row && n > 0 && place != OBEYED_NONE) {
		n--;
		row = undo_obeyed_step(
			u, way[n], n > 0 || it->old == TREE_DIRECTORY, &in_packages, &place);
	}
	return row;
}

/* --- the plan --- */

static struct undo_item *undo_add(struct cloche_undo *u, const struct undo_item *it)
{
	size_t room = u->room ? 2 * u->room : 256;
	struct undo_item *items = u->items;

	if (u->n == u->room) {
		items = reallocarray(u->items, room, sizeof(*items));
		if (!items)
			return NULL;
		u->items = items;
		u->room = room;
	}
	items[u->n] = *it;
	return &items[u->n++];
}

/* The path from the node of the directory. */
static char *undo_path(const struct tree_node *top, const struct tree_node *n)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(4 * STATE_PATH_MAX),
					above = BUF_INIT(4 * STATE_PATH_MAX);
	struct str text;

	if (tree_path_of(n, &path) < 0 || tree_path_of(top, &above) < 0)
		return NULL;
	text = str_from_index(buf_str(&path), MIN(buf_len(&above), buf_len(&path)));
	while (text.n > 0 && text.p[0] == '/')
		text = str_from_index(text, 1);
	return str_dup(text);
}

/* Tell, beside what is done with the name, what of it stays as it is. */
static int undo_plan_remainder(
	struct cloche_undo *u, const struct undo_item *of, const char *why, struct cloche_err *err)
{
	struct undo_item it = {.was = of->was,
		.is = of->is,
		.top = of->top,
		.path = str_dup(str_from(of->path)),
		.kind = CLOCHE_CHANGE_CHANGED,
		.why = why};

	if (it.path && undo_add(u, &it))
		return 0;
	free(it.path);
	return err_nomem(err);
}

/* Whether the run left the name as it was. */
static bool undo_is_untouched(
	const struct cloche_undo *u, const struct undo_item *it, struct cloche_err *err)
{
	bool same = it->old == undo_type(it->is) && it->was->mode == it->is->mode &&
		    undo_is_changed(u, it, err) == 0;

	err_clear(err);
	return same && !(it->old == TREE_DIRECTORY && undo_remainder(it, NULL));
}

/* Judge the name, and tell what of it will stay. */
static int undo_plan_item(struct cloche_undo *u, struct undo_item *it, struct cloche_err *err)
{
	_cleanup_(undo_look_donep) struct undo_look l = UNDO_LOOK_NULL;
	const char *rest;
	int r = 0;

	if (it->top->fd < 0)
		it->why = err_errno_text(it->top->error);
	else
		r = undo_judge(u, it, &l, err);
	it->kind = it->now == TREE_GONE   ? CLOCHE_CHANGE_ADDED
		   : it->old == TREE_GONE ? CLOCHE_CHANGE_DELETED
					  : CLOCHE_CHANGE_CHANGED;
	rest = r == 0 && !it->why ? undo_remainder(it, &l) : NULL;
	return rest ? undo_plan_remainder(u, it, rest, err) : r;
}

/* Add the name, if the run changed it and it is not as it was. */
static int undo_plan_node(struct cloche_undo *u, struct undo_top *top,
	const struct tree_node *above, struct tree_node *is, struct cloche_err *err)
{
	struct undo_item it = {.was = is->other, .is = is, .top = top, .old = undo_type(is->other)};
	int r;

	if (undo_is_untouched(u, &it, err))
		return 0;
	it.path = undo_path(above, is);
	r = it.path ? undo_plan_item(u, &it, err) : err_nomem(err);
	if (r == 0 && (it.why || it.contents || it.mode) &&
		!(it.old == TREE_GONE && undo_is_object(u, &it))) {
		if (undo_add(u, &it)) {
			is->mark[UNDO_ITEM] = (unsigned)u->n;
			return 0;
		}
		r = err_nomem(err);
	}
	free(it.path);
	return r;
}

/* Whether the node lies in a directory of the host below this one. */
static bool undo_is_elsewhere(const struct tree_node *top, const struct tree_node *n)
{
	for (; n != top; n = n->key->parent)
		if (n->mark[UNDO_TOP])
			return true;
	return false;
}

static const char TOP_MODE[] = "its mode was changed, and the former one is not on record";

static int undo_by_name(const struct tree_node *a, const struct tree_node *b)
{
	return str_compare(tree_name(a), tree_name(b));
}

static int undo_plan_top(
	struct cloche_undo *u, struct undo_top *top, struct tree_node *is, struct cloche_err *err)
{
	static char dot[] = ".";
	struct undo_item own = {
		.was = is->other, .is = is, .top = top, .old = TREE_DIRECTORY, .path = dot};
	const char *rest = top->fd < 0                 ? NULL
			   : is->mode != STATE_NO_MODE ? TOP_MODE
						       : undo_remainder(&own, NULL);
	int r = rest ? undo_plan_remainder(u, &own, rest, err) : 0;

	DL_SORT(is->children, undo_by_name);
	for (struct tree_node *n = tree_next(is, is); r == 0 && n; n = tree_next(n, is)) {
		DL_SORT(n->children, undo_by_name);
		if (!undo_is_elsewhere(is, n))
			r = undo_plan_node(u, top, is, n, err);
		if (r == 0 && top->fd < 0 && u->n > 0 && u->items[u->n - 1].top == top) {
			/* One line says it of all. */
			u->items[u->n - 1].path[0] = '\0';
			return 0;
		}
	}
	return r;
}

/* Whether all that is in a directory will be gone when it is to be removed. */
static bool undo_will_be_empty(const struct cloche_undo *u, const struct undo_item *it)
{
	_cleanup_(undo_look_donep) struct undo_look l = UNDO_LOOK_NULL;
	_cleanup_(fs_list_closep) DIR *list = NULL;
	struct dirent *e;

	if (undo_look(it, &l) < 0 || l.dir < 0)
		return true;
	list = fs_list(l.dir, l.name);
	while (list && (e = fs_list_next(list))) {
		const struct tree_node *n = tree_child(&u->is, it->is, str_from(e->d_name));
		const struct undo_item *in =
			n && n->mark[UNDO_ITEM] ? &u->items[n->mark[UNDO_ITEM] - 1] : NULL;

		if (!in || !undo_is_due(in) || in->old != TREE_GONE)
			return false;
	}
	return true;
}

/* A repository that the run made is removed whole or not at all. */
static void undo_keep_repository(struct cloche_undo *u, const struct undo_item *top)
{
	size_t n = strlen(top->path);

	for (size_t i = (size_t)(top - u->items) + 1; i < u->n; i++) {
		struct undo_item *it = &u->items[i];

		if (it->top != top->top || strncmp(it->path, top->path, n) != 0 ||
			it->path[n] != '/')
			return;
		if (!it->why)
			it->why = "something was added to its repository";
	}
}

/* Keep directories in which something else is. What is in a directory is decided before it. */
static void undo_plan_directories(struct cloche_undo *u)
{
	for (size_t i = u->n; i > 0; i--) {
		struct undo_item *it = &u->items[i - 1];

		if (!undo_is_due(it) || !it->contents || it->now != TREE_DIRECTORY ||
			it->old == TREE_DIRECTORY || undo_will_be_empty(u, it))
			continue;
		it->why = UNDO_NOT_EMPTY;
		if (undo_is_git(u, it->was))
			undo_keep_repository(u, it);
	}
}

/* The node of what the room had of a directory; NULL: nothing in it is on record. */
static struct tree_node *undo_top_node(const struct cloche_undo *u, const struct undo_top *top)
{
	struct tree_path path;

	return tree_path_make(&path, str_from(top->target)) ? tree_find(&u->is, &path) : NULL;
}

int undo_plan(struct cloche_undo *u, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; i < u->tops_n; i++) {
		struct tree_node *is = undo_top_node(u, &u->tops[i]);

		if (is)
			is->mark[UNDO_TOP] = (unsigned)i + 1;
	}
	for (size_t i = 0; r == 0 && i < u->tops_n; i++) {
		struct undo_top *top = &u->tops[i];
		struct tree_node *is = undo_top_node(u, top);

		if (is && (top->fd >= 0 || top->error) && is->mark[UNDO_TOP] == i + 1)
			r = undo_plan_top(u, top, is, err);
	}
	if (r == 0)
		undo_plan_directories(u);
	return r;
}
