/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unit tests: a main() that calls TEST functions and ends with `return tap_done();`.
 * Output is TAP version 13. A failed check prints where and why and the test goes on. */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;
static bool tap_ok_now;
__attribute__((unused)) static const char *tap_skipped; /* unread where all is skipped */

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

#define tap_fail(...)                                                                              \
	do {                                                                                       \
		tap_ok_now = false;                                                                \
		printf("# %s:%d: ", __FILE__, __LINE__);                                           \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
	} while (0)

#define check(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			tap_fail("check failed: %s", #cond);                                       \
	} while (0)

#define check_int(got, want)                                                                       \
	do {                                                                                       \
		long long tap_g = (long long)(got), tap_w = (long long)(want);                     \
		if (tap_g != tap_w)                                                                \
			tap_fail("%s: got %lld, want %lld", #got, tap_g, tap_w);                   \
	} while (0)

/* Compares a struct str with a terminated string. */
#define check_str(got, want)                                                                       \
	do {                                                                                       \
		struct str tap_g = (got);                                                          \
		const char *tap_w = (want);                                                        \
		if (tap_g.n != strlen(tap_w) || (tap_g.n && memcmp(tap_g.p, tap_w, tap_g.n) != 0)) \
			tap_fail("%s: got \"%.*s\", want \"%s\"", #got, (int)tap_g.n,              \
				tap_g.p ? tap_g.p : "", tap_w);                                    \
	} while (0)

/* Compares two terminated strings; NULL equals NULL. */
#define check_z(got, want)                                                                         \
	do {                                                                                       \
		const char *tap_g = (got), *tap_w = (want);                                        \
		if ((!tap_g || !tap_w) ? tap_g != tap_w : strcmp(tap_g, tap_w) != 0)               \
			tap_fail("%s: got \"%s\", want \"%s\"", #got, tap_g ? tap_g : "(null)",    \
				tap_w ? tap_w : "(null)");                                         \
	} while (0)

/* The test under way cannot run here: reported as skipped, with the reason (borrowed), unless a
 * check has failed. The caller returns after it. */
#define tap_skip(reason) (tap_skipped = (reason))

/* Ends the test program at once: for set-up that the rest cannot do without. */
#define must(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("Bail out! %s:%d: %s\n", __FILE__, __LINE__, #cond);                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define run_test(fn)                                                                               \
	do {                                                                                       \
		tap_ok_now = true;                                                                 \
		tap_skipped = NULL;                                                                \
		fn();                                                                              \
		tap_count++;                                                                       \
		tap_failed += !tap_ok_now;                                                         \
		printf("%sok %d - %s%s%s\n", tap_ok_now ? "" : "not ", tap_count, #fn,             \
			tap_ok_now &&tap_skipped ? " # SKIP " : "",                                \
			tap_ok_now &&tap_skipped ? tap_skipped : "");                              \
		fflush(stdout);                                                                    \
	} while (0)

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}
