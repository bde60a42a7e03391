/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/fs.h"
#include "jail/caps.h"
#include "jail/narrow.h"
#include "jail/sys.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[TAP_DIR_BYTES];

/* The line of check that fails, as the exit status; 0 if all is well. */
#define want(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return __LINE__ % 200;                                                     \
	} while (0)

static bool limit_is(int resource, rlim_t value)
{
	struct rlimit l = {0};

	return sys_prlimit(resource, NULL, &l) == 0 && l.rlim_cur == value && l.rlim_max == value;
}

static bool capabilities_are(uint64_t caps)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	return syscall(SYS_capget, &h, d) == 0 &&
	       ((uint64_t)d[1].effective << 32 | d[0].effective) == caps;
}

static int find_common(const struct narrow *n)
{
	want(capabilities_are(n->nested ? CAPS_ROOM_NESTED : CAPS_ROOM));
	want(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	want(prctl(PR_GET_SECCOMP) == 2);
	want(prctl(PR_CAPBSET_READ, 21 /* SYS_ADMIN */) == 0);
	want(limit_is(RLIMIT_CORE, 1) && limit_is(RLIMIT_RTPRIO, 0));
	for (int i = 0; i < RLIM_NLIMITS; i++)
		want(!n->resources[i] || limit_is(i, n->resources[i]));
	return 0;
}

static int find_files(const struct narrow *n)
{
	int fd = openat(AT_FDCWD, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	want(fd >= 0);
	want((fchmod(fd, 04700) == 0) == !n->staying);
	want(sethostname("x", 1) < 0 && errno == EPERM);
	want((unshare(CLONE_NEWUSER) == 0) == n->nested);
	return 0;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n < 0 ? -errno : 0;
}

/* Root in a user namespace of its own, which maps one id. */
static bool become_root(void)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/setgroups", "deny") == 0 &&
	       write_text("/proc/self/uid_map", uids) == 0 &&
	       write_text("/proc/self/gid_map", gids) == 0;
}

/* 199: this machine lets nobody have a user namespace. */
static int narrowed(const struct narrow *n)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (!become_root())
		return 199;
	want(chdir(top) == 0);
	want(narrow_limits(n, &err) == 0);
	want(narrow_process(n, &err) == 0);
	r = find_common(n);
	return r ? r : find_files(n);
}

static int status_of(const struct narrow *n)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(narrowed(n));
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 198;
}

static void every_kind_is_narrow(void)
{
	static const struct narrow rows[] = {{0}, {.staying = true}, {.nested = true},
		{.nested = true, .staying = true},
		{.resources = {[RLIMIT_NOFILE] = 64,
			 [RLIMIT_FSIZE] = 4096,
			 [RLIMIT_NPROC] = 1000,
			 [RLIMIT_STACK] = 1 << 20}}};

	if (status_of(&rows[0]) == 199) {
		tap_skip("no user namespaces");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_int(status_of(&rows[i]), 0);
}

static void a_limit_goes_as_a_word(void)
{
	static const char *const bad[] = {"", "rlimit", "rlimit=", "rlimit=7",
		"rlimit=7:", "rlimit=:7", "rlimit=16:1", "rlimit=-1:1", "rlimit=7:-1",
		"rlimit=7:1:1", "rlimit=7:9223372036854775808", "limit=7:1"};
	struct narrow n = {0};
	char word[NARROW_WORD];

	for (int i = 0; i < RLIM_NLIMITS; i++) {
		narrow_put_word(i, (uint64_t)INT64_MAX - (uint64_t)i, word);
		check(narrow_take_word(&n, word));
	}
	for (int i = 0; i < RLIM_NLIMITS; i++)
		check(n.resources[i] == (uint64_t)INT64_MAX - (uint64_t)i);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(!narrow_take_word(&n, bad[i]));
}

int main(void)
{
	run_test(a_limit_goes_as_a_word);
	tap_dir(top);
	must(chmod(top, 0777) == 0);
	run_test(every_kind_is_narrow);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
