/* SPDX-License-Identifier: Apache-2.0 */
/* What a full record knows of files beside the operations on them: that all names in a directory
 * were seen, and that contents are there which are not on record. */
#include "record/tree.h"

/* A file of this size whose contents are not known: each entry counts as other contents. */
static int tree_make_unknown(struct tree *t, const struct tree_path *path, uint64_t size,
	uint64_t number, struct cloche_err *err)
{
	int r = t->taker.make(&t->taker, path, TREE_FILE, STATE_NO_MODE, 0, err);
	struct tree_node *n = t->at;

	t->at = NULL;
	if (r < 0)
		return r;
	n->lost = true;
	n->sum = malloc(sizeof(*n->sum));
	if (!n->sum)
		return err_nomem(err);
	sha256_init(n->sum);
	sha256_add(n->sum, str_make((const char *)&number, sizeof(number)));
	n->sum_size = size;
	return 0;
}

int tree_take_skip(
	struct tree *t, const struct state_op *op, struct tree_node **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf bytes = BUF_INIT(2 * STATE_PATH_MAX);
	uint64_t size = json_count_at(op->args, "size");
	struct tree_path path;
	struct str text;
	int r = state_argument_read(op->args, "path", &bytes, &text, err);

	if (r == 0 && !tree_path_make(&path, text))
		r = err_set(err, E_LIMIT, "a path of the log is too long");
	if (r == 0 && size > 0)
		r = tree_make_unknown(t, &path, size, op->number, err);
	return r == 0 ? tree_add(t, &path, ret, err) : r;
}

int tree_close(struct tree *t, const struct tree_path *top,
	bool (*is_unknown)(const struct tree_node *n), struct cloche_err *err)
{
	struct tree_node *first;
	int r = tree_add(t, top, &first, err);

	for (struct tree_node *n = r == 0 ? first : NULL; n; n = tree_next(n, first)) {
		n->replaced = n->replaced || !is_unknown(n);
		/* What is above it was made on the way. */
		for (struct tree_node *up = n; n->type > TREE_GONE && up != first;
			up = up->key->parent)
			if (up->type == TREE_UNKNOWN)
				up->type = TREE_DIRECTORY;
	}
	return r;
}
