/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/macro.h"
#include "farserve/options.h"
#include "tap.h"

static int read_words(struct options *o, const char *a, const char *b, const char *c, const char *d)
{
	const char *words[] = {a, b, c, d};
	int n = 0;

	while (n < 4 && words[n])
		n++;
	return options_read(o, n, (char **)(uintptr_t)words, NULL);
}

static void addresses(void)
{
	static const struct {
		const char *text;
		int want;
		bool loopback;
	} table[] = {
		{"127.0.0.1:8080", 0, true},
		{"127.9.9.9:0", 0, true},
		{"localhost:1", 0, true},
		{"[::1]:8080", 0, true},
		{"0.0.0.0:8080", 0, false},
		{"[::]:8080", 0, false},
		{"192.0.2.1:65535", 0, false},
		{"127.0.0.1:65536", -E_USAGE, false},
		{"127.0.0.1", -E_USAGE, false},
		{"::1:8080", -E_USAGE, false},
		{":8080", -E_USAGE, false},
		{"example.com:80", -E_USAGE, false},
		{"127.0.0.1:", -E_USAGE, false},
		{"[]:1", -E_USAGE, false},
		{"[:1", -E_USAGE, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct options o;

		check_int(read_words(&o, "--listen", table[i].text, NULL, NULL), table[i].want);
		if (table[i].want == 0)
			check_int(o.is_loopback, table[i].loopback);
	}
}

static void others(void)
{
	struct options o;
	const char *at = "127.0.0.1:1";

	check_int(read_words(&o, "--listen", at, "--max", "3"), 0);
	check_int(o.sessions_max, 3);
	check_int(read_words(&o, "--listen", at, "--sleep", "2s"), 0);
	check(o.sleep_usec == 2 * USEC_PER_SEC);
	check_int(read_words(&o, "--listen", at, "--no-room", NULL), 0);
	check(o.no_room && !o.try_room);
	check_int(read_words(&o, "--try-room", "--listen", at, NULL), 0);
	check(o.try_room && !o.no_room);
	check_int(read_words(&o, "--listen", at, "--max", "0"), -E_USAGE);
	check_int(read_words(&o, "--listen", at, "--max", "1001"), -E_USAGE);
	check_int(read_words(&o, "--listen", at, "--sleep", "x"), -E_USAGE);
	check_int(read_words(&o, "--listen", at, "--token", "x"), -E_USAGE);
	check_int(read_words(&o, "--listen", at, "--max", NULL), -E_USAGE);
	check_int(read_words(&o, NULL, NULL, NULL, NULL), -E_USAGE);
	check_int(read_words(&o, "--help", NULL, NULL, NULL), 1);
}

int main(void)
{
	run_test(addresses);
	run_test(others);
	return tap_done();
}
