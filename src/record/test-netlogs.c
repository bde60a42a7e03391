/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "record/netlogs.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[TAP_DIR_BYTES];

/* "sandbox-" and 21 characters: `first`, and the number. */
static void make_id(char first, int number, char ret[RUNDIR_ID_BYTES + 1])
{
	snprintf(ret, RUNDIR_ID_BYTES + 1, "sandbox-%c%020d", first, number);
}

static int make_log(const char *id, const char *name)
{
	int fd = netlogs_create(id, name, NULL);

	must(fd >= 0);
	return fd;
}

/* Set the time of its last line. */
static void set_time(int fd, int second)
{
	const struct timespec t[2] = {{.tv_sec = second}, {.tv_sec = second}};

	must(futimens(fd, t) == 0);
}

static bool finds(const char *sandbox, const char *id)
{
	_cleanup_(freep) char *path = NULL;

	return netlogs_find(sandbox, &path, NULL) == 0 && strstr(path, id);
}

static void test_find(void)
{
	char a[RUNDIR_ID_BYTES + 1], b[RUNDIR_ID_BYTES + 1], c[RUNDIR_ID_BYTES + 1];
	_cleanup_(freep) char *path = NULL;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int fds[3];

	check_int(netlogs_find("dev", &path, &err), -E_NOT_FOUND);
	make_id('a', 1, a);
	make_id('a', 2, b);
	make_id('b', 1, c);
	fds[0] = make_log(a, "dev");
	fds[1] = make_log(b, "dev");
	fds[2] = make_log(c, NULL);
	set_time(fds[0], 2000);
	set_time(fds[1], 1000);
	check(finds(a, a) && finds(b, b) && finds(c, c));
	check(finds("dev", a)); /* the later one, not the one that was made later */
	check(finds("sandbox-b", c) && finds("b0", c));
	check_int(netlogs_find("a0", &path, &err), -E_USAGE);
	check_int(netlogs_find("", &path, &err), -E_NOT_FOUND);
	check_int(netlogs_find("sandbox-", &path, &err), -E_NOT_FOUND);
	check_int(netlogs_find("../dev", &path, &err), -E_NOT_FOUND);
	check(netlogs_create(a, "dev", NULL) < 0); /* never a second time */
	for (int i = 0; i < 3; i++)
		fd_close(fds[i]);
	netlogs_remove(a);
	check(!finds(a, a) && finds("dev", b));
	netlogs_remove(b);
	netlogs_remove(c);
}

static void test_lock(void)
{
	char id[RUNDIR_ID_BYTES + 1];
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int reader = -1;
	int fd;

	make_id('l', 1, id);
	fd = make_log(id, NULL);
	must(netlogs_find(id, &path, NULL) == 0);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	must(reader >= 0);
	check(netlog_is_open(reader));
	fd_close(fd);
	check(!netlog_is_open(reader));
	netlogs_remove(id);
}

/* The oldest go, but none that is still written to. */
static void test_prune(void)
{
	const int n = NETLOGS_KEPT + NETLOGS_SLACK + 1;
	char id[RUNDIR_ID_BYTES + 1], held[RUNDIR_ID_BYTES + 1];
	int fd, holder, left = 0;

	make_id('h', 1, held);
	holder = make_log(held, NULL);
	set_time(holder, 1);
	for (int i = 0; i < n; i++) {
		make_id('p', i, id);
		fd = make_log(id, NULL);
		set_time(fd, 1000 + i);
		fd_close(fd);
	}
	make_id('q', 1, id);
	fd_close(make_log(id, NULL));
	check(finds(held, held) && finds(id, id));
	for (int i = 0; i < n; i++) {
		bool there;

		make_id('p', i, id);
		there = finds(id, id);
		check(there || left == 0); /* the older ones */
		left += there;
	}
	check(left >= NETLOGS_KEPT && left <= NETLOGS_KEPT + 1);
	fd_close(holder);
}

int main(void)
{
	tap_dir(dir);
	must(setenv("CLOCHE_STATE_DIR", dir, 1) == 0);
	run_test(test_find);
	run_test(test_lock);
	run_test(test_prune);
	fs_remove_tree(AT_FDCWD, dir);
	return tap_done();
}
