/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "room/changes.h"
#include "room/layers.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static int at = -1;
static struct cloche_err err;

static void fresh(void)
{
	if (top[0])
		fs_remove_tree(AT_FDCWD, top);
	fd_close(at);
	tap_dir(top);
	at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(at >= 0 && mkdirat(at, "u", 0755) == 0 && mkdirat(at, "l", 0755) == 0);
}

static void put(const char *path, const char *text)
{
	must(fs_write_atomic(at, path, str_from(text), 0644, false, &err) == 0);
}

static void dir(const char *path, unsigned mode)
{
	must(mkdirat(at, path, 0700) == 0 && fchmodat(at, path, mode, 0) == 0);
}

static void whiteout(const char *path)
{
	must(mknodat(at, path, S_IFCHR, makedev(0, 0)) == 0);
}

static void opaque(const char *path)
{
	_cleanup_fd_ int fd = openat(at, path, O_RDONLY | O_DIRECTORY);

	must(fd >= 0 && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0);
}

/* Lines "K path" with odd bytes escaped. */
static int add_line(void *user, const struct room_change *c)
{
	struct buf *out = user;

	must(buf_printf(out, "%c ", c->kind) == 0);
	must(escape_log(out, c->path, 4096) == 0);
	must(buf_add_char(out, '\n') == 0);
	must(c->path.p[c->path.n] == '\0');
	return 0;
}

static int walk(struct buf *out)
{
	_cleanup_fd_ int upper = openat(at, "u", O_PATH | O_DIRECTORY);
	_cleanup_fd_ int lower = openat(at, "l", O_PATH | O_DIRECTORY);

	err_clear(&err);
	return changes_walk(upper, lower, add_line, out, &err);
}

static void expect(const char *lines)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);

	check_int(walk(&out), 0);
	check_str(buf_str(&out), lines);
}

static void nothing_changed(void)
{
	fresh();
	dir("l/etc", 0755);
	put("l/etc/a", "a");
	dir("u/etc", 0755);
	expect("");
}

static void added_changed_deleted(void)
{
	fresh();
	dir("l/etc", 0755);
	put("l/etc/a", "a");
	put("l/etc/b", "b");
	put("l/etc/c", "c");
	dir("u/etc", 0755);
	put("u/etc/a", "A");
	whiteout("u/etc/b");
	put("u/etc/d", "");
	dir("u/new", 0755);
	dir("u/new/below", 0755);
	put("u/new/below/x", "x");
	put("u/z", "z");
	expect("C /etc\nC /etc/a\nD /etc/b\nA /etc/d\nA /new\nA /new/below\nA /new/below/x\nA "
	       "/z\n");
}

static void a_parent_is_said_once_and_first(void)
{
	fresh();
	dir("l/a", 0755);
	dir("l/a/b", 0755);
	dir("l/a/c", 0755);
	dir("u/a", 0755);
	dir("u/a/b", 0755);
	put("u/a/b/x", "x");
	put("u/a/b/y", "y");
	dir("u/a/c", 0755);
	put("u/a/z", "z");
	expect("C /a\nC /a/b\nA /a/b/x\nA /a/b/y\nA /a/z\n");
}

/* Copied up, but written as it was, or only touched. */
static void equal_content_is_no_change(void)
{
	fresh();
	put("l/same", "text");
	put("l/longer", "text");
	put("l/mode", "text");
	must(symlinkat("to", at, "l/link") == 0 && symlinkat("to", at, "u/link") == 0);
	must(symlinkat("to", at, "l/other") == 0 && symlinkat("ot", at, "u/other") == 0);
	put("u/same", "text");
	put("u/longer", "texts");
	put("u/mode", "text");
	must(fchmodat(at, "u/mode", 0600, 0) == 0);
	expect("C /longer\nC /mode\nC /other\n");
}

static void another_type_is_a_change(void)
{
	fresh();
	put("l/file", "x");
	dir("l/dir", 0755);
	put("l/dir/in", "x");
	dir("l/gone", 0755);
	put("l/gone/in", "x");
	dir("u/file", 0755);
	put("u/file/in", "x");
	put("u/dir", "x");
	must(mkfifoat(at, "u/fifo", 0600) == 0);
	whiteout("u/gone");
	/* Of nothing: was made and deleted again. */
	whiteout("u/never");
	expect("C /dir\nA /fifo\nC /file\nA /file/in\nD /gone\n");
}

static void opaque_directory_hides_what_lies_below(void)
{
	fresh();
	dir("l/d", 0755);
	put("l/d/old", "x");
	put("l/d/same", "x");
	put("l/d/written", "x");
	dir("u/d", 0755);
	opaque("u/d");
	put("u/d/new", "x");
	put("u/d/same", "x");
	put("u/d/written", "y");
	expect("C /d\nA /d/new\nD /d/old\nC /d/written\n");
}

static void odd_names(void)
{
	fresh();
	put("u/line\nbreak", "x");
	put("u/bro\xffken \x1b[2J", "x");
	put("u/-rf", "x");
	expect("A /-rf\nA /bro%FFken%20%1B%5B2J\nA /line%0Abreak\n");
}

/* Links are never followed: not in the place of a directory, nor of a file. */
static void links_are_not_followed(void)
{
	fresh();
	dir("outside", 0755);
	put("outside/x", "x");
	dir("l/d", 0755);
	put("l/f", "x");
	must(symlinkat("../outside", at, "u/d") == 0);
	must(symlinkat("../outside/x", at, "u/f") == 0);
	must(symlinkat("../outside", at, "u/new") == 0);
	expect("C /d\nC /f\nA /new\n");
}

