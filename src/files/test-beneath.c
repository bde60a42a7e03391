/* SPDX-License-Identifier: Apache-2.0 */
/* INV-INSIDE-PATHS: whatever a path says, and whatever is done to the tree meanwhile, it leads to
 * something beneath the root. */
#include "base/err.h"
#include "base/fd.h"
#include "files/beneath.h"
#include "fs/fs.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static int outside, root;

static void put_file(int dir, const char *name, const char *text)
{
	must(fs_write_atomic(dir, name, str_from(text), 0644, false, NULL) == 0);
}

/* outside/{secret,root/...}: the root has a file of the same name. */
static void build(void)
{
	tap_dir(top);
	outside = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(outside >= 0);
	put_file(outside, "secret", "outside");
	must(mkdirat(outside, "root", 0755) == 0);
	root = openat(outside, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(root >= 0);
	put_file(root, "secret", "inside");
	must(mkdirat(root, "a", 0755) == 0 && mkdirat(root, "a/b", 0755) == 0);
	put_file(root, "a/b/f", "f");
	must(symlinkat("/", root, "a/to-root") == 0);
	must(symlinkat("../../../../../..", root, "a/b/up") == 0);
	must(symlinkat("/secret", root, "a/abs") == 0);
	must(symlinkat("../secret", root, "a/rel") == 0);
	must(symlinkat("loop", root, "loop") == 0);
	must(symlinkat("b/", root, "a/dir") == 0);
	must(symlinkat("nowhere/x", root, "a/dangling") == 0);
	must(symlinkat("f/", root, "a/b/file-slash") == 0);
}

/* What is there: its text, or the errno as text. */
static const char *text_at(const char *base, const char *path)
{
	static char text[64];
	int fd = beneath_open(root, str_from(base), str_from(path), O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return err_errno_text(-fd);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		snprintf(text, sizeof(text), "%s", err_errno_text(errno));
	else
		text[n] = '\0';
	fd_close(fd);
	return text;
}

static void never_leads_out(void)
{
	static const char *const paths[] = {"secret", "/secret", "//secret", "./secret",
		"../secret", "../../../../secret", "/../secret", "a/../secret", "a/b/../../secret",
		"a/b/../../../../secret", "a/to-root/secret", "a/to-root/../../secret",
		"a/b/up/secret", "a/b/up/../secret", "a/abs", "a/rel",
		"a/to-root/a/to-root/a/b/up/a/abs", "a/dir/../rel", "a/./b/.././abs", "a//abs"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *got = text_at("", paths[i]);

		if (strcmp(got, "inside") != 0)
			tap_fail("%s: %s", paths[i], got);
	}
	check_z(text_at("/a/b", "../../secret"), "inside");
	check_z(text_at("/a/b", "f"), "f");
	check_z(text_at("/a/b", "../../../../../../secret"), "inside");
	check_z(text_at("/a/b", "/a/b/f"), "f");
	check_z(text_at("/nowhere", "/secret"), "inside");
	check_z(text_at("/nowhere", "f"), err_errno_text(ENOENT));
}

static void says_what_is_wrong(void)
{
	char name[400], *deep;

	check_z(text_at("", ""), err_errno_text(ENOENT));
	check_z(text_at("", "nothing"), err_errno_text(ENOENT));
	check_z(text_at("", "nothing/x"), err_errno_text(ENOENT));
	check_z(text_at("", "secret/x"), err_errno_text(ENOTDIR));
	check_z(text_at("", "secret/"), err_errno_text(ENOTDIR));
	check_z(text_at("", "secret/."), err_errno_text(ENOTDIR));
	check_z(text_at("", "secret/.."), err_errno_text(ENOTDIR));
	check_z(text_at("", "a/b/file-slash"), err_errno_text(ENOTDIR));
	check_z(text_at("", "loop"), err_errno_text(ELOOP));
	check_z(text_at("", "loop/x"), err_errno_text(ELOOP));
	check_z(text_at("", "a/dangling"), err_errno_text(ENOENT));
	check_z(text_at("", "a"), err_errno_text(EISDIR));
	check_z(text_at("", "/"), err_errno_text(EISDIR));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	check_z(text_at("", name), err_errno_text(ENAMETOOLONG));
	/* Longer than the kernel takes in one call. */
	deep = malloc(100001);
	must(deep);
	for (int i = 0; i < 20000; i++)
		memcpy(deep + 5 * i, "a/../", 5);
	memcpy(deep + 99990, "//////////", 10);
	deep[100000] = '\0';
	check_z(text_at("", deep), err_errno_text(EISDIR));
	free(deep);
}

/* As open() would say it, of paths that stay inside. */
static void finds_what_the_kernel_finds(void)
{
	static const char *const paths[] = {"a", "a/", "a/.", "a/./", "a/b/..", "a/dir", "a/dir/",
		"a/dir/f", "a/b/f", "a/b/./f", "a//b//f", "secret", "nothing", "a/nothing/"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		int mine = beneath_open(root, STR_NULL, str_from(paths[i]), O_PATH);
		int kernels = openat(root, paths[i], O_PATH | O_CLOEXEC);
		struct stat a = {0}, b = {0};

		check((mine < 0) == (kernels < 0));
		if (mine >= 0 && kernels >= 0) {
			must(fstat(mine, &a) == 0 && fstat(kernels, &b) == 0);
			if (a.st_ino != b.st_ino)
				tap_fail("%s: another file", paths[i]);
		}
		fd_close(mine);
		fd_close(kernels);
	}
}

static void makes_what_is_missing(void)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	struct stat st;

	check_int(beneath_find(root, STR_NULL, STR("new/../new/x/./y"), BENEATH_MAKE, &at), 0);
	check_z(at.name, "y");
	check(!at.slash);
	check_int(fstatat(root, "new/x", &st, 0), 0);
	check(fstatat(root, "new/x/y", &st, 0) < 0);
	beneath_done(&at);
	check_int(beneath_find(root, STR_NULL, STR("/a/dangling/z"), BENEATH_MAKE, &at), 0);
	check_int(fstatat(root, "a/nowhere/x", &st, 0), 0);
	beneath_done(&at);
	check_int(beneath_find(root, STR_NULL, STR("secret/z"), BENEATH_MAKE, &at), -ENOTDIR);
	check_int(beneath_find(root, STR_NULL, STR("a/b/"), 0, &at), 0);
	check(at.slash);
	check_z(at.name, "b");
}

static void goes_through_directories_alone(void)
{
	int fd = beneath_directory(root, STR("p/q"), true);

	check(fd >= 0);
	fd_close(fd);
	check_int(beneath_directory(root, STR("p/r"), false), -ENOENT);
	check_int(beneath_directory(root, STR("a/to-root"), true), -ELOOP);
	check_int(beneath_directory(root, STR("a/dir"), true), -ELOOP);
	check_int(beneath_directory(root, STR("secret"), true), -ENOTDIR);
	check_int(beneath_directory(root, STR("a/../.."), true), -EXDEV);
	check_int(beneath_directory(root, STR("/../a"), true), -EXDEV);
	fd = beneath_directory(root, STR("./"), false);
	check(fd >= 0);
	fd_close(fd);
}

/* Somebody moves a directory out from under the walk and puts links in its place. */
static pid_t start_racer(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid > 0)
		return pid;
	for (;;) {
		(void)!renameat(root, "race/d", root, "race/moved");
		(void)!symlinkat("../../..", root, "race/d");
		(void)!unlinkat(root, "race/d", 0);
		(void)!symlinkat("/..", root, "race/d");
		(void)!unlinkat(root, "race/d", 0);
		(void)!renameat(root, "race/moved", root, "race/d");
		(void)!renameat(root, "race/d/e", root, "e-at-the-top");
		(void)!renameat(root, "e-at-the-top", root, "race/d/e");
	}
}

static void races_lead_nowhere_else(void)
{
	int inside = 0;
	pid_t racer;

	must(mkdirat(root, "race", 0755) == 0 && mkdirat(root, "race/d", 0755) == 0 &&
		mkdirat(root, "race/d/e", 0755) == 0);
	racer = start_racer();
	for (int i = 0; i < 20000; i++) {
		const char *got =
			text_at("", i % 2 ? "race/d/../../secret" : "race/d/e/../../../../secret");

		if (strcmp(got, "outside") == 0)
			tap_fail("outside was reached");
		inside += strcmp(got, "inside") == 0;
	}
	kill(racer, SIGKILL);
	waitpid(racer, NULL, 0);
	/* Else nothing was tested. */
	check(inside > 100);
}

int main(void)
{
	build();
	run_test(never_leads_out);
	run_test(says_what_is_wrong);
	run_test(finds_what_the_kernel_finds);
	run_test(makes_what_is_missing);
	run_test(goes_through_directories_alone);
	run_test(races_lead_nowhere_else);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
