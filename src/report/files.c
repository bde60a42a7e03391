/* SPDX-License-Identifier: Apache-2.0 */
#include "report/files.h"
#include "base/macro.h"

static void free_node(struct file *f)
{
	struct file *child, *next;

	if (!f)
		return;
	HASH_ITER (hh, f->children, child, next) {
		HASH_DEL(f->children, child);
		free_node(child);
	}
	free(f->data);
	free(f);
}

void files_done(struct files *t)
{
	free_node(t->root);
	*t = (struct files){0};
}

static struct file *make_node(struct files *t, struct file *parent, struct str name)
{
	uint32_t depth = parent ? parent->depth + 1 : 0;
	struct file *f = NULL;

	if (t->n < FILES_MAX && depth <= FILES_MAX_DEPTH)
		f = calloc(1, sizeof(*f) + name.n);
	if (!f)
		return NULL;
	f->parent = parent;
	f->depth = depth;
	f->name_n = name.n;
	if (name.n)
		memcpy(f->name, name.p, name.n);
	if (parent) {
		HASH_ADD(hh, parent->children, name[0], f->name_n, f);
		if (!f->hh.tbl) {
			free(f);
			return NULL;
		}
	}
	t->n++;
	return f;
}

/* Take the next name of a path, without empty ones and "."; false at its end. */
static bool next_name(struct str *path, struct str *ret)
{
	do {
		if (path->n == 0)
			return false;
		*ret = str_prefix(*path, str_chr(*path, '/'));
		*path = str_from_index(*path, ret->n + 1);
	} while (ret->n == 0 || str_eq(*ret, STR(".")));
	return true;
}

static struct file *walk(struct files *t, struct str path, bool make)
{
	struct file *f = t->root;
	struct str name;

	if (!f && make)
		f = t->root = make_node(t, NULL, STR_NULL);
	while (f && next_name(&path, &name)) {
		struct file *child = NULL;

		if (str_eq(name, STR(".."))) {
			f = f->parent ? f->parent : f;
			continue;
		}
		HASH_FIND(hh, f->children, name.p, name.n, child);
		f = child || !make ? child : make_node(t, f, name);
	}
	return f;
}

struct file *files_find(struct files *t, struct str path)
{
	return walk(t, path, false);
}

struct file *files_add(struct files *t, struct str path)
{
	return walk(t, path, true);
}

static void forget_text(struct files *t, struct file *f)
{
	t->kept -= f->size;
	free(f->data);
	f->data = NULL;
	f->size = 0;
}

static void spend(struct files *t, uint64_t steps)
{
	t->work -= MIN(t->work, steps);
}

/* Set the type, and walk up as many steps as f is deep. */
static void set_type(struct file *f, enum file_type type)
{
	bool was = f->type != FILE_NONE, is = type != FILE_NONE;

	f->type = type;
	for (struct file *up = f->parent; was != is && up; up = up->parent)
		up->live += is ? 1U : -1U;
}

void files_set(struct files *t, struct file *f, enum file_type type, bool is_ref, struct str text)
{
	char *copy = NULL;

	if (type != FILE_DIRECTORY && f->live)
		files_remove(t, f);
	if (f->is_wanted && type == FILE_REGULAR && text.p && text.n <= FILES_MAX_KEPT - t->kept)
		copy = str_dup(text);
	forget_text(t, f);
	set_type(f, type);
	if (!copy)
		return;
	f->data = copy;
	f->size = text.n;
	f->is_ref = is_ref;
	t->kept += text.n;
}

void files_remove(struct files *t, struct file *f)
{
	struct file *child, *next;

	HASH_ITER (hh, f->children, child, next) {
		if (!f->live || t->work == 0)
			break;
		spend(t, child->depth);
		if (child->live || child->type != FILE_NONE)
			files_remove(t, child);
	}
	forget_text(t, f);
	set_type(f, FILE_NONE);
}

static void move_below(struct files *t, struct file *from, struct file *to)
{
	struct file *child, *next;

	HASH_ITER (hh, from->children, child, next) {
		struct file *target = NULL;

		if (t->work == 0)
			return;
		spend(t, child->depth + to->depth);
		if (!child->live && child->type == FILE_NONE)
			continue;
		HASH_FIND(hh, to->children, child->name, child->name_n, target);
		if (!target)
			target = make_node(t, to, str_make(child->name, child->name_n));
		if (target)
			files_move(t, child, target);
	}
}

void files_move(struct files *t, struct file *from, struct file *to)
{
	if (from == to)
		return;
	/* Nothing can move into itself; such a log is wrong. */
	for (const struct file *up = to; up; up = up->parent)
		if (up == from)
			return;
	files_remove(t, to);
	set_type(to, from->type);
	to->data = TAKE_PTR(from->data);
	to->size = from->size;
	to->is_ref = from->is_ref;
	from->size = 0;
	move_below(t, from, to);
	files_remove(t, from);
}
