/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of the files that a log tells of. */
#include "base/fd.h"
#include "files/tar.h"
#include "record/tree.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* The only contents beside the log. */
static struct buf beside = {.max = 16 << 20};
static const char ref[] = "sha256-0000000000000000000000000000000000000000000000000000000000000000";
static unsigned opened;

static int open_beside(void *user, struct str name, struct cloche_err *err)
{
	int fd = memfd_create("beside", MFD_CLOEXEC);

	opened++;
	must(fd >= 0 && fd_write_all(fd, buf_data(&beside), buf_len(&beside)) == 0);
	must(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void set_beside(struct str text)
{
	buf_clear(&beside);
	must(buf_add_str(&beside, text) == 0);
}

static int take_op(struct tree *t, struct state_op op)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	return tree_take(&t->taker, &op, &err);
}

static int take(struct tree *t, enum state_op_kind kind, const char *path, const char *object)
{
	return take_op(t, (struct state_op){.kind = kind,
				  .subject = str_from(path),
				  .object = str_from(object),
				  .is_ref = object == ref,
				  .mode = STATE_NO_MODE});
}

static struct tree_node *find(const struct tree *t, const char *path)
{
	struct tree_path p;

	must(tree_path_make(&p, str_from(path)));
	return tree_find(t, &p);
}

static const char *type(const struct tree *t, const char *path)
{
	static const char *const names[] = {
		"unknown", "gone", "directory", "file", "link", "other"};
	struct tree_path p;

	must(tree_path_make(&p, str_from(path)));
	return names[tree_type_of(t, &p)];
}

#define check_type(t, path, want) check_z(type(t, path), want)

static const char *contents(const struct tree *t, const char *path)
{
	static struct buf b = {.max = 1 << 20};
	const struct tree_node *n = find(t, path);

	buf_clear(&b);
	if (!n || tree_contents(t, n, &b, NULL) != 0)
		return "(not known)";
	must(buf_add_char(&b, '\0') == 0);
	return buf_data(&b);
}

static void path_is(const char *path, bool relative, bool dots, const char *want)
{
	struct tree_path p;

	check(tree_path_make(&p, str_from(path)));
	check_z(p.text, want);
	check(p.relative == relative && p.dots == dots);
}

static void one_form_of_a_path(void)
{
	char longest[STATE_PATH_MAX + 2];
	struct tree_path p;

	path_is("/", false, false, "");
	path_is("", true, false, "");
	path_is("//a/./b//", false, false, "/a/b");
	path_is("./a/.", true, false, "/a");
	path_is("/a/../b", false, true, "/b");
	path_is("/../../..", false, true, "");
	path_is("../a", true, true, "/a");
	path_is("/...", false, false, "/...");
	memset(longest, 'x', sizeof(longest));
	check(tree_path_make(&p, str_make(longest, STATE_PATH_MAX)));
	check(!tree_path_make(&p, str_make(longest, STATE_PATH_MAX + 1)));
}

static void each_operation(void)
{
	struct tree t;

	tree_init(&t, open_beside, NULL);
	check_int(take(&t, STATE_FS_WRITE, "/d//f", "one"), 0);
	check_type(&t, "/d/f", "file");
	check_type(&t, "/d", "unknown");
	check_z(contents(&t, "/d/./f"), "one");
	check_int(take(&t, STATE_FS_APPEND, "/d/f", ", two"), 0);
	check_z(contents(&t, "/d/f"), "one, two");
	check_int(take(&t, STATE_FS_APPEND, "/older", "end"), 0);
	check(find(&t, "/older")->partial);
	check_z(contents(&t, "/older"), "(not known)");
	check_int(take(&t, STATE_FS_MKDIR, "/e", ""), 0);
	check_int(take(&t, STATE_FS_SYMLINK, "/e/l", "../d/f"), 0);
	check_type(&t, "/e/l", "link");
	check_z(contents(&t, "/e/l"), "../d/f");
	check_int(take(&t, STATE_FS_RENAME, "/d", "/e/d"), 0);
	check_z(contents(&t, "/e/d/f"), "one, two");
	check_type(&t, "/d", "gone");
	check_type(&t, "/d/f", "gone");
	check_type(&t, "/d/whatever", "gone");
	check_int((long long)tree_count(find(&t, "/e")), 2); /* its d was there before the log */
	check_int(take_op(&t,
			  (struct state_op){
				  .kind = STATE_FS_CHMOD, .subject = STR("/e/d/f"), .mode = 0640}),
		0);
	check_int(find(&t, "/e/d/f")->mode, 0640);
	check_int(take(&t, STATE_FS_DELETE, "/e", ""), 0);
	check_type(&t, "/e/d/f", "gone");
	check(t.kept == sizeof(struct tree_piece) + 3);
	/* A write makes what is gone on the way, and nothing else that was there. */
	check_int(take(&t, STATE_ASSETS_UPLOAD, "/e/new", ref), 0);
	check_type(&t, "/e", "directory");
	check_type(&t, "/e/d/f", "gone");
	check_type(&t, "/other", "unknown");
	check_int(take(&t, STATE_ENV_SET, "V", "x"), 0);
	tree_done(&t);
	check(t.n == 0 && t.names == 0 && t.kept == 0);
}

static void relative_paths_are_apart(void)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(100);
	struct tree t;

	tree_init(&t, NULL, NULL);
	check_int(take(&t, STATE_FS_WRITE, "a/b", "r"), 0);
	check_int(take(&t, STATE_FS_WRITE, "/a/b", "a"), 0);
	check_z(contents(&t, "a/b"), "r");
	check_int(tree_path_of(find(&t, "a/b"), &path), 0);
	check_str(buf_str(&path), "a/b");
	buf_clear(&path);
	check_int(tree_path_of(find(&t, "/a/b"), &path), 0);
	check_str(buf_str(&path), "/a/b");
	buf_clear(&path);
	check_int(tree_path_of(find(&t, "/"), &path), 0);
	check_str(buf_str(&path), "/");
	tree_done(&t);
}

