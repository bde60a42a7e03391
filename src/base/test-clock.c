/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/str.h"
#include "tap.h"

static void formats(void)
{
	static const struct {
		uint64_t usec;
		const char *utc, *iso;
	} table[] = {
		{0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000+00:00"},
		{1795296634123456, "2026-11-21T21:30:34Z", "2026-11-21T21:30:34.123456+00:00"},
		{951782400000007, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000007+00:00"},
		{4102444799999999, "2099-12-31T23:59:59Z", "2099-12-31T23:59:59.999999+00:00"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[CLOCK_ISO_MAX];

		clock_format_utc(table[i].usec, text);
		check_z(text, table[i].utc);
		clock_format_iso(table[i].usec, text);
		check_z(text, table[i].iso);
	}
}

static void moves_forward(void)
{
	uint64_t last = clock_mono_usec();

	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_mono_usec();

		check(now >= last);
		last = now;
	}
	check(clock_real_usec() > 1700000000 * USEC_PER_SEC);
}

static void no_time_is_too_long(void)
{
	check(clock_usec_of_msec(0) == 0);
	check(clock_usec_of_msec(1500) == 1500000);
	check(clock_usec_of_msec(UINT64_MAX) == clock_usec_of_msec(UINT64_MAX / 1000 + 2));
	check(clock_real_usec() + clock_usec_of_msec(UINT64_MAX) < INT64_MAX);
	check(clock_usec_of_msec(UINT64_MAX) / USEC_PER_SEC / 86400 / 366 > 70000);
}

int main(void)
{
	run_test(formats);
	run_test(moves_forward);
	run_test(no_time_is_too_long);
	return tap_done();
}
