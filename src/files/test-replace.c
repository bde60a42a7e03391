/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "files/replace.h"
#include "fs/fs.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];
static int dir;

/* How many names the directory has. */
static unsigned names(void)
{
	_cleanup_(fs_list_closep) DIR *d = fs_list(dir, ".");
	unsigned n = 0;

	must(d);
	while (fs_list_next(d))
		n++;
	return n;
}

/* A new file is whole when it gets its name, whether it has another one before that or none. */
static void test_new(void)
{
	for (int named = 0; named < 2; named++) {
		_cleanup_(replace_abortp) struct replace r = REPLACE_NULL;
		struct stat st;

		must(replace_begin_new(&r, dir, 0640, named) == 0);
		check_int(faccessat(dir, "new", F_OK, 0), -1);
		check_int(names(), r.name[0] ? 1 : 0);
		check(!named || r.name[0]);
		must(fd_write_all(r.fd, "whole", 5) == 0);
		check_int(replace_commit(&r, "new", false), 0);
		must(fstatat(dir, "new", &st, 0) == 0);
		check_int(st.st_size, 5);
		check_int(st.st_mode & 0777, 0640);
		check_int((long long)st.st_nlink, 1);
		check_int(names(), 1);
		must(unlinkat(dir, "new", 0) == 0);
	}
}

static void test_one_is_replaced(void)
{
	for (int named = 0; named < 2; named++) {
		_cleanup_(replace_abortp) struct replace r = REPLACE_NULL;
		struct stat st;

		fd_close(openat(dir, "old", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		must(replace_begin_new(&r, dir, 0640, named) == 0);
		must(fd_write_all(r.fd, "whole", 5) == 0);
		check_int(replace_commit(&r, "old", true), 0);
		must(fstatat(dir, "old", &st, 0) == 0);
		check_int(st.st_size, 5);
		check_int((long long)st.st_nlink, 1);
		check_int(names(), 1);
		must(unlinkat(dir, "old", 0) == 0);
	}
}

/* What cannot be replaced leaves nothing. */
static void test_a_directory_is_not_replaced(void)
{
	must(mkdirat(dir, "old", 0700) == 0);
	for (int named = 0; named < 2; named++) {
		_cleanup_(replace_abortp) struct replace r = REPLACE_NULL;

		must(replace_begin_new(&r, dir, 0640, named) == 0);
		check_int(replace_commit(&r, "old", true), -EISDIR);
		check_int(names(), 1);
	}
	must(unlinkat(dir, "old", AT_REMOVEDIR) == 0);
}

static void test_nothing_is_replaced(void)
{
	fd_close(openat(dir, "old", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (int named = 0; named < 2; named++) {
		struct replace r = REPLACE_NULL;
		struct stat st;

		must(replace_begin_new(&r, dir, 0640, named) == 0);
		must(fd_write_all(r.fd, "x", 1) == 0);
		check_int(replace_commit(&r, "old", false), -EEXIST);
		replace_abort(&r);
		must(replace_begin_new(&r, dir, 0640, named) == 0);
		replace_abort(&r);
		must(fstatat(dir, "old", &st, 0) == 0);
		check_int(st.st_size, 0);
		check_int(names(), 1);
	}
	must(unlinkat(dir, "old", 0) == 0);
}

int main(void)
{
	umask(022);
	tap_dir(top);
	dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0);
	run_test(test_new);
	run_test(test_one_is_replaced);
	run_test(test_a_directory_is_not_replaced);
	run_test(test_nothing_is_replaced);
	close(dir);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
