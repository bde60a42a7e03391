/* SPDX-License-Identifier: Apache-2.0 */
#include "base/selfseccomp.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct selfseccomp_call calls[] = {
	{__NR_write, SELFSECCOMP_ALLOW},
	{__NR_exit_group, SELFSECCOMP_ALLOW},
	{__NR_mmap, SELFSECCOMP_NO_EXEC},
	{__NR_munmap, SELFSECCOMP_ALLOW},
	{__NR_openat, SELFSECCOMP_KILL},
};

/* Runs fn in a child behind the filter; returns its wait status. */
static int filtered(int (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	must(pid >= 0);
	if (pid == 0) /* not _exit(): a sanitizer would do more than the filter allows */
		syscall(__NR_exit_group,
			selfseccomp_install(calls, ARRAY_SIZE(calls), NULL) < 0 ? 99 : fn());
	must(waitpid(pid, &status, 0) == pid);
	return status;
}

static int refused_call(void)
{
	return syscall(__NR_socket, AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM ? 7 : 1;
}

static int executable_memory(void)
{
	void *plain, *exec;

	plain = (void *)syscall(
		__NR_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	exec = (void *)syscall(
		__NR_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return plain != MAP_FAILED && exec == MAP_FAILED && errno == EPERM ? 7 : 1;
}

static int opens(void)
{
	return (int)syscall(__NR_openat, AT_FDCWD, "/", O_RDONLY, 0) < 0 ? 1 : 2;
}

#ifdef __x86_64__
static int x32_call(void)
{
	return (int)syscall(0x40000000 | 1, 1, "", 0) < 0 ? 1 : 2;
}
#endif

static void test_allows_and_refuses(void)
{
	int status = filtered(refused_call);

	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
	status = filtered(executable_memory);
	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
}

static void test_kills(void)
{
	int status = filtered(opens);

	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
#ifdef __x86_64__
	status = filtered(x32_call);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
#endif
}

int main(void)
{
	run_test(test_allows_and_refuses);
	run_test(test_kills);
	return tap_done();
}
