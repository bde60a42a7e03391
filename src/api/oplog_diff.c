/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the log is read once for each of the two points in time, and what it says
 * about files, variables and storage becomes a table in memory. Nothing is written to the file
 * system, and no path is looked up in it. Paths are compared as they are written (as in
 * compaction). Of contents, the beginning is kept, up to HELD_MAX, and a digest of all: so
 * differences of any size are found, and small ones are shown. Then the two tables are compared in
 * the order of names. */
#include "api/oplog.h"
#include "base/sha256.h"
#include "files/tar.h"
#include "record/unified.h"

#include <errno.h>
#include <unistd.h>

enum { HELD_MAX = 1 << 20, NAMES_MAX = 64 << 20, ALL_HELD_MAX = 256 << 20 };
/* Names that are looked at to move and to remove, and bytes of those that are moved. */
#define WORK_MAX (100ULL * 1000 * 1000)

enum node_type { NODE_UNKNOWN, NODE_GONE, NODE_DIRECTORY, NODE_FILE, NODE_LINK, NODE_VALUE };

struct node {
	UT_hash_handle hh;
	enum node_type type;
	bool has_below; /* the table has had names below it */
	bool partial;   /* what was there before the log is not known */
	bool cut;       /* held has only the beginning */
	uint32_t mode;
	uint64_t size;
	struct sha256 digest;
	struct buf held;
	size_t key_n;
	char key[]; /* 'f', 'v' or 's' and the path, variable or key */
};

struct table {
	cloche_oplog *log;
	struct node *nodes;
	size_t names, held; /* bytes */
	uint64_t work;      /* done, of WORK_MAX */
	uint64_t last;      /* entries up to this one count */
	struct node *filling;
	struct str below; /* where an archive is unpacked */
	struct cloche_err *err;
};

/* --- the table --- */

static void node_free(struct table *t, struct node *n)
{
	HASH_DEL(t->nodes, n);
	t->names -= n->key_n;
	t->held -= buf_len(&n->held);
	buf_done(&n->held);
	free(n);
}

static void table_done(struct table *t)
{
	struct node *n, *next;

	HASH_ITER (hh, t->nodes, n, next)
		node_free(t, n);
}

/* Make the key of a name. A path loses doubled slashes and one at its end. */
static int key_make(char part, struct str name, struct buf *ret)
{
	bool slash = false;
	int r = buf_add_char(ret, part);

	for (size_t i = 0; r == 0 && i < name.n; i++) {
		if (part == 'f' && name.p[i] == '/' && (slash || i + 1 == name.n))
			continue;
		slash = name.p[i] == '/';
		r = buf_add_char(ret, name.p[i]);
	}
	return r;
}

static struct node *find(const struct table *t, struct str key)
{
	struct node *n = NULL;

	HASH_FIND(hh, t->nodes, key.p, key.n, n);
	return n;
}

static struct node *get(struct table *t, struct str key)
{
	struct node *n = find(t, key);

	if (n)
		return n;
	if (t->names + key.n > NAMES_MAX) {
		err_set(t->err, E_LIMIT, "the log names too many files to compare");
		return NULL;
	}
	n = calloc(1, sizeof(*n) + key.n + 1);
	if (n) {
		memcpy(n->key, key.p, key.n);
		n->key_n = key.n;
		n->mode = STATE_NO_MODE;
		n->held = BUF_INIT(HELD_MAX);
		HASH_ADD_KEYPTR(hh, t->nodes, n->key, n->key_n, n);
	}
	if (!n || !n->hh.tbl) {
		free(n);
		err_nomem(t->err);
		return NULL;
	}
	t->names += key.n;
	return n;
}

static void empty(struct table *t, struct node *n, enum node_type type)
{
	t->held -= buf_len(&n->held);
	buf_clear(&n->held);
	sha256_init(&n->digest);
	n->type = type;
	n->size = 0;
	n->partial = n->cut = false;
}