static void what_is_mounted_over_is_left_out(void)
{
	fresh();
	dir("u/dev", 0755);
	dir("u/tmp", 0755);
	put("u/tmp/x", "x");
	dir("l/etc", 0755);
	dir("u/etc", 0755);
	put("u/etc/hosts", "x");
	dir("u/tmpx", 0755);
	expect("A /tmpx\n");
}

/* The place of the host's /usr: compared with that. */
static void hosts_directory(void)
{
	fresh();
	dir("l/usr", LAYERS_COVERED);
	dir("u/usr", 0755);
	dir("u/usr/bin", 0755);
	dir("u/usr/local", 0755);
	put("u/usr/bin/no-such-program", "x");
	whiteout("u/usr/bin/env");
	expect("C /usr\nC /usr/bin\nD /usr/bin/env\nA /usr/bin/no-such-program\n");
}

/* A directory as root may hold what looks like such a place; only the system's are ever looked up.
 */
static void no_other_directory_of_the_host(void)
{
	fresh();
	dir("l/tmp", LAYERS_COVERED);
	dir("l/home", LAYERS_COVERED);
	dir("u/home", 0755);
	put("u/home/x", "x");
	expect("C /home\nA /home/x\n");
}

static void make_deep(int levels)
{
	_cleanup_fd_ int deep = openat(at, "u", O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < levels; i++) {
		int next;

		must(mkdirat(deep, "dddddddddddd", 0755) == 0);
		next = openat(deep, "dddddddddddd", O_RDONLY | O_DIRECTORY);
		must(next >= 0);
		close(deep);
		deep = next;
	}
}

static void deep_trees_end(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 24);

	fresh();
	make_deep(CHANGES_MAX_DEPTH + 50);
	put("u/z", "z");
	check_int(walk(&out), -E_LIMIT);
	/* The rest is there. */
	check(str_ends(buf_str(&out), STR("A /z\n")));
}

/* However deep it is, few descriptors are needed. */
static void deep_trees_with_few_descriptors(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 24);
	struct rlimit before, few;

	fresh();
	make_deep(CHANGES_MAX_DEPTH - 1);
	must(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){64, before.rlim_max};
	must(setrlimit(RLIMIT_NOFILE, &few) == 0);
	check_int(walk(&out), 0);
	must(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* The room moves a directory away while the walk is deep in it: the rest is reported, and that this
 * is not all. */
static int move_when_deep(void *user, const struct room_change *c)
{
	unsigned slashes = 0;

	for (size_t i = 0; i < c->path.n; i++)
		slashes += c->path.p[i] == '/';
	if (slashes == 100)
		must(renameat(at, "u/dddddddddddd/dddddddddddd", at, "l/moved") == 0);
	return add_line(user, c);
}

static void a_moved_directory_is_said(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 24);
	_cleanup_fd_ int upper = -1, lower = -1;

	fresh();
	make_deep(150);
	put("u/dddddddddddd/z", "z");
	put("u/z", "z");
	put("l/y", "y");
	upper = openat(at, "u", O_PATH | O_DIRECTORY);
	lower = openat(at, "l", O_PATH | O_DIRECTORY);
	err_clear(&err);
	check_int(changes_walk(upper, lower, move_when_deep, &out, &err), -E_SYSTEM);
	check_z(err.message, "was moved meanwhile: /dddddddddddd/dddddddddddd");
	check(str_ends(buf_str(&out), STR("\nA /dddddddddddd/z\nA /z\n")));
}

/* A hidden name is deleted where its place in the order is, also after the last name. */
static void hidden_names_are_in_order(void)
{
	fresh();
	dir("l/d", 0755);
	put("l/d/a", "x");
	put("l/d/c", "x");
	put("l/d/e", "x");
	dir("l/d/d", 0755);
	dir("u/d", 0755);
	opaque("u/d");
	put("u/d/b", "x");
	dir("u/d/d", 0755);
	put("u/d/d/x", "x");
	put("u/f", "x");
	expect("C /d\nD /d/a\nA /d/b\nD /d/c\nC /d/d\nA /d/d/x\nD /d/e\nA /f\n");
}

static void unreadable_directory_is_said(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);

	if (geteuid() == 0) {
		printf("# root may read everything\n");
		return;
	}
	fresh();
	dir("u/closed", 0);
	put("u/z", "z");
	check_int(walk(&out), -E_SYSTEM);
	check_str(buf_str(&out), "A /closed\nA /z\n");
	must(fchmodat(at, "u/closed", 0700, 0) == 0);
}

static int end_at_once(void *user, const struct room_change *c)
{
	++*(int *)user;
	return 42;
}

static void the_caller_can_end_it(void)
{
	_cleanup_fd_ int upper = -1, lower = -1;
	int calls = 0;

	fresh();
	put("u/a", "a");
	put("u/b", "b");
	upper = openat(at, "u", O_PATH | O_DIRECTORY);
	lower = openat(at, "l", O_PATH | O_DIRECTORY);
	check_int(changes_walk(upper, lower, end_at_once, &calls, &err), 42);
	check_int(calls, 1);
}

int main(void)
{
	umask(022);
	run_test(nothing_changed);
	run_test(added_changed_deleted);
	run_test(a_parent_is_said_once_and_first);
	run_test(equal_content_is_no_change);
	run_test(another_type_is_a_change);
	run_test(opaque_directory_hides_what_lies_below);
	run_test(odd_names);
	run_test(links_are_not_followed);
	run_test(what_is_mounted_over_is_left_out);
	run_test(hosts_directory);
	run_test(no_other_directory_of_the_host);
	run_test(deep_trees_end);
	run_test(deep_trees_with_few_descriptors);
	run_test(a_moved_directory_is_said);
	run_test(hidden_names_are_in_order);
	run_test(unreadable_directory_is_said);
	run_test(the_caller_can_end_it);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
