/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the log is read once for each of the two points in time. What it says about
 * files becomes a tree in memory (record/tree.h), variables and storage the tables of a struct
 * state. Nothing is written to the file system, and no path is looked up in it. Names are compared
 * as they are written (as in compaction). Contents are read if they differ, and shown up to
 * SHOWN_MAX. */
#include "api/record/oplog.h"
#include "base/strv.h"
#include "job/job.h"
#include "record/tree.h"
#include "record/unified.h"

#include <errno.h>
#include <utlist.h>

enum { SHOWN_MAX = 1 << 20, ALL_HELD_MAX = 256 << 20 };

/* The state after an entry. */
struct moment {
	struct tree tree;
	struct state state;
	uint64_t last; /* entries up to this one count */
	char **tops;   /* directories of which all is on record before the first command */
	bool has_begun;
};

/* A mark of nodes: something in it, or its contents, is not on record. */
enum { MOMENT_UNKNOWN };

static int moment_open(void *user, struct str ref, struct cloche_err *err)
{
	return oplog_open_content(user, ref, err);
}

static void moment_init(struct moment *m, cloche_oplog *log, uint64_t last)
{
	*m = (struct moment){.last = last};
	state_init(&m->state);
	tree_init(&m->tree, moment_open, log);
	m->tree.max_kept = ALL_HELD_MAX;
	m->tree.max_file = SHOWN_MAX;
	m->tree.sums = true;
}

static void moment_done(struct moment *m)
{
	(void)state_close(&m->state, NULL);
	tree_done(&m->tree);
	m->tops = strv_free(m->tops);
}

/* A full record begins with all that is in the directories of the host. */
static int moment_take_start(struct moment *m, const struct state_op *op, struct cloche_err *err)
{
	const json_t *config = json_object_get(op->args, "config"), *mount;
	size_t i;

	if (m->tops || !str_eq(json_str_at(config, "record"), STR("full")))
		return 0;
	json_array_foreach (json_object_get(config, "mounts"), i, mount)
		if (!json_is_true(json_object_get(mount, "read_only")) &&
			strv_add(&m->tops, json_str_at(mount, "target")) < 0)
			return err_nomem(err);
	return 0;
}

static bool moment_is_unknown(const struct tree_node *n)
{
	return n->mark[MOMENT_UNKNOWN];
}

/* From now on, what the record does not name in these directories is not there. */
static int moment_begin(struct moment *m, struct cloche_err *err)
{
	int r = 0;

	m->has_begun = true;
	for (char **top = m->tops; r == 0 && top && *top; top++) {
		struct tree_path path;
		const struct tree_node *n;

		if (!tree_path_make(&path, str_from(*top)))
			continue;
		n = tree_find(&m->tree, &path);
		if (!n || !moment_is_unknown(n))
			r = tree_close(&m->tree, &path, moment_is_unknown, err);
	}
	return r;
}

static int moment_take_skip(struct moment *m, const struct state_op *op, struct cloche_err *err)
{
	struct tree_node *n;
	int r = tree_take_skip(&m->tree, op, &n, err);

	if (r == 0)
		n->mark[MOMENT_UNKNOWN] = 1;
	return r;
}

static int moment_take_one(struct moment *m, const struct state_op *op, struct cloche_err *err)
{
	if (op->kind == STATE_SANDBOX_START)
		return moment_take_start(m, op, err);
	if (op->kind == STATE_FS_SKIP)
		return moment_take_skip(m, op, err);
	return state_op_about(op->kind) == STATE_FILES ? tree_take(&m->tree.taker, op, err)
						       : state_apply(&m->state, op, err);
}

static int moment_take(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct moment *m = user;
	int r = 0;

	if (!m->has_begun &&
		(op->kind == STATE_EXEC_START || op->kind == STATE_EXEC_END || op->exec))
		r = moment_begin(m, err);
	if (r == 0 && op->number > m->last)
		return 1;
	if (r == 0)
		r = moment_take_one(m, op, err);
	if (r < 0)
		err_wrap(err, r, "entry %llu, %s", (unsigned long long)op->number,
			state_op_name(op->kind));
	return r;
}

/* --- one difference --- */

struct comparing {
	struct moment before, after;
	cloche_difference_fn fn;
	void *user;
	bool stopped;
	struct cloche_err *err;
};