static int fill(struct table *t, struct node *n, struct str data)
{
	sha256_add(&n->digest, data);
	n->size += data.n;
	n->cut = n->cut || buf_len(&n->held) + data.n > HELD_MAX || t->held + data.n > ALL_HELD_MAX;
	if (n->cut || data.n == 0)
		return 0;
	if (buf_add_str(&n->held, data) < 0)
		return err_nomem(t->err);
	t->held += data.n;
	return 0;
}

/* Return the node of a path, made if it is missing, and mark the directories above it. */
static struct node *get_path(struct table *t, struct str path)
{
	_cleanup_(buf_donep) struct buf key = BUF_INIT(2 * STATE_PATH_MAX + 4);
	struct node *n;

	if (key_make('f', path, &key) < 0) {
		err_nomem(t->err);
		return NULL;
	}
	for (struct str up = buf_str(&key); up.n > 1; up.n--) {
		if (up.p[up.n - 1] != '/' || up.n == 2)
			continue;
		n = get(t, str_prefix(up, up.n - 1));
		if (!n || n->has_below)
			break;
		n->has_below = true;
	}
	return get(t, buf_str(&key));
}

static bool is_below(const struct node *n, const struct node *dir)
{
	return n->key_n > dir->key_n && n->key[dir->key_n] == '/' &&
	       memcmp(n->key, dir->key, dir->key_n) == 0;
}

/* Count a look at all names. Return false if there were too many; then apply() fails. */
static bool may_look(struct table *t)
{
	t->work += HASH_COUNT(t->nodes);
	return t->work <= WORK_MAX;
}

static void drop_below(struct table *t, struct node *dir)
{
	struct node *n, *next;

	if (!dir->has_below || !may_look(t))
		return;
	HASH_ITER (hh, t->nodes, n, next)
		if (is_below(n, dir))
			empty(t, n, NODE_GONE);
}

/* --- contents --- */

static int fill_from(struct table *t, struct str ref, struct tar_reader *tar, struct node *n)
{
	_cleanup_fd_ int fd = oplog_open_content(t->log, ref, t->err);
	struct files_error e = {0};
	char chunk[16384];
	ssize_t got = fd;

	if (fd < 0)
		return fd;
	while ((got = read(fd, chunk, sizeof(chunk))) != 0) {
		int r = 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(t->err, errno, "read %.*s", STR_FMT(ref));
		if (tar)
			r = tar_reader_feed(tar, chunk, (size_t)got, &e);
		else
			r = fill(t, n, str_make(chunk, (size_t)got));
		if (r < 0)
			return tar ? err_set(t->err, E_CORRUPT, "%.*s is not an archive",
					     STR_FMT(ref))
				   : r;
	}
	return tar && tar_reader_finish(tar, &e) < 0
		       ? err_set(t->err, E_CORRUPT, "%.*s is not an archive", STR_FMT(ref))
		       : 0;
}

static bool has_dots(struct str path)
{
	while (path.n) {
		struct str part = str_prefix(path, str_chr(path, '/'));

		if (str_eq(part, STR("..")))
			return true;
		path = str_from_index(path, part.n + 1);
	}
	return false;
}

/* Return the node of an entry's name, without the "./" at its beginning. */
static struct node *get_entry(struct table *t, struct str name, struct files_error *e)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(2 * STATE_PATH_MAX);
	struct node *n = NULL;

	while (str_starts(name, STR("./")))
		name = str_from_index(name, 2);
	if (str_eq(name, STR(".")))
		name = STR_NULL;
	if (!has_dots(name) && buf_add_str(&path, t->below) == 0 && buf_add_char(&path, '/') == 0 &&
		buf_add_str(&path, name) == 0)
		n = get_path(t, buf_str(&path));
	if (!n)
		(void)files_fail(e, EBADMSG, STR_NULL, NULL);
	return n;
}

