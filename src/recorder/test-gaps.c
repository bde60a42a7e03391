/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that cannot be written (here: because of the limit of a file's size), and what the next
 * look makes of it. */
#include "record/blobs.h"
#include "record/tree.h"
#include "recorder/test-recorder.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { STEP = 40 /* bytes, fewer than an entry has */ };

static void let_grow_to(rlim_t size)
{
	struct rlimit l;

	must(getrlimit(RLIMIT_FSIZE, &l) == 0);
	l.rlim_cur = size == RLIM_INFINITY ? l.rlim_max : size;
	must(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

static rlim_t log_size(const struct fixture *f)
{
	struct stat st;
	char name[32];

	snprintf(name, sizeof(name), "%s.jsonl", f->id);
	return fstatat(f->r.logs, name, &st, 0) == 0 ? (rlim_t)st.st_size : 0;
}

static int try_look(struct fixture *f, uint32_t exec)
{
	f->r.exec = exec;
	return recorder_take(&f->r, STATE_UNKNOWN, STR_NULL, -1, RECORDER_LOOK, NULL);
}

/* A look for which the log has room for so many bytes. */
static int look_with(struct fixture *f, uint32_t exec, rlim_t room)
{
	int r;

	let_grow_to(log_size(f) + room);
	r = try_look(f, exec);
	let_grow_to(RLIM_INFINITY);
	return r;
}

/* A look with room for all; it may tell that an earlier one missed something. */
static void look_again(struct fixture *f, uint32_t exec)
{
	int r = try_look(f, exec);

	check(r == 0 || r == -E_LIMIT);
}

/* --- what the log says --- */

static int gaps_open(void *user, struct str ref, struct cloche_err *err)
{
	const struct fixture *f = user;

	return blob_open(f->r.contents, ref, err);
}

static int gaps_take(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct tree *t = user;

	return state_op_about(op->kind) == STATE_FILES ? tree_take(&t->taker, op, err) : 0;
}

/* Write down the tree that the log has, a line for each name. */
static void tree_text(struct fixture *f, struct buf *ret)
{
	_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;
	_cleanup_(tree_donep) struct tree t;
	char digest[SHA256_HEX_MAX];
	uint64_t size;

	tree_init(&t, gaps_open, f);
	must(oplog_open(&log, f->r.logs, f->id, false, NULL) == 0);
	must(oplog_read(&log, gaps_take, &t, NULL, NULL) == 0);
	for (const struct tree_node *n = t.tops[0]; n; n = tree_next(n, t.tops[0])) {
		if (n->type <= TREE_GONE)
			continue;
		must(tree_path_of(n, ret) == 0 && tree_digest(&t, n, digest, &size, NULL) == 0);
		must(buf_printf(ret, " %d %o %s\n", (int)n->type, n->mode, digest) == 0);
	}
}

static int by_line(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same, sorted: the order in a directory is chance. */
static void sorted_text(struct fixture *f, struct buf *ret)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);
	char *lines[64], *save = NULL;
	size_t n = 0;

	tree_text(f, &text);
	must(buf_add_char(&text, '\0') == 0);
	for (char *l = strtok_r(buf_data(&text), "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		must(n < ARRAY_SIZE(lines));
		lines[n++] = l;
	}
	qsort(lines, n, sizeof(*lines), by_line);
	for (size_t i = 0; i < n; i++)
		must(buf_printf(ret, "%s\n", lines[i]) == 0);
	must(buf_add_char(ret, '\0') == 0);
}

/* --- a change of each kind --- */

static void put_large(int ws, const char *name, char c)
{
	_cleanup_fd_ int fd = openat(ws, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	char text[70000];

	memset(text, c, sizeof(text));
	must(fd >= 0 && fd_write_all(fd, text, sizeof(text)) == 0);
}

static void make_before(int ws)
{
	put(ws, "changed", "one");
	put(ws, "removed", "two");
	put(ws, "mode", "three");
	put(ws, "becomes a directory", "four");
	put_large(ws, "large", 'a');
	must(mkdirat(ws, "d", 0755) == 0 && mkdirat(ws, "d/e", 0755) == 0);
	put(ws, "d/f", "five");
	must(mkdirat(ws, "gone", 0755) == 0);
	put(ws, "gone/f", "six");
	must(symlinkat("here", ws, "link") == 0);
}

static void make_after(int ws)
{
	put(ws, "changed", "one and more");
	must(unlinkat(ws, "removed", 0) == 0);
	must(fchmodat(ws, "mode", 0600, 0) == 0 && fchmodat(ws, "d/e", 0700, 0) == 0);
	must(unlinkat(ws, "becomes a directory", 0) == 0);
	must(mkdirat(ws, "becomes a directory", 0755) == 0);
	put(ws, "becomes a directory/f", "seven");
	put_large(ws, "large", 'b');
	must(mkdirat(ws, "new", 0711) == 0);
	put(ws, "new/f", "eight");
	must(unlinkat(ws, "gone/f", 0) == 0 && unlinkat(ws, "gone", AT_REMOVEDIR) == 0);
	must(unlinkat(ws, "link", 0) == 0 && symlinkat("there", ws, "link") == 0);
	must(symlinkat("x", ws, "new link") == 0);
}

/* Wherever a look breaks off, the next one has all that it did not put on record. */
static void test_next_look_has_the_rest(void)
{
	_cleanup_(buf_donep) struct buf want = BUF_INIT(1 << 20);
	struct fixture f;
	int r = -1;

	setup(&f);
	make_before(f.ws);
	look(&f, 0);
	make_after(f.ws);
	look(&f, 1);
	sorted_text(&f, &want);
	teardown(&f);
	for (rlim_t room = 0; r < 0 && r != -E_LIMIT; room += STEP) {
		_cleanup_(buf_donep) struct buf have = BUF_INIT(1 << 20);

		setup(&f);
		make_before(f.ws);
		look(&f, 0);
		make_after(f.ws);
		r = look_with(&f, 1, room);
		look_again(&f, 2);
		sorted_text(&f, &have);
		check_z(buf_data(&have), buf_data(&want));
		teardown(&f);
	}
}

struct order {
	uint64_t skip, command; /* entries */
};

static int get_order(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct order *o = user;

	if (op->kind == STATE_FS_SKIP && !o->skip &&
		str_eq(json_str_at(op->args, "path"), STR("/w")))
		o->skip = op->number;
	if (op->exec && !o->command)
		o->command = op->number;
	return 0;
}

/* If the first look breaks off, what the next one finds may have been there before: no entry says
 * that a command made it, and one in front of them says that not all is known. */
static void test_first_look(void)
{
	struct fixture f;
	int r = -1;

	for (rlim_t room = 0; r < 0 && r != -E_LIMIT; room += STEP) {
		_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;
		struct order o = {0};

		setup(&f);
		make_before(f.ws);
		r = look_with(&f, 0, room);
		look_again(&f, 1);
		put(f.ws, "changed", "by a command");
		look(&f, 2);
		must(oplog_open(&log, f.r.logs, f.id, false, NULL) == 0);
		must(oplog_read(&log, get_order, &o, NULL, NULL) == 0);
		check_int(o.skip != 0, r != -E_LIMIT);
		check(o.skip < o.command);
		check_entries(&f, 1, r == -E_LIMIT ? "fs.write /w/large\n" : "");
		check_entries(&f, 2, "fs.write /w/changed\n");
		teardown(&f);
	}
}

/* Contents for which there is no room are not the end of a look. */
static void test_contents_that_do_not_fit(void)
{
	struct fixture f;

	setup(&f);
	look(&f, 0);
	for (char name[2] = "a"; name[0] <= 'f'; name[0]++)
		put(f.ws, name, "small");
	put_large(f.ws, "large", 'a');
	check_int(look_with(&f, 1, 10000), -E_LIMIT);
	look(&f, 2);
	check_entries(&f, 2, "fs.write /w/large\n");
	look(&f, 3);
	check_entries(&f, 3, "");
	teardown(&f);
}

int main(void)
{
	must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	testing_begin();
	run_test(test_next_look_has_the_rest);
	run_test(test_first_look);
	run_test(test_contents_that_do_not_fit);
	return testing_end();
}
