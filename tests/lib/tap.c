/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int tap_count, tap_failed;
bool tap_ok_now;
static const char *skipped;

/* What our caller ignores or blocks (nohup, a shell's background) is no matter of the test's. */
__attribute__((constructor)) static void tap_default_signals(void)
{
	struct sigaction now;
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		if (sigaction(i, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void tap_fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	tap_ok_now = false;
	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void tap_int(const char *file, int line, const char *what, long long got, long long want)
{
	if (got != want)
		tap_fail_at(file, line, "%s: got %lld, want %lld", what, got, want);
}

void tap_text(const char *file, int line, const char *what, const char *got, size_t got_n,
	const char *want)
{
	if (got_n != strlen(want) || (got_n && memcmp(got, want, got_n) != 0))
		tap_fail_at(file, line, "%s: got \"%.*s\", want \"%s\"", what, (int)got_n,
			got ? got : "", want);
}

void tap_z(const char *file, int line, const char *what, const char *got, const char *want)
{
	if ((!got || !want) ? got != want : strcmp(got, want) != 0)
		tap_fail_at(file, line, "%s: got \"%s\", want \"%s\"", what, got ? got : "(null)",
			want ? want : "(null)");
}

void tap_bail(const char *file, int line, const char *what)
{
	printf("Bail out! %s:%d: %s\n", file, line, what);
	exit(1);
}

static int make_file(char *path)
{
	return mkostemp(path, O_CLOEXEC);
}

static int make_dir(char *path)
{
	return mkdtemp(path) ? 0 : -1;
}

/* Return what make() returns, which is no failure. */
static int make_in(const char *variable, int (*make)(char *path), char ret[TAP_DIR_BYTES])
{
	const char *place = getenv(variable);
	int n = snprintf(ret, TAP_DIR_BYTES, "%s/cloche-test-XXXXXX", place ? place : ""), r = -1;

	if (place && place[0] == '/' && n < TAP_DIR_BYTES)
		r = make(ret);
	if (r >= 0)
		return r;
	snprintf(ret, TAP_DIR_BYTES, "/tmp/cloche-test-XXXXXX");
	r = make(ret);
	must(r >= 0);
	return r;
}

void tap_dir(char ret[TAP_DIR_BYTES])
{
	make_in("TMPDIR", make_dir, ret);
}

void tap_fast_dir(char ret[TAP_DIR_BYTES])
{
	make_in("CLOCHE_TEST_FAST_DIR", make_dir, ret);
}

int tap_file(char ret[TAP_DIR_BYTES])
{
	return make_in("TMPDIR", make_file, ret);
}

pid_t tap_exchange(int dir, const char *a, const char *b)
{
	enum { EXCHANGE = 2 /* RENAME_EXCHANGE, which not every C library has */ };
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (syscall(SYS_renameat2, dir, a, dir, b, EXCHANGE) == 0)
		;
	_exit(1);
}

void tap_exchange_end(pid_t pid)
{
	int status;

	must(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	check_int(status, SIGKILL);
}

void tap_stop(pid_t pid)
{
	char path[32], text[256] = "";
	const char *state = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	must(kill(pid, SIGSTOP) == 0);
	for (int i = 0; i < 20000; i++) {
		FILE *f = fopen(path, "re");

		/* The state follows the name, which is in parentheses. */
		must(f && fgets(text, sizeof(text), f));
		(void)fclose(f);
		state = strrchr(text, ')');
		if (state && state[2] == 'T')
			return;
		usleep(1000);
	}
	tap_bail(__FILE__, __LINE__, "a process does not stop");
}

unsigned tap_rounds(unsigned all)
{
	const char *given = getenv("CLOCHE_TEST_PART");
	unsigned part = given ? (unsigned)strtoul(given, NULL, 10) : 1, some;

	must(part > 0 && part <= 100);
	some = (all + 10 * part - 1) / (10 * part) * 10;
	return some < all ? some : all;
}

void tap_skip(const char *reason)
{
	skipped = reason;
}

void (*tap_around)(void (*fn)(void));

void tap_run(const char *name, void (*fn)(void))
{
	tap_ok_now = true;
	skipped = NULL;
	if (tap_around)
		tap_around(fn);
	else
		fn();
	tap_count++;
	tap_failed += !tap_ok_now;
	printf("%sok %d - %s%s%s\n", tap_ok_now ? "" : "not ", tap_count, name,
		tap_ok_now && skipped ? " # SKIP " : "", tap_ok_now && skipped ? skipped : "");
	fflush(stdout);
}

int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}