static int on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	static const enum node_type types[] = {[TAR_FILE] = NODE_FILE,
		[TAR_DIRECTORY] = NODE_DIRECTORY,
		[TAR_SYMLINK] = NODE_LINK,
		[TAR_HARDLINK] = NODE_FILE};
	struct table *t = user;
	struct node *n = get_entry(t, entry->path, e), *other;

	if (!n)
		return -EBADMSG;
	if (entry->type != TAR_DIRECTORY)
		drop_below(t, n);
	empty(t, n, entry->type < ARRAY_SIZE(types) ? types[entry->type] : NODE_UNKNOWN);
	n->mode = entry->mode;
	t->filling = n;
	if (entry->type == TAR_SYMLINK)
		return fill(t, n, entry->link) < 0 ? -ENOMEM : 0;
	if (entry->type != TAR_HARDLINK)
		return 0;
	other = get_entry(t, entry->link, e);
	if (!other)
		return -EBADMSG;
	if (other == n || fill(t, n, buf_str(&other->held)) < 0)
		return other == n ? 0 : -ENOMEM;
	n->digest = other->digest;
	n->size = other->size;
	n->cut = other->cut || n->cut;
	return 0;
}

static int on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct table *t = user;

	return fill(t, t->filling, str_make(p, n)) < 0 ? -ENOMEM : 0;
}

static int on_entry_end(void *user, struct files_error *e)
{
	return 0;
}

/* --- what each operation does --- */

/* n: the node of the path; NULL for an archive, and for an operation without a path. */
static int do_write(struct table *t, const struct state_op *op, struct node *n)
{
	if (op->kind != STATE_FS_APPEND || n->type == NODE_GONE || n->type == NODE_UNKNOWN) {
		bool partial = op->kind == STATE_FS_APPEND && n->type == NODE_UNKNOWN;

		empty(t, n, NODE_FILE);
		n->partial = partial;
	}
	if (op->mode != STATE_NO_MODE)
		n->mode = op->mode;
	return op->is_ref ? fill_from(t, op->object, NULL, n) : fill(t, n, op->object);
}

static int do_unpack(struct table *t, const struct state_op *op, struct node *n)
{
	static const struct tar_reader_ops ops = {on_entry, on_data, on_entry_end};
	_cleanup_(tar_reader_freep) struct tar_reader *tar = tar_reader_new(&ops, t);

	t->below = op->subject;
	return tar ? fill_from(t, op->object, tar, NULL) : err_nomem(t->err);
}

static int do_delete(struct table *t, const struct state_op *op, struct node *n)
{
	drop_below(t, n);
	empty(t, n, NODE_GONE);
	return 0;
}

static int do_mkdir(struct table *t, const struct state_op *op, struct node *n)
{
	empty(t, n, NODE_DIRECTORY);
	n->mode = op->mode;
	return 0;
}

static int do_symlink(struct table *t, const struct state_op *op, struct node *n)
{
	empty(t, n, NODE_LINK);
	return fill(t, n, op->object);
}

static int do_chmod(struct table *t, const struct state_op *op, struct node *n)
{
	n->mode = op->mode;
	return 0;
}

static void move(struct table *t, struct node *from, struct node *to)
{
	struct buf held;

	empty(t, to, from->type);
	to->mode = from->mode;
	to->size = from->size;
	to->partial = from->partial;
	to->cut = from->cut;
	to->digest = from->digest;
	held = to->held;
	to->held = from->held;
	from->held = held;
	/* from->held is empty now, so t->held stays the same. */
	empty(t, from, NODE_GONE);
}

static int do_rename(struct table *t, const struct state_op *op, struct node *from)
{
	struct node *to = get_path(t, op->object), *n, *next;
	_cleanup_(buf_donep) struct buf path = BUF_INIT(4 * STATE_PATH_MAX);

	if (!to)
		return -E_LIMIT;
	if (from == to || is_below(to, from))
		return 0;
	drop_below(t, to);
	move(t, from, to);
	if (!from->has_below || !may_look(t))
		return 0;
	HASH_ITER (hh, t->nodes, n, next) {
		struct node *there;

		if (!is_below(n, from) || n->type == NODE_GONE)
			continue;
		buf_clear(&path);
		if (buf_add(&path, to->key + 1, to->key_n - 1) < 0 ||
			buf_add(&path, n->key + from->key_n, n->key_n - from->key_n) < 0)
			return err_set(t->err, E_LIMIT, "a path of the log is too long");
		there = get_path(t, buf_str(&path));
		if (!there)
			return -E_LIMIT;
		move(t, n, there);
		t->work += there->key_n;
	}
	return 0;
}

