/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: all names are in one map, by the node above them and their own name, so
 * moving a directory moves one node, and a removal frees what it removes. Nothing here goes down by
 * recursion: a log can make a tree deeper than any path. Of contents the pieces are kept, as the
 * log has them; beyond the limit only their digest, or nothing. */
#include "record/tree.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/stat.h>
#include <utlist.h>

/* --- nodes --- */

static void contents_drop(struct tree *t, struct tree_node *n)
{
	while (n->first) {
		struct tree_piece *piece = n->first;

		n->first = piece->next;
		t->kept -= sizeof(*piece) + piece->n;
		free(piece);
	}
	n->last = NULL;
	n->kept = 0;
	free(n->sum);
	n->sum = NULL;
	n->sum_size = 0;
	n->partial = n->lost = false;
}

/* Free a node that is not in the map. */
static void node_forget(struct tree *t, struct tree_node *n)
{
	struct tree_node *up = n->key->parent;

	contents_drop(t, n);
	t->names -= tree_name(n).n;
	t->n--;
	if (up)
		DL_DELETE(up->children, n);
	free(n->key);
	free(n);
}

static void node_free(struct tree *t, struct tree_node *n)
{
	HASH_DEL(t->nodes, n);
	node_forget(t, n);
}

static void node_drop_below(struct tree *t, struct tree_node *top)
{
	struct tree_node *n = top->children;

	while (n) {
		struct tree_node *up = n->key->parent;

		if (n->children) {
			n = n->children;
			continue;
		}
		node_free(t, n);
		n = up == top ? top->children : up;
	}
}

void tree_done(struct tree *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->tops); i++)
		if (t->tops[i]) {
			node_drop_below(t, t->tops[i]);
			node_free(t, t->tops[i]);
			t->tops[i] = NULL;
		}
}

static struct tree_key *key_make(struct tree_node *parent, struct str name)
{
	struct tree_key *key = calloc(1, sizeof(*key) + name.n);

	if (!key)
		return NULL;
	key->parent = parent;
	if (name.n)
		memcpy(key->name, name.p, name.n);
	return key;
}

struct tree_node *tree_child(const struct tree *t, const struct tree_node *parent, struct str name)
{
	_Alignas(struct tree_key) char text[sizeof(struct tree_key) + TREE_PATH_MAX];
	struct tree_node *n = NULL;

	if (name.n > TREE_PATH_MAX)
		return NULL;
	memcpy(text, &parent, sizeof(parent));
	if (name.n)
		memcpy(text + sizeof(parent), name.p, name.n);
	HASH_FIND(hh, t->nodes, text, sizeof(parent) + name.n, n);
	return n;
}

/* What is at a name below it of which the log says nothing. */
static enum tree_type type_below(const struct tree_node *n)
{
	return n->replaced || (n->type != TREE_UNKNOWN && n->type != TREE_DIRECTORY) ? TREE_GONE
										     : TREE_UNKNOWN;
}

int tree_add_name(struct tree *t, struct tree_node *parent, struct str name, struct tree_node **ret,
	struct cloche_err *err)
{
	struct tree_node *n = tree_child(t, parent, name);

	*ret = n;
	if (n)
		return 0;
	if (t->n >= t->max_nodes || name.n > t->max_names - t->names)
		return err_set(err, E_LIMIT, "the log names too many files");
	n = calloc(1, sizeof(*n));
	if (n)
		n->key = key_make(parent, name);
	if (!n || !n->key) {
		free(n);
		return err_nomem(err);
	}
	n->mode = STATE_NO_MODE;
	n->type = parent ? type_below(parent) : TREE_UNKNOWN;
	n->replaced = n->type == TREE_GONE;
	HASH_ADD_KEYPTR(hh, t->nodes, n->key, sizeof(*n->key) + name.n, n);
	if (!n->hh.tbl) {
		free(n->key);
		free(n);
		return err_nomem(err);
	}
	if (parent)
		DL_APPEND(parent->children, n);
	t->names += name.n;
	t->n++;
	*ret = n;
	return 0;
}

int tree_add(struct tree *t, const struct tree_path *path, struct tree_node **ret,
	struct cloche_err *err)
{
	struct str rest = tree_path_str(path), name;
	struct tree_node **top = &t->tops[path->relative];
	int r = *top ? 0 : tree_add_name(t, NULL, path->relative ? STR(".") : STR("/"), top, err);

	*ret = *top;
	while (r == 0 && tree_path_next(&rest, &name))
		r = tree_add_name(t, *ret, name, ret, err);
	return r;
}

