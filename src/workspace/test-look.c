/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a look as a file, and words for people; what is found is tested with real rooms
 * (tests/integration/test-workspace, INV-NOTHING-PLANTED). */
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "tap.h"
#include "torture.h"
#include "workspace/look.h"
#include "workspace/told.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];

static int add_mount(struct look *l, const char *path, const char *target)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

	return look_add_mount(l, fd, path, target);
}

static int add_kept(struct look *l, const char *path, bool read_only)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return look_add_kept(l, fd, "", read_only);
}

static void test_plan(void)
{
	_cleanup_(look_donep) struct look l = {0}, back = {0};
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	char odd[128], file[160], other[128];

	snprintf(odd, sizeof(odd), "%s/a\nm\n b", dir);
	snprintf(file, sizeof(file), "%s/file", odd);
	must(mkdir(odd, 0700) == 0);
	must(fs_write_atomic(AT_FDCWD, file, STR("x"), 0600, false, NULL) == 0);
	look_begin(&l);
	l.init = 4711;
	l.start = 1ULL << 60;
	must(add_mount(&l, odd, "/work space") == 0);
	must(add_mount(&l, "/nowhere/at/all", "/x") == 0);
	must(add_kept(&l, file, true) == 0 && strv_add(&l.opened, STR("/a\nb")) == 0);
	must(look_write(&l, &b) == 0);
	check_int(look_read(&back, buf_str(&b)), 0);
	check(back.since.tv_sec == l.since.tv_sec && back.since.tv_nsec == l.since.tv_nsec);
	check(back.init == 4711 && back.start == 1ULL << 60);
	check(back.mounts_n == 1 && back.kept_n == 1);
	check(strcmp(back.mounts[0].source, odd) == 0 && back.mounts[0].fd >= 0);
	check(strcmp(back.mounts[0].target, "/work space") == 0);
	check(back.kept[0].inode == l.kept[0].inode && back.kept[0].read_only);
	check(!back.kept[0].linked);
	check(back.opened && strcmp(back.opened[0], "/a\nb") == 0);
	/* Cut anywhere it is no plan; but an empty one, and one of whole parts. */
	for (size_t n = 1; n < buf_len(&b); n++) {
		_cleanup_(look_donep) struct look part = {0};
		int r = look_read(&part, str_prefix(buf_str(&b), n));

		if (r != 0 && r != -EINVAL)
			tap_fail("%zu bytes: %d", n, r);
		if (r == 0 && buf_data(&b)[n - 1] != '\0')
			tap_fail("%zu bytes are a plan", n);
	}
	/* Another directory in its place is not looked through. */
	look_done(&back);
	snprintf(other, sizeof(other), "%s/other", dir);
	must(rename(odd, other) == 0 && mkdir(odd, 0700) == 0);
	check_int(look_read(&back, buf_str(&b)), 0);
	check(back.mounts_n == 1 && back.mounts[0].fd == -1);
}

/* Whether a file has another name is known before the room begins. */
static void test_other_names(void)
{
	_cleanup_(look_donep) struct look l = {0}, back = {0};
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	char top[96], below[128], file[160], other[128];

	snprintf(top, sizeof(top), "%s/hooks", dir);
	snprintf(below, sizeof(below), "%s/below", top);
	snprintf(file, sizeof(file), "%s/hook", below);
	snprintf(other, sizeof(other), "%s/copy", dir);
	must(mkdir(top, 0700) == 0 && mkdir(below, 0700) == 0);
	must(fs_write_atomic(AT_FDCWD, file, STR("x"), 0600, false, NULL) == 0);
	must(add_kept(&l, top, true) == 0 && add_kept(&l, file, true) == 0);
	check(!l.kept[0].linked && !l.kept[1].linked);
	must(link(file, other) == 0);
	must(add_kept(&l, top, true) == 0 && add_kept(&l, file, true) == 0);
	must(add_kept(&l, top, false) == 0);
	check(l.kept_n == 5 && l.kept[2].linked && l.kept[3].linked && !l.kept[4].linked);
	must(look_write(&l, &b) == 0);
	check_int(look_read(&back, buf_str(&b)), 0);
	for (size_t i = 0; i < l.kept_n; i++)
		check(back.kept[i].linked == l.kept[i].linked &&
			back.kept[i].read_only == l.kept[i].read_only);
}

/* The number of lines, if each is whole. */
static int lines(struct str text)
{
	int n = 0;

	for (; text.n; n++) {
		struct str line = str_prefix(text, str_chr(text, '\n'));

		check(str_starts(line, STR("{\"path\":")) && str_ends(line, STR("}")));
		text = str_from_index(text, line.n + 1);
	}
	return n;
}

