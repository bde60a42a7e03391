/* SPDX-License-Identifier: Apache-2.0 */
#include "record/unified.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void expect_hunks(const char *before, const char *after, const char *want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);

	check_int(unified_write(&out, str_from(before), str_from(after)), 0);
	check_str(buf_str(&out), want);
}

static void test_known(void)
{
	expect_hunks("", "", "");
	expect_hunks("a\n", "a\n", "");
	expect_hunks("", "a\n", "@@ -0,0 +1 @@\n+a\n");
	expect_hunks("a\n", "", "@@ -1 +0,0 @@\n-a\n");
	expect_hunks("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	expect_hunks("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
		"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
	expect_hunks("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
		"@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

/* 0 to 3. */
static unsigned test_pick(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 30;
}

/* What it says, done to the one text, makes the other. */
static void test_applies(void)
{
	for (int round = 0; round < 200; round++) {
		_cleanup_(buf_donep) struct buf a = BUF_INIT(1 << 16), b = BUF_INIT(1 << 16);
		_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20), got = BUF_INIT(1 << 16);
		struct str rest, old;

		for (int i = 0; i < 40; i++) {
			char line[3] = {(char)('a' + test_pick()), '\n', 0};

			if (test_pick())
				must(buf_add(&a, line, 2) == 0);
			if (test_pick())
				must(buf_add(&b, line, 2) == 0);
		}
		must(unified_write(&out, buf_str(&a), buf_str(&b)) == 0);
		/* Applied by hand: hunks name lines of the old text, in order. */
		rest = buf_str(&out);
		old = buf_str(&a);
		for (size_t at = 0; rest.n;) {
			struct str line = str_next_line(&rest);
			size_t from, n;

			if (line.p[0] == '@') {
				must(sscanf(line.p, "@@ -%zu,%zu", &from, &n) == 2);
				for (from -= n > 0; at < from; at++) {
					struct str same = str_next_line(&old);

					must(buf_add(&got, same.p, same.n + 1) == 0);
				}
				continue;
			}
			if (line.p[0] != '+') {
				struct str same = str_next_line(&old);

				check(str_eq(same, str_from_index(line, 1)));
				at++;
			}
			if (line.p[0] != '-')
				must(buf_add(&got, line.p + 1, line.n) == 0);
		}
		must(buf_add_str(&got, old) == 0);
		check(str_eq(buf_str(&got), buf_str(&b)));
	}
}

int main(void)
{
	run_test(test_known);
	run_test(test_applies);
	return tap_done();
}