/* Return whether both contents, where they exist, are wholly known and are text. */
static bool can_show(const cloche_difference *d, bool was_there, bool is_now)
{
	return d->part == CLOCHE_DIFFERENCE_FILE && (d->before || !was_there) &&
	       (d->after || !is_now) && (d->before || d->after) &&
	       (!d->before || unified_is_text(str_make(d->before, d->before_length))) &&
	       (!d->after || unified_is_text(str_make(d->after, d->after_length)));
}

/* Add the hunks, and pass it on. */
JOB_ASK1(call_difference_fn, cloche_difference_fn, bool, false, const cloche_difference *)

static int difference_pass(struct comparing *c, cloche_difference *d, bool was_there, bool is_now)
{
	_cleanup_(buf_donep) struct buf hunks = BUF_INIT(8 * SHOWN_MAX);

	if (can_show(d, was_there, is_now)) {
		if (unified_write(&hunks, str_make(d->before, d->before ? d->before_length : 0),
			    str_make(d->after, d->after ? d->after_length : 0)) < 0)
			return err_nomem(c->err);
		d->unified = buf_len(&hunks) ? buf_cstr(&hunks) : NULL;
		d->unified_length = buf_len(&hunks);
	}
	c->stopped = !call_difference_fn(c->fn, d, c->user);
	return 0;
}

/* --- files --- */

static bool node_is_there(const struct tree_node *n)
{
	return n && n->type >= TREE_DIRECTORY;
}

/* Return 'A', 'C', 'D', or 0 for no difference; negative on failure. What is only known to be gone
 * was there before the log. */
static int node_judge(struct comparing *c, const struct tree_node *a, const struct tree_node *b)
{
	int same;

	/* Only its mode is on record. */
	if (b->type == TREE_UNKNOWN && b->mode != STATE_NO_MODE && (!a || a->type == TREE_UNKNOWN))
		return a && a->mode == b->mode ? 0 : 'C';
	if (!node_is_there(b))
		return b->type == TREE_GONE && !(a && a->type == TREE_GONE) ? 'D' : 0;
	if (!node_is_there(a))
		return 'A';
	if (a->type != b->type || a->mode != b->mode)
		return 'C';
	if (a->type == TREE_DIRECTORY)
		return 0;
	same = tree_is_same(&c->before.tree, a, b, c->err);
	return same < 0 ? same : same ? 0 : 'C';
}

/* Get the contents, if all are known and they are to be shown, and their size. */
static int node_contents(struct comparing *c, const struct tree_node *n, struct buf *held,
	const void **ret, uint64_t *ret_size)
{
	char digest[SHA256_HEX_MAX];
	int r = tree_contents(&c->after.tree, n, held, c->err);

	if (r == 0) {
		*ret = buf_len(held) ? buf_data(held) : "";
		*ret_size = buf_len(held);
		return 0;
	}
	return r < 0 ? r : tree_digest(&c->after.tree, n, digest, ret_size, c->err);
}

/* a may be NULL. */
static int node_compare(struct comparing *c, const struct tree_node *a, const struct tree_node *b)
{
	_cleanup_(buf_donep) struct buf name = BUF_INIT(4 * STATE_PATH_MAX);
	_cleanup_(buf_donep) struct buf old = BUF_INIT(SHOWN_MAX), new = BUF_INIT(SHOWN_MAX);
	bool was_there = node_is_there(a), is_now = node_is_there(b);
	cloche_difference d = {.part = CLOCHE_DIFFERENCE_FILE,
		.before_mode = a ? a->mode : STATE_NO_MODE,
		.after_mode = b->mode};
	int kind = node_judge(c, a, b), r = 0;

	if (kind <= 0)
		return kind;
	if (tree_path_of(b, &name) < 0 || buf_add_char(&name, '\0') < 0)
		return err_set(c->err, E_LIMIT, "a path of the log is too long");
	d.kind = (enum cloche_change_kind)kind;
	d.name = buf_data(&name);
	d.name_length = buf_len(&name) - 1;
	if (was_there && a->type != TREE_DIRECTORY)
		r = node_contents(c, a, &old, &d.before, &d.before_length);
	if (r == 0 && is_now && b->type != TREE_DIRECTORY)
		r = node_contents(c, b, &new, &d.after, &d.after_length);
	return r < 0 ? r : difference_pass(c, &d, was_there, is_now);
}

static int node_by_name(const struct tree_node *a, const struct tree_node *b)
{
	return str_compare(tree_name(a), tree_name(b));
}