/* Return the last node on the way, and whether it is the path itself. */
static struct tree_node *node_walk(
	const struct tree *t, const struct tree_path *path, bool *ret_whole)
{
	struct str rest = tree_path_str(path), name;
	struct tree_node *n = t->tops[path->relative];

	*ret_whole = n != NULL;
	while (*ret_whole && tree_path_next(&rest, &name)) {
		struct tree_node *child = tree_child(t, n, name);

		*ret_whole = child != NULL;
		n = child ? child : n;
	}
	return n;
}

struct tree_node *tree_find(const struct tree *t, const struct tree_path *path)
{
	bool whole;
	struct tree_node *n = node_walk(t, path, &whole);

	return whole ? n : NULL;
}

enum tree_type tree_type_of(const struct tree *t, const struct tree_path *path)
{
	bool whole;
	const struct tree_node *n = node_walk(t, path, &whole);

	if (!n)
		return TREE_UNKNOWN;
	return whole ? n->type : type_below(n);
}

struct tree_node *tree_next(const struct tree_node *n, const struct tree_node *top)
{
	if (n->children)
		return n->children;
	while (n != top && !n->next)
		n = n->key->parent;
	return n == top ? NULL : n->next;
}

int tree_pair(struct tree *t, struct tree *with, struct cloche_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->tops); i++)
		for (struct tree_node *n = t->tops[i]; n; n = tree_next(n, t->tops[i])) {
			struct tree_node *up = n->key->parent;
			int r = 0;

			if (!n->other)
				r = tree_add_name(
					with, up ? up->other : NULL, tree_name(n), &n->other, err);
			if (r < 0)
				return r;
			if (!up)
				with->tops[i] = n->other;
			n->other->other = n;
		}
	return 0;
}

int tree_path_of(const struct tree_node *n, struct buf *ret)
{
	struct str names[TREE_PATH_MAX];
	const struct tree_node *up = n;
	size_t depth = 0;
	int r = 0;

	for (; up->key->parent; up = up->key->parent) {
		if (depth == ARRAY_SIZE(names))
			return -E2BIG;
		names[depth++] = tree_name(up);
	}
	/* Only a relative path has no slash in front. */
	if (depth == 0 || str_eq(tree_name(up), STR("/")))
		r = buf_add_str(ret, tree_name(up));
	while (r == 0 && depth > 0) {
		r = buf_add_str(ret, names[--depth]);
		if (r == 0 && depth > 0)
			r = buf_add_char(ret, '/');
	}
	return r;
}

size_t tree_count(const struct tree_node *top)
{
	size_t count = 0;

	for (const struct tree_node *n = tree_next(top, top); n; n = tree_next(n, top))
		count += n->type > TREE_GONE;
	return count;
}

/* --- contents --- */

static int sum_piece(void *user, struct str piece, struct cloche_err *err)
{
	struct tree_node *n = user;

	sha256_add(n->sum, piece);
	n->sum_size += piece.n;
	return 0;
}

static int sum_add(
	struct tree *t, struct tree_node *n, struct str piece, bool is_ref, struct cloche_err *err)
{
	return is_ref ? tree_stream(&t->taker, piece, sum_piece, n, err) : sum_piece(n, piece, err);
}

/* Keep the digest in place of the pieces. */
static int contents_sum(struct tree *t, struct tree_node *n, struct cloche_err *err)
{
	struct tree_node sums = {.sum = malloc(sizeof(*sums.sum))};
	int r = 0;

	if (!sums.sum)
		return err_nomem(err);
	sha256_init(sums.sum);
	for (const struct tree_piece *p = n->first; r == 0 && p; p = p->next)
		r = sum_add(t, &sums, str_make(p->text, p->n), p->is_ref, err);
	sums.partial = n->partial;
	contents_drop(t, n);
	n->sum = sums.sum;
	n->sum_size = sums.sum_size;
	n->partial = sums.partial;
	n->lost = true;
	return r;
}

static int contents_keep(
	struct tree *t, struct tree_node *n, struct str text, bool is_ref, struct cloche_err *err)
{
	struct tree_piece *piece = malloc(sizeof(*piece) + text.n);

	if (!piece)
		return err_nomem(err);
	*piece = (struct tree_piece){.is_ref = is_ref, .n = text.n};
	memcpy(piece->text, text.p, text.n);
	if (n->last)
		n->last->next = piece;
	else
		n->first = piece;
	n->last = piece;
	n->kept += text.n;
	t->kept += sizeof(*piece) + text.n;
	return 0;
}

/* --- steps --- */

#define TREE_OF(taker_) container_of(taker_, struct tree, taker)

static void node_set(struct tree *t, struct tree_node *n, enum tree_type type)
{
	contents_drop(t, n);
	if (type != TREE_DIRECTORY && type != TREE_UNKNOWN) {
		node_drop_below(t, n);
		n->replaced = true;
	}
	n->type = type;
}

