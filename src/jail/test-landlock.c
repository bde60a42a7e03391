/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];

static int make(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* What the restricted process finds, as its exit status. */
static int restricted(int (*fn)(int inside, int outside))
{
	char inside_path[80], outside_path[80];
	const char *paths[] = {inside_path, "/no/such/directory"};
	struct cloche_err err = CLOCHE_ERR_INIT;
	int inside, outside, status = 0;
	pid_t pid;

	snprintf(inside_path, sizeof(inside_path), "%s/inside", top);
	snprintf(outside_path, sizeof(outside_path), "%s/outside", top);
	inside = open(inside_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	outside = open(outside_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(inside >= 0 && outside >= 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (caps_no_new_privs(&err) < 0 || landlock_restrict(paths, 2, &err) < 0)
			_exit(200);
		_exit(fn(inside, outside));
	}
	close(inside);
	close(outside);
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

static int in_both(int inside, int outside)
{
	if (make(inside, "file") != 0 || mkdirat(inside, "dir", 0700) < 0)
		return 1;
	/* A descriptor from before does not help: its directory does not lie below the rule's. */
	if (make(outside, "file") != EACCES || mkdirat(outside, "dir", 0700) == 0)
		return 2;
	return openat(outside, "old", O_WRONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 3;
}

static int reading(int inside, int outside)
{
	char byte;
	int fd = openat(outside, "old", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : 1;
}

static void writes_only_below_the_rules(void)
{
	check_int(restricted(in_both), 0);
}

static void reads_are_left_alone(void)
{
	check_int(restricted(reading), 0);
}

int main(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	char path[80];

	if (landlock_abi() == 0) {
		printf("1..0 # SKIP this kernel has no Landlock\n");
		return 0;
	}
	tap_dir(top);
	snprintf(path, sizeof(path), "%s/inside", top);
	must(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/outside", top);
	must(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/outside/old", top);
	must(fs_write_atomic(AT_FDCWD, path, STR("x"), 0600, false, &err) == 0);
	run_test(writes_only_below_the_rules);
	run_test(reads_are_left_alone);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
