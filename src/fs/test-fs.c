/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES]; /* a private directory of this test */
static int top_fd;

static void set_up(void)
{
	tap_fast_dir(top);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0);
}

static void tear_down(void)
{
	must(fs_remove_tree(AT_FDCWD, top) == 0);
	close(top_fd);
}

static unsigned count_entries(void)
{
	unsigned n = 0;
	char name[32];

	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		n += faccessat(top_fd, name, F_OK, 0) == 0;
	}
	return n;
}

static void writes_and_reads(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct buf b = BUF_INIT(100);
	struct stat st;

	check_int(fs_write_atomic(top_fd, "f0", STR("one"), 0600, true, &err), 0);
	check_int(fs_write_atomic(top_fd, "f0", STR("two\0x"), 0640, false, &err), 0);
	check_int(fd_read_file(top_fd, "f0", &b, &err), 0);
	check(str_eq(buf_str(&b), STR("two\0x")));
	check_int(fstatat(top_fd, "f0", &st, 0), 0);
	check_int(st.st_mode & 07777, 0640);
	buf_done(&b);
	check_int(count_entries(), 1);
	check_int(fs_remove_tree(top_fd, "f0"), 0);
}

static void a_failed_write_leaves_nothing(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(mkdirat(top_fd, "f2", 0700), 0);
	check_int(mkdirat(top_fd, "f2/in", 0700), 0);
	check_int(fs_write_atomic(top_fd, "no/such", STR(""), 0600, false, &err), -E_SYSTEM);
	check_int(fs_write_atomic(top_fd, "f2", STR("x"), 0600, false, &err), -E_SYSTEM);
	check_int(faccessat(top_fd, "f2/in", F_OK, 0), 0);
	check_int(fs_remove_tree(top_fd, "f2"), 0);
	check_int(count_entries(), 0);
}

static void makes_directories(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	char *deep = fs_join(top, "a/b//c"), *file = fs_join(top, "a/file"), *below;
	struct stat st;

	check_int(fs_mkdirs(deep, 0700, &err), 0);
	check_int(fs_mkdirs(deep, 0700, &err), 0);
	check_int(stat(deep, &st), 0);
	check_int(st.st_mode & 07777, 0700);
	check_int(fs_write_atomic(AT_FDCWD, file, STR("x"), 0600, false, &err), 0);
	below = fs_join(file, "dir");
	check_int(fs_mkdirs(below, 0700, &err), -E_SYSTEM);
	free(deep);
	free(file);
	free(below);
}

static void private_means_private(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	char *dir = fs_join(top, "private"), *link = fs_join(top, "link");
	int fd = fs_open_private_dir(dir, &err);

	check(fd >= 0);
	fd_close(fd);
	check_int(chmod(dir, 0770), 0);
	check_int(fs_open_private_dir(dir, &err), -E_DENIED);
	check_int(chmod(dir, 0700), 0);
	check_int(symlink(dir, link), 0);
	check_int(fs_open_private_dir(link, &err), -E_SYSTEM);
	if (geteuid() == 0) {
		check_int(chown(dir, 12345, 12345), 0);
		check_int(fs_open_private_dir(dir, &err), -E_DENIED);
	}
	free(dir);
	free(link);
}