static int do_value(struct table *t, const struct state_op *op, struct node *n)
{
	_cleanup_(buf_donep) struct buf key = BUF_INIT(STATE_KEY_MAX + 16);

	if (key_make(state_op_about(op->kind) == STATE_ENV ? 'v' : 's', op->subject, &key) < 0)
		return err_nomem(t->err);
	n = get(t, buf_str(&key));
	if (!n)
		return -E_LIMIT;
	empty(t, n,
		op->kind == STATE_ENV_SET || op->kind == STATE_STORAGE_SET ? NODE_VALUE
									   : NODE_GONE);
	return n->type == NODE_VALUE ? fill(t, n, op->object) : 0;
}

static int do_clear(struct table *t, const struct state_op *op, struct node *n)
{
	for (n = t->nodes; n; n = n->hh.next)
		if (n->key[0] == 's')
			empty(t, n, NODE_GONE);
	return 0;
}

static const struct {
	enum state_op_kind kind;
	int (*fn)(struct table *t, const struct state_op *op, struct node *n);
} operations[] = {
	{STATE_FS_WRITE, do_write},
	{STATE_FS_APPEND, do_write},
	{STATE_ASSETS_UPLOAD, do_write},
	{STATE_FS_UNPACK, do_unpack},
	{STATE_FS_DELETE, do_delete},
	{STATE_FS_MKDIR, do_mkdir},
	{STATE_FS_RENAME, do_rename},
	{STATE_FS_SYMLINK, do_symlink},
	{STATE_FS_CHMOD, do_chmod},
	{STATE_ENV_SET, do_value},
	{STATE_ENV_DELETE, do_value},
	{STATE_STORAGE_SET, do_value},
	{STATE_STORAGE_DELETE, do_value},
	{STATE_STORAGE_CLEAR, do_clear},
};
_Static_assert(ARRAY_SIZE(operations) == STATE_CHANGING_OPS, "an operation has no row");

static int apply(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct table *t = user;
	bool has_path = state_op_about(op->kind) == STATE_FILES && op->kind != STATE_FS_UNPACK;
	struct node *n = NULL;
	int r = 0;

	if (op->number > t->last)
		return 1;
	if (has_path && !(n = get_path(t, op->subject)))
		r = -t->err->code;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(operations); i++)
		if (operations[i].kind == op->kind)
			r = operations[i].fn(t, op, n);
	if (r >= 0 && t->work > WORK_MAX)
		r = err_set(t->err, E_LIMIT, "the log moves and removes too much to compare");
	if (r < 0)
		err_wrap(err, r, "entry %llu, %s", (unsigned long long)op->number,
			state_op_name(op->kind));
	return r;
}

/* --- comparing --- */

struct comparing {
	cloche_difference_fn fn;
	void *user;
	struct cloche_err *err;
};

static bool is_there(const struct node *n)
{
	return n && n->type >= NODE_DIRECTORY;
}

/* Return 'A', 'C', 'D', or 0 for no difference. What is only known to be gone was there before the
 * log. */
static char judge(const struct node *a, const struct node *b)
{
	struct sha256 x, y;
	char s[SHA256_HEX_MAX], t[SHA256_HEX_MAX];

	if (!is_there(b))
		return b && b->type == NODE_GONE && !(a && a->type == NODE_GONE) ? 'D' : 0;
	if (!is_there(a))
		return 'A';
	if (a->type != b->type || a->size != b->size || a->mode != b->mode)
		return 'C';
	if (a->type == NODE_DIRECTORY)
		return 0;
	x = a->digest;
	y = b->digest;
	sha256_hex(&x, s);
	sha256_hex(&y, t);
	return strcmp(s, t) == 0 ? 0 : 'C';
}