/* An allocation fails; the other mount is looked through even so. */
static void look_without_memory(void)
{
	_cleanup_(look_donep) struct look l = {0};
	struct look_told told;
	char first[96], second[96];
	int r;

	snprintf(first, sizeof(first), "%s/first", dir);
	snprintf(second, sizeof(second), "%s/second", dir);
	r = add_mount(&l, first, "/a");
	if (r == 0)
		r = add_mount(&l, second, "/b");
	if (r == 0)
		r = add_kept(&l, first, true);
	if (r < 0) {
		check(torture_failed && r == -ENOMEM);
		return;
	}
	r = look_through(&l, &told);
	check(r == 0 || (torture_failed && r == -ENOMEM));
	check_int((int)told.told, lines(buf_str(&told.text)));
	check(r == 0 ? told.told == 2
		     : str_find(buf_str(&told.text), STR("not enough memory")) <
				buf_len(&told.text));
	buf_done(&told.text);
}

static void test_no_memory(void)
{
	char path[128];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, i ? "second" : "first");
		must(mkdir(path, 0700) == 0);
		snprintf(path, sizeof(path), "%s/%s/.bashrc", dir, i ? "second" : "first");
		must(fs_write_atomic(AT_FDCWD, path, STR("x"), 0600, false, NULL) == 0);
	}
	torture(look_without_memory);
}

static mode_t mode_of(const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/shut/%s", dir, name);
	must(lstat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void make(const char *name, mode_t mode, bool is_dir)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/shut/%s", dir, name);
	must(is_dir ? mkdir(path, 0700) == 0
		    : fs_write_atomic(AT_FDCWD, path, STR("x"), 0600, false, NULL) == 0);
	must(chmod(path, mode) == 0);
}

/* What a room has closed to its owner is looked at even so, and is as closed afterwards. */
static void test_closed(void)
{
	static const char *const dirs[] = {"none", "none/none", "list", "enter"};
	static const mode_t modes[] = {0, 0077, 0477, 0177};
	_cleanup_(look_donep) struct look l = {.every = true};
	struct look_told told;
	uid_t own = geteuid();
	char path[160];

	snprintf(path, sizeof(path), "%s/shut", dir);
	must(mkdir(path, 0777) == 0 && chmod(path, 0777) == 0 && chmod(dir, 0755) == 0);
	/* Root is shut out of nothing. */
	must(own != 0 || seteuid(1) == 0);
	look_begin(&l);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		make(dirs[i], 0700, true);
		snprintf(path, sizeof(path), "%s/suid", dirs[i]);
		make(path, 04755, false);
	}
	for (size_t i = ARRAY_SIZE(dirs); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/shut/%s", dir, dirs[i]);
		must(chmod(path, modes[i]) == 0);
	}
	snprintf(path, sizeof(path), "%s/shut", dir);
	must(add_mount(&l, path, "/x") == 0);
	check_int(look_through(&l, &told), 0);
	check_int((int)told.told, ARRAY_SIZE(dirs));
	buf_done(&told.text);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		check_int(mode_of(dirs[i]), modes[i]);
		snprintf(path, sizeof(path), "%s/shut/%s", dir, dirs[i]);
		must(chmod(path, 0700) == 0);
		snprintf(path, sizeof(path), "%s/suid", dirs[i]);
		check_int(mode_of(path), 0755);
	}
	must(own != 0 || seteuid(own) == 0);
}

static void test_quoting(void)
{
	static const struct {
		struct str path;
		const char *quoted;
	} cases[] = {{STR(""), "''"}, {STR("/a b"), "'/a b'"}, {STR("it's"), "'it'\\''s'"},
		{STR("\xc3\xa4\xe2\x82\xac"), "'\xc3\xa4\xe2\x82\xac'"},
		{STR("a\nb'c\\d"), "$'a\\012b\\'c\\\\d'"}, {STR("\x1b[2J"), "$'\\033[2J'"},
		{STR("\xff"
		     "1"),
			"$'\\3771'"},
		{STR("\xc2\x9b"), "$'\\302\\233'"}, {STR("\xe2\x80\xae"), "$'\\342\\200\\256'"},
		{STR("$(x)`y`"), "'$(x)`y`'"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

		must(told_quote(&b, cases[i].path) == 0);
		check_str(buf_str(&b), cases[i].quoted);
	}
}

static void test_told(void)
{
	struct look_told t = {.text = BUF_INIT(1 << 20)};

	for (int i = 0; i < LOOK_MAX_TOLD + 5; i++)
		must(told_add(&t, "/a", "x", NULL, NULL) == 0);
	must(told_always(&t, "/b", "y") == 0);
	check_int((int)t.told, LOOK_MAX_TOLD + 1);
	check_int((int)t.more, 5);
	check(str_starts(buf_str(&t.text),
		STR("{\"path\":\"/a\",\"quoted\":\"'/a'\",\"what\":\"x\",\"set_aside\":null,"
		    "\"restore\":null}\n")));
	buf_done(&t.text);
}

int main(void)
{
	tap_dir(dir);
	run_test(test_plan);
	run_test(test_other_names);
	run_test(test_no_memory);
	run_test(test_closed);
	run_test(test_quoting);
	run_test(test_told);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
