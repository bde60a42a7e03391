/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>

static void grows_and_consumes(void)
{
	struct buf b = BUF_INIT(100000);
	char want[5000];

	for (int i = 0; i < 5000; i++) {
		want[i] = (char)('a' + i % 26);
		check_int(buf_add_char(&b, want[i]), 0);
	}
	check_int(buf_len(&b), 5000);
	check(memcmp(buf_data(&b), want, 5000) == 0);
	buf_consume(&b, 4990);
	check_str(buf_str(&b), "yzabcdefgh");
	check_int(buf_add_str(&b, STR("+tail")), 0);
	check_str(buf_str(&b), "yzabcdefgh+tail");
	buf_consume(&b, 1000);
	check_int(buf_len(&b), 0);
	check_int(b.head, 0);
	buf_done(&b);
	check(buf_data(&b) == NULL);
}

static void maximum_is_exact(void)
{
	static const size_t maxima[] = {1, 2, 255, 256, 257, 1000, 4096};

	for (size_t i = 0; i < ARRAY_SIZE(maxima); i++) {
		struct buf b = BUF_INIT(maxima[i]);

		for (size_t n = 0; n < maxima[i]; n++)
			check_int(buf_add_char(&b, 'x'), 0);
		check_int(buf_room(&b), 0);
		check_int(buf_add_char(&b, 'x'), -E2BIG);
		check_int(buf_add(&b, "", 0), 0);
		check_int(buf_len(&b), maxima[i]);
		/* Room comes back with what is consumed. */
		buf_consume(&b, 1);
		check_int(buf_add(&b, "yz", 2), -E2BIG);
		check_int(buf_add_char(&b, 'y'), 0);
		check(buf_data(&b)[maxima[i] - 1] == 'y');
		buf_done(&b);
	}
}

static void sliding_window_stays_small(void)
{
	struct buf b = BUF_INIT(64);
	char c = 0;

	for (int i = 0; i < 100000; i++) {
		check_int(buf_add_char(&b, (char)i), 0);
		if (buf_len(&b) == 50) {
			check_int(buf_data(&b)[0], c);
			buf_consume(&b, 1);
			c++;
		}
	}
	check(b.cap <= 512);
	buf_done(&b);
}

static void formats(void)
{
	struct buf b = BUF_INIT(8);

	check_int(buf_printf(&b, "%s-%d", "ab", 12), 0);
	check_str(buf_str(&b), "ab-12");
	check_int(buf_printf(&b, "%s", "cde"), 0);
	check_str(buf_str(&b), "ab-12cde");
	check_int(buf_printf(&b, "%c", 'x'), -E2BIG);
	check_str(buf_str(&b), "ab-12cde");
	check_int(b.max, 8);
	/* The terminator is beyond the content, also in a full buffer. */
	check_z(buf_cstr(&b), "ab-12cde");
	check_int(buf_len(&b), 8);
	buf_clear(&b);
	check_z(buf_cstr(&b), "");
	buf_done_wiped(&b);
}

static void reserve_and_commit(void)
{
	struct buf b = BUF_INIT(1 << 20);
	char *at;

	for (int i = 0; i < 100; i++) {
		check_int(buf_reserve(&b, 777, &at), 0);
		memset(at, i, 777);
		buf_commit(&b, 700);
		buf_consume(&b, 350);
	}
	check_int(buf_len(&b), 100 * 350);
	for (size_t i = 0; i < buf_len(&b); i++)
		check_int(buf_data(&b)[i], (35000 + i) / 700);
	check_int(buf_reserve(&b, SIZE_MAX, &at), -E2BIG);
	buf_done(&b);
}

static void build_something(void)
{
	struct buf b = BUF_INIT(10000);
	int r = buf_add_str(&b, STR("keep"));

	check(r == 0 || r == -ENOMEM);
	if (r == 0) {
		char *z;

		r = buf_printf(&b, "%0300d", 7);
		check_int(buf_len(&b), r < 0 ? 4 : 304);
		check_int(b.max, 10000);
		z = buf_cstr(&b);
		check(z || torture_failed);
		check(memcmp(buf_data(&b), "keep", 4) == 0);
	}
	buf_done(&b);
}

static void survives_lack_of_memory(void)
{
	torture(build_something);
}

int main(void)
{
	run_test(grows_and_consumes);
	run_test(maximum_is_exact);
	run_test(sliding_window_stays_small);
	run_test(formats);
	run_test(reserve_and_commit);
	run_test(survives_lack_of_memory);
	return tap_done();
}