static void within(void)
{
	char one[] = "/x", two[] = "/a/b", *dirs[] = {one, two, NULL};

	check(fs_is_within_any("/a/b/c", dirs));
	check(!fs_is_within_any("/a/bc", dirs));
	check(!fs_is_within_any("/a", NULL));
	check(fs_is_within("/a/b", "/a/b"));
	check(fs_is_within("/a/b/c", "/a/b"));
	check(!fs_is_within("/a/bc", "/a/b"));
	check(!fs_is_within("/a", "/a/b"));
	check(fs_is_within("/", "/"));
	check(fs_is_within("/a", "/"));
	check(!fs_is_within("/", "/a"));
	check(fs_is_within("/a/b", "/a/b/"));
	check(fs_is_within("/a/b/", "/a/b"));
	check(fs_is_within("/a//b/c", "//a/b"));
	check(!fs_is_within("/a/b/../c", "/a/c"));
	check(fs_is_within("a/b", "a"));
	check(!fs_is_within("a/b", "/"));
	check(!fs_is_within("/a/b", "a"));
	check_str(str_from(fs_below("/a/b/c", "/a/")), "b/c");
	check_str(str_from(fs_below("/a//b", "/a")), "b");
	check_str(str_from(fs_below("/a/b", "/")), "a/b");
	check_str(str_from(fs_below("/a/", "/a")), "");
	check(fs_below("/a/bc", "/a/b") == NULL);
}

static void renaming_replaces_nothing(void)
{
	check_int(mkdirat(top_fd, "one", 0700), 0);
	check_int(mkdirat(top_fd, "two", 0700), 0);
	check_int(fs_rename_new(top_fd, "one", "two"), -EEXIST);
	check_int(fs_rename_new(top_fd, "one", "three"), 0);
	check_int(fs_rename_new(top_fd, "one", "four"), -ENOENT);
	check_int(fs_remove_tree(top_fd, "two"), 0);
	check_int(fs_remove_tree(top_fd, "three"), 0);
}

static void lists_all_but_dots(void)
{
	_cleanup_(fs_list_closep) DIR *none = fs_list(top_fd, "nothing"), *list = NULL;
	unsigned n = 0;

	check(!none && errno == ENOENT);
	must(mkdirat(top_fd, "listed", 0700) == 0 && mkdirat(top_fd, "listed/..a", 0700) == 0 &&
		mkdirat(top_fd, "listed/.b", 0700) == 0 && symlinkat(".", top_fd, "linked") == 0);
	check(!fs_list(top_fd, "linked"));
	list = fs_list(top_fd, "listed");
	must(list != NULL);
	while (fs_list_next(list))
		n++;
	check_int(errno, 0);
	check_int(n, 2);
	check_int(fs_remove_tree(top_fd, "listed"), 0);
	check_int(fs_remove_tree(top_fd, "linked"), 0);
}