static int node_add_made(struct tree *t, const struct tree_path *path, struct tree_node **ret,
	struct cloche_err *err)
{
	int r = tree_add(t, path, ret, err);

	if (r < 0)
		return r;
	/* What was gone on the way is there again. */
	for (struct tree_node *up = (*ret)->key->parent; up; up = up->key->parent)
		if (up->type == TREE_GONE) {
			up->type = TREE_DIRECTORY;
			up->mode = STATE_NO_MODE;
		}
	return 0;
}

static int tree_make(struct tree_taker *taker, const struct tree_path *path, enum tree_type type,
	uint32_t mode, unsigned flags, struct cloche_err *err)
{
	struct tree *t = TREE_OF(taker);
	struct tree_node *n;
	enum tree_type before;
	int r = node_add_made(t, path, &n, err);

	t->at = NULL;
	if (r < 0)
		return r;
	before = n->type;
	if (type == TREE_DIRECTORY && before == type) {
		n->mode = flags & TREE_NEW ? mode : n->mode;
		return 0;
	}
	if (!(flags & TREE_KEEP) || before != TREE_FILE) {
		node_set(t, n, type);
		n->partial = flags & TREE_KEEP && before == TREE_UNKNOWN;
	}
	if (before != type && before != TREE_UNKNOWN)
		n->mode = STATE_NO_MODE;
	if (mode != STATE_NO_MODE)
		n->mode = mode;
	if (t->is_wanted && type == TREE_FILE && !t->is_wanted(path, t->is_wanted_user)) {
		contents_drop(t, n);
		n->lost = true;
	}
	t->at = n;
	return 0;
}

static int tree_add_piece(
	struct tree_taker *taker, struct str piece, bool is_ref, struct cloche_err *err)
{
	struct tree *t = TREE_OF(taker);
	struct tree_node *n = t->at;
	int r;

	if (!n || (n->lost && !n->sum))
		return 0;
	if (!n->sum && t->kept + sizeof(struct tree_piece) + piece.n <= t->max_kept &&
		n->kept + piece.n <= t->max_file)
		return contents_keep(t, n, piece, is_ref, err);
	if (!t->sums) {
		contents_drop(t, n);
		n->lost = true;
		return 0;
	}
	r = n->sum ? 0 : contents_sum(t, n, err);
	return r == 0 ? sum_add(t, n, piece, is_ref, err) : r;
}

static int tree_end(struct tree_taker *taker, struct cloche_err *err)
{
	TREE_OF(taker)->at = NULL;
	return 0;
}

static int tree_link(struct tree_taker *taker, const struct tree_path *path,
	const struct tree_path *other, uint32_t mode, struct cloche_err *err)
{
	struct tree *t = TREE_OF(taker);
	struct tree_node *from = tree_find(t, other);
	int r;

	if (from && from == tree_find(t, path))
		return 0;
	r = tree_make(taker, path, TREE_FILE, from && from->type == TREE_FILE ? from->mode : mode,
		0, err);
	/* What was there may have been above the other. */
	from = r == 0 ? tree_find(t, other) : NULL;
	if (!from || from->type != TREE_FILE || from->sum || from->partial) {
		if (r == 0)
			t->at->lost = true;
		return r;
	}
	for (const struct tree_piece *p = from->first; r == 0 && p; p = p->next)
		r = tree_add_piece(taker, str_make(p->text, p->n), p->is_ref, err);
	return r;
}

static int tree_gone(struct tree_taker *taker, const struct tree_path *path, struct cloche_err *err)
{
	struct tree *t = TREE_OF(taker);
	struct tree_node *n;
	int r = tree_type_of(t, path) == TREE_GONE ? 1 : tree_add(t, path, &n, err);

	if (r != 0)
		return r < 0 ? r : 0;
	node_set(t, n, TREE_GONE);
	n->mode = STATE_NO_MODE;
	return 0;
}

static int tree_mode(struct tree_taker *taker, const struct tree_path *path, uint32_t mode,
	struct cloche_err *err)
{
	struct tree_node *n;
	int r = tree_add(TREE_OF(taker), path, &n, err);

	if (r == 0)
		n->mode = mode;
	return r;
}

/* Give the node another place, where nothing is. */
static int node_place(struct tree *t, struct tree_node *n, struct tree_node *parent,
	struct str name, struct cloche_err *err)
{
	struct tree_key *key = key_make(parent, name), *old = n->key;

