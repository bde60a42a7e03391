/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void holds_a_value(void)
{
	struct secret *s = secret_new("k3y\0x", 5);

	must(s);
	check(str_eq(secret_reveal(s), STR("k3y\0x")));
	check(secret_free(s) == NULL);
	check(secret_free(NULL) == NULL);
	check(secret_reveal(NULL).p == NULL);
	s = secret_new("", 0);
	check(s && secret_reveal(s).n == 0);
	secret_free(s);
	check(secret_new("x", (size_t)1 << 30) == NULL);
}

static void large_values(void)
{
	static char data[100000];
	struct secret *s;

	memset(data, 'q', sizeof(data));
	s = secret_new(data, sizeof(data));
	must(s);
	check(str_eq(secret_reveal(s), str_make(data, sizeof(data))));
	secret_free(s);
}

/* Runs fn in a child and returns its wait status. */
static int in_child(int (*fn)(const struct secret *), const struct secret *s)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn(s));
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static int child_sees_nothing(const struct secret *s)
{
	/* The pages are zero in a child, header and value. */
	return secret_reveal(s).n == 0 && secret_reveal(s).p[0] == '\0' ? 0 : 1;
}

static void a_forked_child_has_no_copy(void)
{
	struct secret *s = secret_new("value", 5);

	must(s);
	check_int(in_child(child_sees_nothing, s), 0);
	check(str_eq(secret_reveal(s), STR("value")));
	secret_free(s);
}

static int read_past_the_page(const struct secret *s)
{
	const struct rlimit none = {0, 0};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const volatile char *p = (const volatile char *)((uintptr_t)s / page * page + page);

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	return *p;
}

static void guard_pages_stop_overreads(void)
{
	struct secret *s = secret_new("value", 5);
	int status;

	must(s);
	status = in_child(read_past_the_page, s);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	secret_free(s);
}

static int hardened(const struct secret *s)
{
	struct rlimit core;

	secret_harden_process();
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 || getrlimit(RLIMIT_CORE, &core) < 0)
		return 1;
	return core.rlim_max == 0 ? 0 : 2;
}

static void processes_are_hardened(void)
{
	check_int(in_child(hardened, NULL), 0);
}

static void freed_values_are_gone(void)
{
	/* A marker that stands nowhere else in this process: built at run time. */
	char marker[] = "ZL-\0-secret-marker";
	struct secret *s;
	struct buf maps = BUF_INIT(1 << 20);
	const char *at;
	uintptr_t address;
	char line[64];

	marker[3] = (char)('0' + getpid() % 10);
	s = secret_new(marker, sizeof(marker));
	must(s);
	address = (uintptr_t)secret_reveal(s).p / 4096 * 4096;
	secret_free(s);
	/* The pages themselves are unmapped. */
	must(fd_read_file(AT_FDCWD, "/proc/self/maps", &maps, NULL) == 0);
	snprintf(line, sizeof(line), "\n%lx-", (unsigned long)address);
	at = buf_cstr(&maps);
	check(at && strstr(at, line) == NULL);
	buf_done(&maps);
}

int main(void)
{
	run_test(holds_a_value);
	run_test(large_values);
	run_test(a_forked_child_has_no_copy);
	run_test(guard_pages_stop_overreads);
	run_test(processes_are_hardened);
	run_test(freed_values_are_gone);
	return tap_done();
}