static const void *held(const struct node *n)
{
	if (!is_there(n) || n->type == NODE_DIRECTORY || n->cut || n->partial)
		return NULL;
	return buf_len(&n->held) ? buf_data(&n->held) : "";
}

/* Return whether both contents, where they exist, are wholly known and are text. */
static bool can_show(const cloche_difference *d, bool was_there, bool is_now)
{
	return d->part == CLOCHE_DIFFERENCE_FILE && (d->before || !was_there) &&
	       (d->after || !is_now) && (d->before || d->after) &&
	       (!d->before || unified_is_text(str_make(d->before, d->before_length))) &&
	       (!d->after || unified_is_text(str_make(d->after, d->after_length)));
}

static enum cloche_difference_part part_of(const struct node *n)
{
	if (n->key[0] == 'f')
		return CLOCHE_DIFFERENCE_FILE;
	return n->key[0] == 'v' ? CLOCHE_DIFFERENCE_ENV : CLOCHE_DIFFERENCE_STORAGE;
}

/* a may be NULL. */
static int report(struct comparing *c, const struct node *a, const struct node *b, char kind)
{
	_cleanup_(buf_donep) struct buf hunks = BUF_INIT(8 * HELD_MAX);
	bool was_there = is_there(a), is_now = is_there(b);
	cloche_difference d = {.kind = (enum cloche_change_kind)kind,
		.part = part_of(b),
		.name = b->key + 1,
		.name_length = b->key_n - 1,
		.before = held(a),
		.after = held(b),
		.before_length = was_there ? a->size : 0,
		.after_length = is_now ? b->size : 0,
		.before_mode = was_there ? a->mode : UINT32_MAX,
		.after_mode = is_now ? b->mode : UINT32_MAX};

	if (can_show(&d, was_there, is_now)) {
		if (unified_write(&hunks, str_make(d.before, d.before ? d.before_length : 0),
			    str_make(d.after, d.after ? d.after_length : 0)) < 0)
			return err_nomem(c->err);
		d.unified = buf_len(&hunks) ? buf_cstr(&hunks) : NULL;
		d.unified_length = buf_len(&hunks);
	}
	return c->fn(&d, c->user) ? 0 : 1;
}

static int by_key(const struct node *a, const struct node *b)
{
	return str_compare(str_make(a->key, a->key_n), str_make(b->key, b->key_n));
}

static int compare(struct comparing *c, struct table *a, struct table *b)
{
	int r = 0;

	/* Make sure that each name is in the second table. */
	for (const struct node *n = a->nodes; n; n = n->hh.next)
		if (!get(b, str_make(n->key, n->key_n)))
			return -c->err->code;
	HASH_SORT(b->nodes, by_key);
	for (const struct node *n = b->nodes; r == 0 && n; n = n->hh.next) {
		const struct node *old = find(a, str_make(n->key, n->key_n));
		char kind = judge(old, n);

		if (kind)
			r = report(c, old, n, kind);
	}
	return r < 0 ? r : 0;
}

int cloche_oplog_diff(cloche_oplog *log, uint64_t from, uint64_t to, cloche_difference_fn fn,
	void *user, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT, *e = err ? err : &own;
	struct table a = {.log = log, .last = from, .err = e},
		     b = {.log = log, .last = to, .err = e};
	struct comparing c = {fn, user, e};
	int r = from > to ? err_set(e, E_USAGE, "entry %llu comes after entry %llu",
				    (unsigned long long)from, (unsigned long long)to)
			  : 0;

	if (r == 0)
		r = oplog_read_all(log, apply, &a, e);
	if (r >= 0)
		r = oplog_read_all(log, apply, &b, e);
	if (r >= 0)
		r = compare(&c, &a, &b);
	table_done(&a);
	table_done(&b);
	return r < 0 ? r : 0;
}
