/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "base/str.h"
#include "tap.h"

static void fills_all_of_it(void)
{
	unsigned char data[1000], ones[1000] = {0};

	for (int round = 0; round < 64; round++) {
		memset(data, 0, sizeof(data));
		rand_bytes(data, sizeof(data));
		for (size_t i = 0; i < sizeof(data); i++)
			ones[i] |= data[i];
	}
	for (size_t i = 0; i < sizeof(data); i++)
		check(ones[i] == 0xff);
	check(rand_u64() != rand_u64());
}

static void below_is_uniform(void)
{
	unsigned seen[7] = {0};

	for (int i = 0; i < 70000; i++) {
		uint32_t v = rand_below(7);

		must(v < 7);
		seen[v]++;
	}
	/* 10000 expected, the standard deviation is 93: ten of them are never left by chance. */
	for (int i = 0; i < 7; i++)
		check(seen[i] > 9000 && seen[i] < 11000);
	check_int(rand_below(1), 0);
	for (int i = 0; i < 100; i++)
		check(rand_below(0x80000001U) <= 0x80000000U);
}

static void ids(void)
{
	char a[21], b[21];

	rand_id(a, 20);
	rand_id(b, 20);
	check_int(strlen(a), 20);
	check_int(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789"), 20);
	check(strcmp(a, b) != 0);
	rand_id(a, 0);
	check_z(a, "");
}

int main(void)
{
	run_test(fills_all_of_it);
	run_test(below_is_uniform);
	run_test(ids);
	return tap_done();
}