static int compare_trees(struct comparing *c)
{
	struct tree *a = &c->before.tree, *b = &c->after.tree;
	int r = tree_pair(a, b, c->err);

	if (r == 0)
		r = tree_pair(b, a, c->err);
	for (size_t i = 0; i < ARRAY_SIZE(b->tops); i++)
		for (struct tree_node *n = b->tops[i]; r == 0 && n && !c->stopped;
			n = tree_next(n, b->tops[i])) {
			DL_SORT(n->children, node_by_name);
			r = node_compare(c, n->other, n);
		}
	return r;
}

/* --- variables and storage --- */

static void pair_get(
	const struct state_pair *p, const void **ret, uint64_t *ret_size, struct str *ret_name)
{
	if (!p)
		return;
	*ret = p->value_n <= SHOWN_MAX ? p->value : NULL;
	*ret_size = p->value_n;
	*ret_name = str_make(p->key, p->key_n);
}

/* Either may be NULL. */
static int pair_compare(struct comparing *c, enum cloche_difference_part part,
	const struct state_pair *a, const struct state_pair *b)
{
	cloche_difference d = {.kind = (enum cloche_change_kind)(!a   ? 'A'
								 : !b ? 'D'
								      : 'C'),
		.part = part,
		.before_mode = UINT32_MAX,
		.after_mode = UINT32_MAX};
	struct str name = STR_NULL;

	if (a && b && str_eq(str_make(a->value, a->value_n), str_make(b->value, b->value_n)))
		return 0;
	pair_get(a, &d.before, &d.before_length, &name);
	pair_get(b, &d.after, &d.after_length, &name);
	d.name = name.p;
	d.name_length = name.n;
	return difference_pass(c, &d, a != NULL, b != NULL);
}

static int pair_by_key(const struct state_pair *a, const struct state_pair *b)
{
	return str_compare(str_make(a->key, a->key_n), str_make(b->key, b->key_n));
}

static int compare_tables(struct comparing *c, enum cloche_difference_part part,
	struct state_table *before, struct state_table *after)
{
	struct state_pair *p, *q;
	int r = 0;

	HASH_SORT(before->pairs, pair_by_key);
	HASH_SORT(after->pairs, pair_by_key);
	p = before->pairs;
	q = after->pairs;
	while (r == 0 && !c->stopped && (p || q)) {
		int order = !p ? 1 : !q ? -1 : pair_by_key(p, q);
		const struct state_pair *a = order <= 0 ? p : NULL, *b = order >= 0 ? q : NULL;

		r = pair_compare(c, part, a, b);
		p = a ? p->hh.next : p;
		q = b ? q->hh.next : q;
	}
	return r;
}

/* A variable that is only known to be unset may have been there before the log. */
static int suppose_variables(struct comparing *c)
{
	struct state *a = &c->before.state, *b = &c->after.state;

	for (const struct state_pair *u = b->unset.pairs; u; u = u->hh.next) {
		struct str key = str_make(u->key, u->key_n);
		struct state_pair *p;

		if (state_find(&a->env, key) || state_find(&a->unset, key))
			continue;
		if (state_table_set(&a->env, key, STR(""), c->err) < 0)
			return -c->err->code;
		p = state_find(&a->env, key);
		free(p->value);
		p->value = NULL;
	}
	return 0;
}

static int compare_moments(struct comparing *c)
{
	struct state *a = &c->before.state, *b = &c->after.state;
	int r = compare_trees(c);

	if (r == 0)
		r = compare_tables(c, CLOCHE_DIFFERENCE_STORAGE, &a->storage, &b->storage);
	if (r == 0)
		r = suppose_variables(c);
	return r < 0 ? r : compare_tables(c, CLOCHE_DIFFERENCE_ENV, &a->env, &b->env);
}

int cloche_oplog_diff(cloche_oplog *log, uint64_t from, uint64_t to, cloche_difference_fn fn,
	void *user, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT;
	struct comparing c = {.fn = fn, .user = user, .err = err ? err : &own};
	int r = from > to ? err_set(c.err, E_USAGE, "entry %llu comes after entry %llu",
				    (unsigned long long)from, (unsigned long long)to)
			  : 0;

	moment_init(&c.before, log, from);
	moment_init(&c.after, log, to);
	if (r == 0)
		r = oplog_read_all(log, moment_take, &c.before, c.err);
	if (r >= 0)
		r = oplog_read_all(log, moment_take, &c.after, c.err);
	if (r >= 0)
		r = compare_moments(&c);
	moment_done(&c.before);
	moment_done(&c.after);
	return r < 0 ? r : 0;
}
