/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "fs/fsbroad.h"
#include "tap.h"
#include "torture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDINARY = 7, SPECIAL = 8, SOMEBODY = 65534 };

static const struct fsbroad_item ordinary = {.place = ORDINARY}, special = {.place = SPECIAL};
static char top[TAP_DIR_BYTES];
static int top_fd;

static struct fsbroad_bounds bounds(size_t dirs, size_t entries, unsigned depth)
{
	return (struct fsbroad_bounds){
		.dirs = dirs, .entries = entries, .depth = depth, .ordinary = ORDINARY};
}

static void make_file(const char *path)
{
	int fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	must(fd >= 0);
	close(fd);
}

/* Walk through everything. The directories that are opened are told as "path(", one that is not as
 * "!path"; a name that begins with "s" is a special place. */
static int walk(const struct fsbroad_bounds *max, struct buf *out, struct fsbroad *w)
{
	struct fsbroad_entry e;
	struct fsbroad_item item;
	struct stat st;
	int fd, r = fsbroad_init(w, top_fd, max, &ordinary);

	while (r == 0 && fsbroad_next(w, &item, &fd, &st)) {
		r = buf_printf(out, fd >= 0 ? "%s( " : "!%s ", item.path);
		while (r == 0 && fd >= 0 && fsbroad_read(w, fd, &e)) {
			check(strcmp(e.name, "secret") != 0);
			if (e.type == DT_DIR)
				r = fsbroad_push(
					w, &item, e.name, e.name[0] == 's' ? &special : &ordinary);
		}
		fd_close(fd);
		fsbroad_leave(&item);
	}
	fsbroad_done(w);
	return r;
}

static void expect(const struct fsbroad_bounds *max, const char *want, bool cut)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct fsbroad w;

	check_int(walk(max, &out, &w), 0);
	check_str(buf_str(&out), want);
	check(w.cut == cut);
}

static void what_is_near_the_top_is_met_first(void)
{
	const struct fsbroad_bounds all = bounds(100, 100, 100), flat = bounds(100, 100, 1);

	must(mkdirat(top_fd, "a", 0700) == 0 && mkdirat(top_fd, "a/b", 0700) == 0 &&
		mkdirat(top_fd, "a/b/c", 0700) == 0);
	make_file("a/file");
	expect(&all, "( a( a/b( a/b/c( ", false);
	must(mkdirat(top_fd, "a/b/c/b", 0700) == 0);
	must(renameat(top_fd, "a/b/c/b", top_fd, "b") == 0);
	must(mkdirat(top_fd, "b/d", 0700) == 0);
	expect(&flat, "( b( a( ", true);
	must(renameat(top_fd, "b", top_fd, "a/b/c/b") == 0);
	expect(&all, "( a( a/b( a/b/c( a/b/c/b( a/b/c/b/d( ", false);
	check_int(fs_remove_tree(top_fd, "a"), 0);
}

static void bounds_hold(void)
{
	const struct fsbroad_bounds few_dirs = bounds(2, 100, 100), few = bounds(100, 1, 100);
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct fsbroad w;

	must(mkdirat(top_fd, "a", 0700) == 0 && mkdirat(top_fd, "a/b", 0700) == 0 &&
		mkdirat(top_fd, "a/b/s", 0700) == 0 && mkdirat(top_fd, "a/b/s/d", 0700) == 0);
	expect(&few_dirs, "( a( ", true);
	/* The top may have ten times as many. */
	for (int i = 0; i < 9; i++)
		make_file((char[]){'f', (char)('0' + i), '\0'});
	check_int(walk(&few, &out, &w), 0);
	check(w.cut && w.entries == 10);
	check_int(fs_remove_tree(top_fd, "a"), 0);
	for (int i = 0; i < 9; i++)
		must(unlinkat(top_fd, (char[]){'f', (char)('0' + i), '\0'}, 0) == 0);
}

static void paths_are_bounded(void)
{
	const struct fsbroad_bounds max = bounds(500000, 1, 128);
	char path[PATH_MAX - 8];
	struct fsbroad_item in = {.path = path}, item;
	struct fsbroad w;
	struct stat st;
	size_t held, n;
	int fd;

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	must(fsbroad_init(&w, -1, &max, &ordinary) == 0);
	while (!w.cut)
		must(fsbroad_push(&w, &in, "b", &ordinary) == 0);
	check(w.paths >= FSBROAD_MAX_PATHS && w.paths < FSBROAD_MAX_PATHS + PATH_MAX);
	/* A special place is entered even so, up to twice as much. */
	n = w.n;
	w.cut = false;
	must(fsbroad_push(&w, &in, "b", &special) == 0);
	check(!w.cut && w.n == n + 1);
	while (!w.cut)
		must(fsbroad_push(&w, &in, "b", &special) == 0);
	check(w.paths >= 2 * FSBROAD_MAX_PATHS && w.paths < 2 * FSBROAD_MAX_PATHS + PATH_MAX);
	/* What was opened counts no more. */
	held = w.paths;
	check(fsbroad_next(&w, &item, &fd, &st) && fd < 0 && w.paths == held - 1);
	fsbroad_leave(&item);
	check(fsbroad_next(&w, &item, &fd, &st) && w.paths == held - 1 - (sizeof(path) + 2));
	fsbroad_leave(&item);
	fsbroad_done(&w);
}

