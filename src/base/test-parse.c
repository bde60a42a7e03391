/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "tap.h"

#include <errno.h>

#define UNTOUCHED 4242

struct row {
	const char *text;
	int want;
	uint64_t value;
};

static void run_table(const struct row *rows, size_t n, int (*parse)(struct str, uint64_t *))
{
	for (size_t i = 0; i < n; i++) {
		uint64_t got = UNTOUCHED;
		int r = parse(str_from(rows[i].text), &got);

		if (r != rows[i].want || got != (r < 0 ? UNTOUCHED : rows[i].value))
			tap_fail("\"%s\": returned %d, %llu", rows[i].text, r,
				(unsigned long long)got);
	}
}

static int u64_to_100(struct str s, uint64_t *ret)
{
	return parse_u64(s, 100, ret);
}

static int u64_any(struct str s, uint64_t *ret)
{
	return parse_u64(s, UINT64_MAX, ret);
}

static void numbers(void)
{
	static const struct row small[] = {
		{"0", 0, 0},
		{"100", 0, 100},
		{"0000100", 0, 100},
		{"101", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"0x1", -EINVAL, 0},
		{"1_0", -EINVAL, 0},
		{"1e2", -EINVAL, 0},
	};
	static const struct row big[] = {
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999", -ERANGE, 0},
	};
	uint64_t v = UNTOUCHED;

	run_table(small, ARRAY_SIZE(small), u64_to_100);
	run_table(big, ARRAY_SIZE(big), u64_any);
	check_int(parse_u64(STR("1\0"), 100, &v), -EINVAL);
	check_int(v, UNTOUCHED);
}

static void hexadecimals(void)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"aF09", 0, 0xaf09},
		{"ffffffffffffffff", 0, UINT64_MAX},
		{"00000000000000001", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"0x5", -EINVAL, 0},
		{"g", -EINVAL, 0},
		{"5 ", -EINVAL, 0},
	};

	run_table(rows, ARRAY_SIZE(rows), parse_hex_u64);
}

static void sizes(void)
{
	static const struct row rows[] = {
		{"1", 0, 1},
		{"512b", 0, 512},
		{"64k", 0, 65536},
		{"512m", 0, 536870912},
		{"2G", 0, 2147483648},
		{"1t", 0, 1099511627776},
		{"9223372036854775807", 0, INT64_MAX},
		{"8388607t", 0, 8388607ULL << 40},
		{"8388608t", -ERANGE, 0},
		{"0", -ERANGE, 0},
		{"0k", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"k", -EINVAL, 0},
		{"1.5g", -EINVAL, 0},
		{"-1m", -EINVAL, 0},
		{"1mb", -EINVAL, 0},
		{"1 m", -EINVAL, 0},
	};

	run_table(rows, ARRAY_SIZE(rows), parse_size);
}

static void durations(void)
{
	static const struct row rows[] = {
		{"30", 0, 30000000},
		{"500ms", 0, 500000},
		{"1.5s", 0, 1500000},
		{"0.25", 0, 250000},
		{"5m", 0, 300000000},
		{"2h", 0, 7200000000},
		{"1d", 0, 86400000000},
		{"1.001ms", 0, 1001},
		{"0", -ERANGE, 0},
		{"0ms", -ERANGE, 0},
		{"99999999999999999999s", -ERANGE, 0},
		{"9000000000000d", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"1.", -EINVAL, 0},
		{".5s", -EINVAL, 0},
		{"1..5s", -EINVAL, 0},
		{"1,5s", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"1w", -EINVAL, 0},
		{"1s ", -EINVAL, 0},
	};

	run_table(rows, ARRAY_SIZE(rows), parse_duration);
}

static void cpus(void)
{
	static const struct row rows[] = {
		{"1", 0, 1000},
		{"0.5", 0, 500},
		{"0.01", 0, 10},
		{"1024", 0, 1024000},
		{"0.009", -ERANGE, 0},
		{"1025", -ERANGE, 0},
		{"0", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"all", -EINVAL, 0},
		{"1.x", -EINVAL, 0},
	};

	run_table(rows, ARRAY_SIZE(rows), parse_cpus);
}

static void times(void)
{
	static const struct {
		const char *text;
		int64_t usec; /* 0: it is none */
	} rows[] = {
		{"2026-11-23T16:45:00Z", 1795452300000000},
		{"2026-11-23T16:45:00.123456789Z", 1795452300123456},
		{"2026-11-23T16:45:00.5Z", 1795452300500000},
		{"2026-11-23T16:45:00+00:00", 1795452300000000},
		{"2026-11-23T17:45:00+01:00", 1795452300000000},
		{"2026-11-23T15:15:00.5-01:30", 1795452300500000},
		{"2026-11-23 16:45:00.123456 +0000 UTC", 1795452300123456},
		{"2026-11-23 18:45:00 +0200 EET", 1795452300000000},
		{"2016-07-11T22:14:10Z", 1468275250000000},
		{"0001-01-01T00:00:00Z", -62135596800000000},
		{"", 0},
		{"yesterday", 0},
		{"2026-11-23", 0},
		{"2026-11-23T16:45", 0},
		{"2026-11-23T16:45Z", 0},
		{"2026-11-23T16:45:00", 0},
		{"2026-11-23T16:45:00 ", 0},
		{"2026-11-23T16:45:00 west", 0},
		{"2026-11-23T16:45:00.Z", 0},
		{"2026-11-23T16:45:00Zulu", 0},
		{"2026-11-23T16:45:00Z ", 0},
		{"2026-11-23T16:45:00+1:00", 0},
		{"2026-11-23T16:45:00+24:00", 0},
		{"2026-11-23T16:45:00+01:00 a b", 0},
		{"2026-11-23T24:00:00Z", 0},
		{"2026-13-23T16:45:00Z", 0},
		{"2026-00-23T16:45:00Z", 0},
		{"2026-11-00T16:45:00Z", 0},
		{"2026-11-3T16:45:00Z", 0},
		{"+026-11-23T16:45:00Z", 0},
		{"2026-11-23t16:45:00z", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t got = 0;
		int r = parse_time(str_from(rows[i].text), &got);

		if (got != rows[i].usec || r != (rows[i].usec ? 0 : -EINVAL))
			tap_fail("%s: %d, %lld", rows[i].text, r, (long long)got);
	}
}

static void digits(void)
{
	static const char all[] = "0123456789abcdef";

	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(all, c >= 'A' && c <= 'Z' ? c | 0x20 : c) : NULL;

		check_int(parse_hex_digit((char)c), at ? at - all : -1);
	}
	check_int(parse_percent(STR("%2fx")), '/');
	check_int(parse_percent(STR("%fF")), 0xff);
	check_int(parse_percent(STR("%2")), -1);
	check_int(parse_percent(STR("%2g")), -1);
	check_int(parse_percent(STR("%g2")), -1);
	check_int(parse_percent(STR("x2f")), -1);
	check_int(parse_percent(STR_NULL), -1);
}

int main(void)
{
	run_test(digits);
	run_test(numbers);
	run_test(hexadecimals);
	run_test(sizes);
	run_test(durations);
	run_test(cpus);
	run_test(times);
	return tap_done();
}