/* The log says what nobody could have done. */
static void impossible_renames(void)
{
	struct tree t;

	tree_init(&t, NULL, NULL);
	check_int(take(&t, STATE_FS_WRITE, "/a/f", "1"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/a", "/a"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/a", "//a/./b/c"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/a", "/x/../a/b"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/", "/b"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/b", "/"), 0);
	check_z(contents(&t, "/a/f"), "1");
	/* Over a file, a directory, and what is above it. */
	check_int(take(&t, STATE_FS_WRITE, "/g", "2"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/a", "/g"), 0);
	check_z(contents(&t, "/g/f"), "1");
	check_int(take(&t, STATE_FS_WRITE, "/h/i", "3"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/g", "/h"), 0);
	check_type(&t, "/h/i", "gone");
	check_z(contents(&t, "/h/f"), "1");
	check_int(take(&t, STATE_FS_RENAME, "/h/f", "/h"), 0);
	check_type(&t, "/h", "gone");
	check_type(&t, "/h/f", "gone");
	/* A prefix of a name is no directory above it. */
	check_int(take(&t, STATE_FS_WRITE, "/n", "4"), 0);
	check_int(take(&t, STATE_FS_RENAME, "/n", "/nn"), 0);
	check_z(contents(&t, "/nn"), "4");
	tree_done(&t);
	check(t.n == 0 && t.names == 0 && t.kept == 0);
}

/* Deeper than a path can say, and deeper than a stack. */
static void deep_trees(void)
{
	_cleanup_(buf_donep) struct buf path = BUF_INIT(STATE_PATH_MAX + 1);
	unsigned too_long = 0, i = 0;
	struct tree t;

	tree_init(&t, NULL, NULL);
	while (buf_len(&path) + 2 <= STATE_PATH_MAX)
		must(buf_add(&path, "/d", 2) == 0);
	must(buf_add_char(&path, '\0') == 0);
	check_int(take(&t, STATE_FS_WRITE, buf_data(&path), "deep"), 0);
	check_z(contents(&t, buf_data(&path)), "deep");
	for (i = 0; i < 100000; i++) {
		must(take(&t, STATE_FS_RENAME, i % 2 ? "/b" : "/d", i % 2 ? "/d/n" : "/b/n") == 0);
		must(take(&t, STATE_FS_MKDIR, i % 2 ? "/b" : "/d", "") == 0);
	}
	check(tree_count(find(&t, "/")) > 100000);
	/* A path is as long as the way to the top: those of some. */
	for (struct tree_node *n = t.tops[0]; n; n = tree_next(n, t.tops[0])) {
		buf_clear(&path);
		if (i++ % 32 == 0)
			too_long += tree_path_of(n, &path) == -E2BIG;
	}
	check(too_long > 0);
	check_int(take(&t, STATE_FS_DELETE, "/b", ""), 0);
	check_int(take(&t, STATE_FS_DELETE, "/d", ""), 0);
	check_int((long long)tree_count(find(&t, "/")), 0);
	tree_done(&t);
	check(t.n == 0 && t.names == 0 && t.kept == 0);
}

static void many_operations(void)
{
	enum { MAX_KEPT = 1 << 20 };
	int rounds = getenv("CLOCHE_TEST_ALL") ? 1000 * 1000 : 200 * 1000;
	char path[32], want[SHA256_HEX_MAX], got[SHA256_HEX_MAX];
	struct sha256 all;
	uint64_t size;
	struct tree t;

	tree_init(&t, NULL, NULL);
	t.max_kept = MAX_KEPT;
	t.sums = true;
	sha256_init(&all);
	for (int i = 0; i < rounds; i++) {
		snprintf(path, sizeof(path), "/%d/%d", i % 10, i % 500);
		must(take(&t, i % 2 ? STATE_FS_WRITE : STATE_FS_DELETE, path, path) == 0);
		must(take(&t, STATE_FS_APPEND, "/log", path) == 0);
		sha256_add(&all, str_from(path));
		if (i % 1000 == 999)
			must(take(&t, STATE_FS_RENAME, "/3", "/4") == 0);
	}
	check(t.kept <= MAX_KEPT);
	check(t.n < 2000);
	sha256_hex(&all, want);
	check_int(tree_digest(&t, find(&t, "/log"), got, &size, NULL), 0);
	tree_done(&t);
	check(t.n == 0 && t.names == 0 && t.kept == 0);
	/* The beginning of that file is older. */
	check_z(got, want);
}

static void too_many_names(void)
{
	char path[STATE_PATH_MAX + 1];
	struct tree t;
	int r = 0, i;

	tree_init(&t, NULL, NULL);
	memset(path, 'n', sizeof(path));
	path[4001] = '\0';
	for (i = 0; r == 0 && i < 20000; i++) {
		snprintf(path, sizeof(path), "/%05d", i);
		path[6] = 'n';
		r = take(&t, STATE_FS_WRITE, path, "");
	}
	check_int(r, -E_LIMIT);
	check(t.names <= TREE_MAX_NAMES);
	check_int(take(&t, STATE_FS_DELETE, "/", ""), 0);
	check_int(take(&t, STATE_FS_WRITE, path, ""), 0);
	tree_done(&t);
}

static int same(const struct tree *t, const char *a, const char *b)
{
	return tree_is_same(t, find(t, a), find(t, b), NULL);
}

static void digests(void)
{
	char text[1000], want[SHA256_HEX_MAX], got[SHA256_HEX_MAX];
	uint64_t size;
	struct tree t;

	tree_init(&t, open_beside, NULL);
	t.max_file = 100;
	t.sums = true;
	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	sha256_text(str_from(text), want);
	set_beside(str_from(text));
	check_int(take(&t, STATE_FS_WRITE, "/text", text), 0);
	check_int(take(&t, STATE_FS_WRITE, "/ref", ref), 0);
	check_int(take(&t, STATE_FS_WRITE, "/again", ref), 0);
	opened = 0;
	check_int(same(&t, "/ref", "/again"), 1);
	check_int(opened, 0);
	check_int(same(&t, "/text", "/ref"), 1);
	check_int(tree_digest(&t, find(&t, "/text"), got, &size, NULL), 0);
	check_z(got, want);
	check_int((long long)size, 999);
	check_z(contents(&t, "/text"), "(not known)");
	check_z(contents(&t, "/ref"), text);
	/* A piece behind a reference, and behind a digest. */
	check_int(take(&t, STATE_FS_APPEND, "/text", "end"), 0);
	check_int(take(&t, STATE_FS_APPEND, "/ref", "end"), 0);
	check_int(same(&t, "/text", "/ref"), 1);
	check_int(same(&t, "/text", "/again"), 0);
	check_int(take(&t, STATE_FS_APPEND, "/ref", text), 0);
	check_int(take(&t, STATE_FS_APPEND, "/text", text), 0);
	check_int(same(&t, "/text", "/ref"), 1);
	tree_done(&t);
}

static bool wants_even(const struct tree_path *path, void *user)
{
	return path->text[path->n - 1] % 2 == 0;
}

static void only_what_is_wanted(void)
{
	struct tree t;

	tree_init(&t, NULL, NULL);
	t.is_wanted = wants_even;
	check_int(take(&t, STATE_FS_WRITE, "/1", "one"), 0);
	check_int(take(&t, STATE_FS_WRITE, "/2", "two"), 0);
	check_int(take(&t, STATE_FS_APPEND, "/1", "more"), 0);
	check_z(contents(&t, "/1"), "(not known)");
	check_z(contents(&t, "/2"), "two");
	tree_done(&t);
}

static void add_entry(enum tar_type type, const char *path, const char *other, const char *text)
{
	struct tar_entry e = {.type = type,
		.path = str_from(path),
		.link = str_from(other),
		.mode = 0750,
		.size = strlen(text)};

	must(tar_write_entry(&beside, &e) == 0 && buf_add_str(&beside, str_from(text)) == 0 &&
		tar_write_padding(&beside, e.size) == 0);
}

static void archives(void)
{
	struct tree t;

	tree_init(&t, open_beside, NULL);
	buf_clear(&beside);
	add_entry(TAR_DIRECTORY, ".", "", "");
	add_entry(TAR_FILE, "d/f", "", "text");
	add_entry(TAR_HARDLINK, "d/g", "d/f", "");
	add_entry(TAR_HARDLINK, "d/f", "d/f", "");
	add_entry(TAR_HARDLINK, "d/none", "d/not/there", "");
	add_entry(TAR_SYMLINK, "d/l", "../..", "");
	add_entry(TAR_FILE, "../out", "", "out");
	add_entry(TAR_FILE, "d/../../out", "", "out");
	add_entry(TAR_HARDLINK, "d/up", "../out", "");
	add_entry(TAR_FIFO, "fifo", "", "");
	must(tar_write_end(&beside) == 0);
	check_int(take(&t, STATE_FS_MKDIR, "/top", ""), 0);
	check_int(take(&t, STATE_FS_UNPACK, "/top/", ref), 0);
	check_z(contents(&t, "/top/d/f"), "text");
	check_z(contents(&t, "/top/d/g"), "text");
	check_int(find(&t, "/top/d/g")->mode, 0750);
	check_z(contents(&t, "/top/d/none"), "(not known)");
	check_z(contents(&t, "/top/d/l"), "../..");
	check_type(&t, "/top/fifo", "other");
	check_type(&t, "/out", "unknown");
	check_type(&t, "/top/d/up", "unknown");
	check(find(&t, "/top")->mode == STATE_NO_MODE);
	set_beside(
		STR("no archive at all, and long enough for one block of it, which an archive "
		    "has, whatever else is in it; so this goes on and on. so this goes on and "
		    "on. so this goes on and on. so this goes on and on. so this goes on and on. "
		    "so this goes on and on. so this goes on and on. so this goes on and on. so "
		    "this goes on and on. so this goes on and on. so this goes on and on. so this "
		    "goes on and on. so this goes on and on. so this goes on and on. so this."));
	check_int(take(&t, STATE_FS_UNPACK, "/top", ref), -E_CORRUPT);
	set_beside(STR(""));
	check_int(take(&t, STATE_FS_UNPACK, "/top", ref), -E_CORRUPT);
	tree_done(&t);
	check(t.n == 0 && t.names == 0 && t.kept == 0);
}

static void with_a_failure(void)
{
	struct tree t;
	int r;

	tree_init(&t, NULL, NULL);
	t.max_file = 4;
	t.sums = true;
	r = take(&t, STATE_FS_WRITE, "/a/b/c", "1");
	if (r == 0)
		r = take(&t, STATE_FS_APPEND, "/a/b/c", "2345");
	if (r == 0)
		r = take(&t, STATE_FS_WRITE, "/x/y", "1");
	if (r == 0)
		r = take(&t, STATE_FS_RENAME, "/a", "/x");
	if (r == 0)
		r = take(&t, STATE_FS_DELETE, "/x/b", "");
	if (torture_failed ? r != 0 && r != -E_NO_MEMORY : r != 0)
		tap_fail("answer %d", r);
	tree_done(&t);
	check(t.n == 0 && t.names == 0 && t.kept == 0);
}

static void each_allocation_fails(void)
{
	torture(with_a_failure);
}

static bool is_d(const struct tree_node *n)
{
	return str_eq(tree_name(n), STR("d"));
}

/* What a whole look did not find is not there, except where it could not look. */
static void a_directory_that_was_seen_whole(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_(tree_donep) struct tree t;
	struct tree_path top;

	tree_init(&t, open_beside, NULL);
	must(tree_path_make(&top, STR("/w")));
	must(take(&t, STATE_FS_MKDIR, "/w/d", "") == 0 &&
		take(&t, STATE_FS_MKDIR, "/w/e", "") == 0);
	must(take(&t, STATE_FS_WRITE, "/w/on/the/way", "x") == 0);
	must(take(&t, STATE_FS_CHMOD, "/w/closed", "") == 0);
	check_int(tree_close(&t, &top, is_d, &err), 0);
	check_type(&t, "/w/a", "gone");
	check_type(&t, "/w/e/a/b", "gone");
	check_type(&t, "/w/d/a", "unknown");
	check_type(&t, "/w/on/the", "directory");
	check_type(&t, "/w/closed", "unknown");
	check_type(&t, "/w", "unknown");
	check_type(&t, "/a", "unknown");
	must(take(&t, STATE_FS_WRITE, "/w/new/a", "x") == 0);
	check_type(&t, "/w/new", "directory");
	check_type(&t, "/w/new/b", "gone");
}

static void skip(struct tree *t, uint64_t number)
{
	_cleanup_json_ json_t *args = json_pack("{s:s, s:i}", "path", "/f", "size", 7);
	struct state_op op = {.kind = STATE_FS_SKIP, .args = args, .number = number};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct tree_node *n;

	check_int(tree_take_skip(t, &op, &n, &err), 0);
	check(n == find(t, "/f"));
}

static void contents_that_are_not_on_record(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_(tree_donep) struct tree a, b;

	tree_init(&a, open_beside, NULL);
	tree_init(&b, open_beside, NULL);
	must(take(&a, STATE_FS_WRITE, "/f", "x") == 0);
	skip(&a, 5);
	skip(&b, 5);
	check_type(&a, "/f", "file");
	check_z(contents(&a, "/f"), "(not known)");
	check_int(tree_is_same(&a, find(&a, "/f"), find(&b, "/f"), &err), 1);
	skip(&b, 6);
	check_int(tree_is_same(&a, find(&a, "/f"), find(&b, "/f"), &err), 0);
	must(take(&b, STATE_FS_WRITE, "/f", "x") == 0);
	check_z(contents(&b, "/f"), "x");
}

int main(void)
{
	run_test(one_form_of_a_path);
	run_test(each_operation);
	run_test(relative_paths_are_apart);
	run_test(impossible_renames);
	run_test(deep_trees);
	run_test(many_operations);
	run_test(too_many_names);
	run_test(digests);
	run_test(only_what_is_wanted);
	run_test(archives);
	run_test(each_allocation_fails);
	buf_done(&beside);
	run_test(a_directory_that_was_seen_whole);
	run_test(contents_that_are_not_on_record);
	return tap_done();
}