/* A tree that is deeper than any path is cut. */
static void deeper_than_a_path(void)
{
	const struct fsbroad_bounds max = bounds(100000, 100000, 100000);
	_cleanup_(buf_donep) struct buf out = BUF_INIT(64 << 20);
	int at = dup(top_fd), next;
	struct fsbroad w;
	char name[256];

	memset(name, '\n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 2 * PATH_MAX / (int)sizeof(name); i++) {
		must(mkdirat(at, name, 0700) == 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	check_int(walk(&max, &out, &w), 0);
	check(w.cut);
	/* With the top. */
	check_int((int)w.n, 1 + PATH_MAX / (int)sizeof(name));
	check_int(fs_remove_tree(top_fd, name), 0);
}

/* Somebody exchanges a directory and a link that leads out all the time. */
static void what_is_exchanged_is_not_followed(void)
{
	const struct fsbroad_bounds max = bounds(100, 100, 100);
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct fsbroad w;
	int all = top_fd;
	pid_t pid;

	must(mkdirat(top_fd, "t", 0700) == 0 && mkdirat(top_fd, "o", 0700) == 0 &&
		mkdirat(top_fd, "t/d", 0700) == 0 && mkdirat(top_fd, "t/d/in", 0700) == 0 &&
		symlinkat("../../o", top_fd, "t/link") == 0);
	make_file("o/secret");
	pid = tap_exchange(top_fd, "t/d", "t/link");
	/* The link leads out of the tree that is walked. */
	top_fd = openat(all, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0);
	for (int i = 0; i < 2000; i++) {
		check_int(walk(&max, &out, &w), 0);
		buf_clear(&out);
	}
	tap_exchange_end(pid);
	close(top_fd);
	top_fd = all;
	check_int(fs_remove_tree(top_fd, "t"), 0);
	check_int(fs_remove_tree(top_fd, "o"), 0);
}

/* As somebody whom modes hold up. */
static int closed(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct fsbroad_bounds max = bounds(100, 100, 100);
	struct fsbroad w;
	struct stat st;

	if (mkdirat(top_fd, "t", 0700) < 0 || mkdirat(top_fd, "t/in", 0700) < 0 ||
		fchmodat(top_fd, "t/in", 0, 0) < 0 || fchmodat(top_fd, "t", 0, 0) < 0)
		return 2;
	if (walk(&max, &out, &w) != 0 || !str_eq(buf_str(&out), STR("( !t ")))
		return 3;
	buf_clear(&out);
	max.opens = true;
	if (walk(&max, &out, &w) != 0 || !str_eq(buf_str(&out), STR("( t( t/in( ")))
		return 4;
	if (fstatat(top_fd, "t", &st, 0) < 0 || (st.st_mode & 07777) != 0 ||
		fchmodat(top_fd, "t", 0700, 0) < 0)
		return 5;
	return fstatat(top_fd, "t/in", &st, 0) < 0 || (st.st_mode & 07777) != 0 ? 6 : 0;
}

static void closed_directories(void)
{
	int status;
	pid_t pid;

	must(fchmod(top_fd, 0777) == 0);
	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (pid == 0)
		_exit(geteuid() == 0 && setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ? 1 : closed());
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	check_int(fs_remove_tree(top_fd, "t"), 0);
}

static void walk_all(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	const struct fsbroad_bounds max = bounds(100, 100, 100);
	struct fsbroad w;
	int r = walk(&max, &out, &w);

	check_int(r, torture_failed ? -ENOMEM : 0);
}

static void survives_lack_of_memory(void)
{
	must(mkdirat(top_fd, "a", 0700) == 0 && mkdirat(top_fd, "a/b", 0700) == 0);
	torture(walk_all);
	check_int(fs_remove_tree(top_fd, "a"), 0);
}

int main(void)
{
	tap_fast_dir(top);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0);
	run_test(what_is_near_the_top_is_met_first);
	run_test(bounds_hold);
	run_test(paths_are_bounded);
	run_test(deeper_than_a_path);
	run_test(what_is_exchanged_is_not_followed);
	run_test(closed_directories);
	run_test(survives_lack_of_memory);
	close(top_fd);
	check_int(fs_remove_tree(AT_FDCWD, top), 0);
	return tap_done();
}