	if (!key)
		return err_nomem(err);
	t->names += name.n - tree_name(n).n;
	HASH_DEL(t->nodes, n);
	DL_DELETE(old->parent->children, n);
	n->key = key;
	DL_APPEND(parent->children, n);
	HASH_ADD_KEYPTR(hh, t->nodes, n->key, sizeof(*key) + name.n, n);
	if (!n->hh.tbl) {
		/* The map has no memory, even for what it had before. */
		n->hh.keylen = (unsigned)(sizeof(*key) + name.n);
		node_drop_below(t, n);
		node_forget(t, n);
		free(old);
		return err_nomem(err);
	}
	free(old);
	return 0;
}

static int tree_move(struct tree_taker *taker, const struct tree_path *from,
	const struct tree_path *to, struct cloche_err *err)
{
	struct tree *t = TREE_OF(taker);
	struct tree_node *n, *old = tree_find(t, to), *parent;
	struct tree_path above = *to;
	struct str name;
	bool replaces = old && (old->children || old->replaced);
	int r = to->n == 0 || from->n == 0 ? 1 : node_add_made(t, to, &old, err);

	if (r == 0)
		r = tree_add(t, from, &n, err);
	if (r != 0)
		return r < 0 ? r : 0;
	while (above.text[--above.n] != '/')
		;
	name = str_make(to->text + above.n + 1, to->n - above.n - 1);
	parent = old->key->parent;
	/* Nothing can take the place of what is above it; such a log is wrong. */
	for (const struct tree_node *up = n; up; up = up->key->parent)
		if (up == old)
			return tree_gone(taker, to, err);
	node_drop_below(t, old);
	node_free(t, old);
	r = node_place(t, n, parent, name, err);
	if (r < 0)
		return r;
	/* What was there before is not below it. */
	n->replaced = n->replaced || replaces;
	return tree_gone(taker, from, err);
}

void tree_init(struct tree *t, tree_open_fn open, void *user)
{
	*t = (struct tree){.max_nodes = TREE_MAX_NODES,
		.max_names = TREE_MAX_NAMES,
		.max_kept = SIZE_MAX,
		.max_file = SIZE_MAX,
		.taker = {.make = tree_make,
			.add = tree_add_piece,
			.end = tree_end,
			.link = tree_link,
			.gone = tree_gone,
			.mode = tree_mode,
			.move = tree_move,
			.open = open,
			.open_user = user}};
}

/* --- reading contents --- */

static int load_piece(void *user, struct str piece, struct cloche_err *err)
{
	int r = buf_add_str(user, piece);

	return r == -E2BIG ? 1 : r < 0 ? err_nomem(err) : 0;
}

int tree_contents(
	const struct tree *t, const struct tree_node *n, struct buf *ret, struct cloche_err *err)
{
	int r = n->lost || n->partial;

	for (const struct tree_piece *p = n->first; r == 0 && p; p = p->next) {
		struct str text = str_make(p->text, p->n);

		r = p->is_ref ? tree_stream(&t->taker, text, load_piece, ret, err)
			      : load_piece(ret, text, err);
	}
	return r;
}

int tree_digest(const struct tree *t, const struct tree_node *n, char ret[SHA256_HEX_MAX],
	uint64_t *ret_size, struct cloche_err *err)
{
	struct sha256 own;
	struct tree_node sums = {.sum = &own, .sum_size = n->sum_size};
	int r = 0;

	sha256_init(&own);
	if (n->sum)
		own = *n->sum;
	for (const struct tree_piece *p = n->first; r == 0 && p; p = p->next) {
		struct str text = str_make(p->text, p->n);

		r = p->is_ref ? tree_stream(&t->taker, text, sum_piece, &sums, err)
			      : sum_piece(&sums, text, err);
	}
	sha256_hex(&own, ret);
	*ret_size = sums.sum_size;
	return r;
}

/* Whether both have the same pieces, so that nothing need be read. */
static bool pieces_equal(const struct tree_node *a, const struct tree_node *b)
{
	const struct tree_piece *p = a->first, *q = b->first;

	if (a->lost || b->lost)
		return false;
	for (; p && q; p = p->next, q = q->next)
		if (p->is_ref != q->is_ref ||
			!str_eq(str_make(p->text, p->n), str_make(q->text, q->n)))
			return false;
	return !p && !q;
}

int tree_is_same(const struct tree *t, const struct tree_node *a, const struct tree_node *b,
	struct cloche_err *err)
{
	char x[SHA256_HEX_MAX], y[SHA256_HEX_MAX];
	uint64_t m, n;
	int r;

	if (pieces_equal(a, b))
		return 1;
	r = tree_digest(t, a, x, &m, err);
	if (r == 0)
		r = tree_digest(t, b, y, &n, err);
	return r < 0 ? r : m == n && memcmp(x, y, sizeof(x)) == 0;
}
