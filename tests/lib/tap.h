/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unit tests: a main() that runs functions by run_test() and ends with `return tap_done();`.
 * Output is TAP version 13. A failed check prints where and why and the test goes on. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

extern int tap_count, tap_failed; /* tests so far, and those of them that failed */
extern bool tap_ok_now;           /* no check of the test under way has failed */

void tap_fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tap_int(const char *file, int line, const char *what, long long got, long long want);
void tap_text(const char *file, int line, const char *what, const char *got, size_t got_n,
	const char *want);
void tap_z(const char *file, int line, const char *what, const char *got, const char *want);
_Noreturn void tap_bail(const char *file, int line, const char *what);
void tap_run(const char *name, void (*fn)(void));

#define tap_fail(...) tap_fail_at(__FILE__, __LINE__, __VA_ARGS__)

#define check(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			tap_fail("check failed: %s", #cond);                                       \
	} while (0)

#define check_int(got, want) tap_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))

/* Compare a struct str with a terminated string. */
#define check_str(got, want)                                                                       \
	do {                                                                                       \
		struct str tap_g = (got);                                                          \
		tap_text(__FILE__, __LINE__, #got, tap_g.p, tap_g.n, (want));                      \
	} while (0)

/* Compare two terminated strings; NULL equals NULL. */
#define check_z(got, want) tap_z(__FILE__, __LINE__, #got, (got), (want))

/* End the test program at once: for set-up that the rest cannot do without. */
#define must(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			tap_bail(__FILE__, __LINE__, #cond);                                       \
	} while (0)

#define run_test(fn) tap_run(#fn, (fn))

/* What calls each test from now on; NULL (the default): it is called directly. */
extern void (*tap_around)(void (*fn)(void));

enum { TAP_DIR_BYTES = 64 };

/* Make a directory of this program's own in $TMPDIR (else /tmp), of mode 0700, and write its path.
 * The caller removes it. */
void tap_dir(char ret[TAP_DIR_BYTES]);

/* The same where files cost least, for a program that makes and removes thousands: in
 * $CLOCHE_TEST_FAST_DIR, which tools/test sets (else /tmp). Nothing that runs in a room sees it. */
void tap_fast_dir(char ret[TAP_DIR_BYTES]);

/* Make an empty file like that, open for reading and writing. Return its descriptor. */
int tap_file(char ret[TAP_DIR_BYTES]);

/* The test under way cannot run here: reported as skipped, with the reason (borrowed), unless a
 * check has failed. The caller returns after it. */
void tap_skip(const char *reason);

/* How many rounds of something random: all of them, or a part, in tens, where all of them are made
 * elsewhere: under sanitizers (tools/test sets CLOCHE_TEST_PART). */
unsigned tap_rounds(unsigned all);

/* Start a process that exchanges two names, relative to a directory, all the time; and end it,
 * which it must not have done by itself. */
pid_t tap_exchange(int dir, const char *a, const char *b);
void tap_exchange_end(pid_t pid);

/* Stop a process (SIGSTOP), and return when it has stopped: until then it may go on. */
void tap_stop(pid_t pid);

/* Print the plan; return main()'s result. */
int tap_done(void);