static void removal_follows_no_link(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	check_int(mkdirat(top_fd, "victim", 0700), 0);
	check_int(fs_write_atomic(top_fd, "victim/f", STR("x"), 0600, false, &err), 0);
	check_int(mkdirat(top_fd, "tree", 0700), 0);
	check_int(mkdirat(top_fd, "tree/sub", 0700), 0);
	check_int(symlinkat("../victim", top_fd, "tree/to-dir"), 0);
	check_int(symlinkat("../../victim/f", top_fd, "tree/sub/to-file"), 0);
	check_int(symlinkat("nowhere", top_fd, "tree/dangling"), 0);
	check_int(fs_remove_tree(top_fd, "tree"), 0);
	check_int(faccessat(top_fd, "tree", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	check_int(faccessat(top_fd, "victim/f", F_OK, 0), 0);
	check_int(fs_remove_tree(top_fd, "tree"), 0);
}

/* Make directories below each other; the one at `closed` (if it is there) gets a mode. */
static void make_levels(const char *name, int levels, int closed, mode_t mode)
{
	int at = dup(top_fd), next, set = -1;

	for (int i = 1; i <= levels && at >= 0; i++) {
		must(mkdirat(at, name, 0700) == 0 && symlinkat("x", at, "leaf") == 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(next >= 0);
		if (i == closed)
			set = dup(next);
		close(at);
		at = next;
	}
	close(at);
	must(set < 0 || (fchmod(set, mode) == 0 && close(set) == 0));
	must(unlinkat(top_fd, "leaf", 0) == 0);
}

/* Each level is a directory that a room can make, whatever we can open at once. */
static void removal_goes_to_any_depth(void)
{
	struct rlimit before, few;

	make_levels("level", 1500, 0, 0);
	must(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){32, before.rlim_max};
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	check_int(fs_remove_tree(top_fd, "level"), 0);
	must(setrlimit(RLIMIT_NOFILE, &before) == 0);
	check_int(faccessat(top_fd, "level", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

/* In a directory like /tmp, what belongs to others stays, and its path is told. */
static int leave_others(void)
{
	_cleanup_(buf_donep) struct buf where = BUF_INIT(100);
	const struct fs_removal how = {.where = &where};

	if (setresuid(65534, 65534, 65534) < 0)
		return 1;
	if (fs_remove(top_fd, "shared/tmp/a/f", &how) != -EPERM || buf_len(&where) > 0)
		return 2;
	if (fs_remove(top_fd, "shared/tmp", &how) != -EPERM || !str_eq(buf_str(&where), STR("a/f")))
		return 3;
	return 0;
}

static void the_files_of_others_stay(void)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		return;
	must(fchmod(top_fd, 0755) == 0 && mkdirat(top_fd, "shared", 0700) == 0 &&
		mkdirat(top_fd, "shared/tmp", 0700) == 0 &&
		mkdirat(top_fd, "shared/tmp/a", 0700) == 0);
	must(fchmodat(top_fd, "shared", 0777, 0) == 0 &&
		fchmodat(top_fd, "shared/tmp", 0777, 0) == 0 &&
		fchmodat(top_fd, "shared/tmp/a", 01777, 0) == 0);
	must(mknodat(top_fd, "shared/tmp/a/f", S_IFREG | 0666, 0) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		_exit(leave_others());
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	check_int(faccessat(top_fd, "shared/tmp/a/f", F_OK, 0), 0);
	check_int(fs_remove_tree(top_fd, "shared"), 0);
	check_int(fs_remove(top_fd, "shared", &(struct fs_removal){0}), -ENOENT);
}

static int end_early(void *user)
{
	return --*(int *)user < 0 ? -ECANCELED : 0;
}

static void removal_can_be_ended(void)
{
	int beats = 2;
	const struct fs_removal how = {.beat = end_early, .user = &beats};

	must(mkdirat(top_fd, "tree", 0700) == 0 && mkdirat(top_fd, "tree/1", 0700) == 0 &&
		mkdirat(top_fd, "tree/2", 0700) == 0 && mkdirat(top_fd, "tree/3", 0700) == 0);
	check_int(fs_remove(top_fd, "tree", &how), -ECANCELED);
	check_int(faccessat(top_fd, "tree", F_OK, 0), 0);
	beats = 1;
	check_int(fs_remove(top_fd, "tree", &how), 0);
}

/* In "free": return 0 if deep trees with a closed directory were removed. */
static int remove_closed_deep(void)
{
	top_fd = openat(top_fd, "free", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int depth = 190; depth < 200; depth++) {
		make_levels("deep", 200, depth, 0);
		make_levels("empty", depth, depth, 0555);
		if (fs_remove_tree(top_fd, "deep") < 0)
			return 5;
		if (fs_remove(top_fd, "empty", &(struct fs_removal){0}) < 0)
			return 6;
	}
	make_levels("deep", 1500, 1400, 0);
	if (fs_remove_tree(top_fd, "deep") < 0)
		return 7;
	return 0;
}

/* Return 0 if a tree with closed directories was removed, and nothing else was opened. */
static int remove_closed(void)
{
	struct stat st;

	if (mkdirat(top_fd, "free/victim", 0700) < 0 || mkdirat(top_fd, "free/tree", 0700) < 0 ||
		mkdirat(top_fd, "free/tree/read", 0700) < 0 ||
		mkdirat(top_fd, "free/tree/read/in", 0700) < 0 ||
		mkdirat(top_fd, "free/tree/none", 0700) < 0 ||
		mkdirat(top_fd, "free/tree/none/in", 0700) < 0 ||
		symlinkat("../../victim", top_fd, "free/tree/read/in/link") < 0 ||
		symlinkat("../../victim", top_fd, "free/tree/none/in/link") < 0)
		return 1;
	if (fchmodat(top_fd, "free/victim", 0555, 0) < 0 ||
		fchmodat(top_fd, "free/tree/read/in", 0555, 0) < 0 ||
		fchmodat(top_fd, "free/tree/read", 0555, 0) < 0 ||
		fchmodat(top_fd, "free/tree/none/in", 0, 0) < 0 ||
		fchmodat(top_fd, "free/tree/none", 0, 0) < 0)
		return 2;
	if (fs_remove_tree(top_fd, "free/tree") != 0 ||
		faccessat(top_fd, "free/tree", F_OK, 0) == 0)
		return 3;
	if (fstatat(top_fd, "free/victim", &st, 0) < 0 || (st.st_mode & 07777) != 0555)
		return 4;
	return remove_closed_deep();
}

/* Such as those of Go's modules. */
static void closed_directories_are_removed(void)
{
	enum { SOMEBODY = 65534 };
	int status;
	pid_t pid;

	must(fchmod(top_fd, 0711) == 0 && mkdirat(top_fd, "free", 0700) == 0);
	must(geteuid() != 0 || fchownat(top_fd, "free", SOMEBODY, SOMEBODY, 0) == 0);
	pid = fork();
	must(pid >= 0);
	/* Modes do not hold root up. */
	if (pid == 0)
		_exit(geteuid() == 0 && setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0
				? 9
				: remove_closed());
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	check_int(fs_remove_tree(top_fd, "free"), 0);
}

static void joins_in_a_buffer(void)
{
	char ret[6];

	check(fs_join_in(ret, sizeof(ret), "ab", "cd") == 0 && strcmp(ret, "ab/cd") == 0);
	check(fs_join_in(ret, sizeof(ret), "", "abcde") == 0 && strcmp(ret, "abcde") == 0);
	check(fs_join_in(ret, sizeof(ret), "ab", "") == 0 && strcmp(ret, "ab") == 0);
	check_int(fs_join_in(ret, sizeof(ret), "abc", "de"), -ENAMETOOLONG);
}

static void joins(void)
{
	static const struct {
		const char *a, *b, *want;
	} table[] = {
		{"/a", "b", "/a/b"},
		{"/a/", "b", "/a/b"},
		{"/", "b", "/b"},
		{"", "b", "/b"},
		{"/a", "/b", "/b"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char *got = fs_join(table[i].a, table[i].b);

		check_z(got, table[i].want);
		free(got);
	}
}

static void write_read_and_make(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct buf b = BUF_INIT(100);
	char *path = fs_join(top, "t/u");
	int r;

	r = fs_write_atomic(top_fd, "t-file", STR("text"), 0600, false, &err);
	check_int(r, r < 0 ? -E_NO_MEMORY : 0);
	if (r == 0) {
		r = fd_read_file(top_fd, "t-file", &b, &err);
		check_int(r, r < 0 ? -E_NO_MEMORY : 0);
	}
	if (path) {
		r = fs_mkdirs(path, 0700, &err);
		check_int(r, r < 0 ? -E_NO_MEMORY : 0);
	}
	buf_done(&b);
	free(path);
}

static void absolutes(void)
{
	static const struct {
		const char *path, *want;
	} table[] = {{"/", "/"}, {"//", "/"}, {"/./.", "/"}, {"/a", "/a"},
		{"//a//b/./c/", "/a/b/c"}, {"/a/../b", "/a/../b"}, {"/.a/b.", "/.a/b."}};
	_cleanup_(freep) char *cwd = getcwd(NULL, 0), *want = fs_join(cwd, "x/y");
	_cleanup_(freep) char *here = fs_absolute("."), *below = fs_absolute("./x//./y/");

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(freep) char *got = fs_absolute(table[i].path);

		check_str(str_from(got), table[i].want);
	}
	check_str(str_from(here), cwd);
	check_str(str_from(below), want);
}

static void lexical_paths(void)
{
	static const struct {
		const char *path, *want;
	} table[] = {{"/", "/"}, {"/..", "/"}, {"/a/..", "/"}, {"/a/../..//../b", "/b"},
		{"/a/b/../c/.", "/a/c"}, {"/a//../b", "/b"}, {"/a/b/c/../../d/..e", "/a/d/..e"},
		{"/a/.../b", "/a/.../b"}};
	_cleanup_(freep) char *cwd = getcwd(NULL, 0), *got = fs_lexical("x/../y"),
			      *want = fs_join(cwd, "y");

	check_str(str_from(got), want);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(freep) char *one = fs_lexical(table[i].path);

		check_str(str_from(one), table[i].want);
	}
}

static void resolves_by_the_text(void)
{
	static const struct {
		const char *dir, *path, *want; /* NULL: it leads above the top */
	} table[] = {{"", "a", "a"}, {"a/b", "c", "a/b/c"}, {"a/b", "../c", "a/c"},
		{"a/b", "/c/./d//", "c/d"}, {"a", "..", ""}, {"a/b", "../..", ""},
		{"a/b", "../../..", NULL}, {"", "..", NULL}, {"a", "/..", NULL},
		{"a", "b/../..x/.", "a/..x"}};
	char got[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		check_int(fs_resolve(table[i].dir, table[i].path, got), table[i].want != NULL);
		if (table[i].want)
			check_z(got, table[i].want);
	}
}

/* Also of a file that may not be read. */
static void rights_are_stripped(void)
{
	_cleanup_fd_ int fd = openat(top_fd, "suid", O_RDWR | O_CREAT | O_CLOEXEC, 0600), path = -1;
	char at[PATH_MAX], want[PATH_MAX];
	struct stat st;

	must(fd >= 0 && fchmod(fd, 06311) == 0);
	path = openat(top_fd, "suid", O_PATH | O_CLOEXEC);
	check_int(fs_strip_rights(top_fd, "suid"), 0);
	must(fstat(fd, &st) == 0);
	check_int(st.st_mode & 07777, 0311);
	check_int(fd_chmod(path, 04755), 0);
	check_int(fs_strip_rights(path, ""), 0);
	must(fstat(fd, &st) == 0);
	check_int(st.st_mode & 07777, 0755);
	must(symlinkat("suid", top_fd, "to-suid") == 0 && fd_chmod(path, 04755) == 0);
	check_int(fs_strip_rights(top_fd, "to-suid"), 0);
	must(fstat(fd, &st) == 0);
	check_int(st.st_mode & 07777, 04755);
	snprintf(want, sizeof(want), "%s/suid", top);
	check_int(fd_path(path, at), 0);
	check_z(at, want);
	check_int(fd_path(-1, at), -ENOENT);
}

static void survives_lack_of_memory(void)
{
	torture(write_read_and_make);
}

int main(void)
{
	set_up();
	run_test(writes_and_reads);
	run_test(a_failed_write_leaves_nothing);
	run_test(makes_directories);
	run_test(private_means_private);
	run_test(within);
	run_test(renaming_replaces_nothing);
	run_test(lists_all_but_dots);
	run_test(removal_follows_no_link);
	run_test(removal_goes_to_any_depth);
	run_test(the_files_of_others_stay);
	run_test(removal_can_be_ended);
	run_test(closed_directories_are_removed);
	run_test(joins);
	run_test(joins_in_a_buffer);
	run_test(absolutes);
	run_test(lexical_paths);
	run_test(resolves_by_the_text);
	run_test(rights_are_stripped);
	run_test(survives_lack_of_memory);
	tear_down();
	return tap_done();
}
