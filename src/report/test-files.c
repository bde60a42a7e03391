/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "report/files.h"
#include "tap.h"

static void put(struct files *t, const char *path, const char *text)
{
	struct file *f = files_add(t, str_from(path));

	check(f != NULL);
	f->is_wanted = true;
	files_set(t, f, FILE_REGULAR, false, str_from(text));
}

static const char *type_of(struct files *t, const char *path)
{
	static const char *const names[] = {"none", "directory", "file", "link"};
	const struct file *f = files_find(t, str_from(path));

	return f ? names[f->type] : "unknown";
}

static void keeps_texts(void)
{
	struct files t = {.work = 1000};
	struct file *f;

	put(&t, "/a/b", "one");
	check_str(file_text(files_find(&t, STR("/a/./..//a/b"))), "one");
	put(&t, "/a/b", "two");
	check_int(t.kept, 3);
	f = files_add(&t, STR("/unwanted"));
	files_set(&t, f, FILE_REGULAR, false, STR("text"));
	check(!f->data && t.kept == 3);
	check(strcmp(type_of(&t, "/a/c"), "unknown") == 0);
	check(files_find(&t, STR("/..")) == t.root && files_find(&t, STR("")) == t.root);
	files_done(&t);
}

static void removes_and_moves(void)
{
	struct files t = {.work = 1000};

	put(&t, "/d/a", "1");
	put(&t, "/d/e/b", "2");
	check_int(files_find(&t, STR("/d"))->live, 2);
	files_move(&t, files_find(&t, STR("/d")), files_add(&t, STR("/n/d")));
	check(strcmp(type_of(&t, "/d/a"), "none") == 0);
	check_str(file_text(files_find(&t, STR("/n/d/e/b"))), "2");
	/* Into itself: nothing happens. */
	files_move(&t, files_find(&t, STR("/n")), files_add(&t, STR("/n/d/x")));
	check(strcmp(type_of(&t, "/n/d/a"), "file") == 0);
	files_remove(&t, files_find(&t, STR("/n")));
	check(strcmp(type_of(&t, "/n/d/a"), "none") == 0 && t.kept == 0);
	check_int(t.root->live, 0);
	check(files_find(&t, STR("/d/a"))->is_wanted);
	put(&t, "/n/d", "3");
	check_int(t.root->live, 1);
	files_done(&t);
}

static void is_bounded(void)
{
	_cleanup_(buf_donep) struct buf deep = BUF_INIT(1 << 20);
	struct files t = {.work = 2};

	for (int i = 0; i <= FILES_MAX_DEPTH; i++)
		if (buf_add(&deep, "/a", 2) < 0)
			abort();
	check(files_add(&t, buf_str(&deep)) == NULL);
	check(files_add(&t, str_from_index(buf_str(&deep), 2)) != NULL);
	for (int i = 0; i < 4; i++) {
		char path[] = {'/', 'x', '/', (char)('a' + i), '\0'};

		put(&t, path, "text");
	}
	files_remove(&t, files_find(&t, STR("/x")));
	check_int(t.work, 0);
	files_done(&t);
}

static unsigned deepest(const struct file *f, unsigned depth)
{
	unsigned most = depth;

	for (const struct file *child = f->children; child; child = child->hh.next)
		most = MAX(most, deepest(child, depth + 1));
	return most;
}

/* Each of these moves puts everything one step further down. */
static void moves_no_deeper(void)
{
	struct files t = {.work = 1000 * 1000 * 1000};

	put(&t, "/a/f", "text");
	for (int i = 0; i < FILES_MAX_DEPTH; i++) {
		files_move(&t, files_find(&t, STR("/a")), files_add(&t, STR("/b/n")));
		files_move(&t, files_find(&t, STR("/b")), files_add(&t, STR("/a/n")));
	}
	check_int(deepest(t.root, 0), FILES_MAX_DEPTH);
	check(t.work > 0);
	check_int(t.kept, 0); /* what would be deeper is forgotten */
	files_done(&t);
}

/* Who removes or moves a file also counts it in all directories above it. */
static void counts_the_way_up(void)
{
	enum { DEPTH = 100 };
	_cleanup_(buf_donep) struct buf deep = BUF_INIT(1 << 20);
	struct files t = {.work = 2ULL * DEPTH * DEPTH};
	uint64_t left;

	for (int i = 0; i < DEPTH; i++)
		if (buf_add(&deep, "/a", 2) < 0)
			abort();
	check(files_add(&t, buf_str(&deep)) != NULL);
	put(&t, buf_cstr(&deep), "text");
	files_move(&t, files_find(&t, STR("/a")), files_add(&t, STR("/b")));
	left = t.work;
	check(left <= 2ULL * DEPTH * DEPTH - DEPTH * DEPTH / 2);
	files_remove(&t, files_find(&t, STR("/b")));
	check(t.work <= left - DEPTH * DEPTH / 2);
	files_done(&t);
}

int main(void)
{
	run_test(keeps_texts);
	run_test(removes_and_moves);
	run_test(is_bounded);
	run_test(moves_no_deeper);
	run_test(counts_the_way_up);
	return tap_done();
}
