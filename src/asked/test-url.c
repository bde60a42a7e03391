/* SPDX-License-Identifier: Apache-2.0 */
#include "asked/url.h"
#include "tap.h"

#include <errno.h>

static void addresses_are_taken_apart(void)
{
	static const struct {
		const char *text, *whole, *host, *path;
		uint16_t port;
		bool is_plain;
	} rows[] = {
		{"https://s.example", "https://s.example", "s.example", "", 0, false},
		{"https://s.example/", "https://s.example", "s.example", "", 0, false},
		{"https://10.0.0.7:8443/a/b//", "https://10.0.0.7:8443/a/b", "10.0.0.7", "/a/b",
			8443, false},
		{"https://[2001:db8::7]:80/x", "https://[2001:db8::7]:80/x", "[2001:db8::7]", "/x",
			80, false},
		{"http://127.0.0.1:65535", "http://127.0.0.1:65535", "127.0.0.1", "", 65535, true},
		{"http://localhost", "http://localhost", "localhost", "", 0, true},
		{"http://[::1]:1", "http://[::1]:1", "[::1]", "", 1, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct url u;

		must(url_read(str_from(rows[i].text), &u) == 0);
		check_str(u.text, rows[i].whole);
		check_str(u.host, rows[i].host);
		check_str(u.path, rows[i].path);
		check_int(u.port, rows[i].port);
		check_int(u.is_plain, rows[i].is_plain);
	}
}

/* More of them: cloche-provider-e2b/test-place.c. */
static void others_are_none(void)
{
	static const char *const rows[] = {"", "s.example", "https://", "https://x@s.example",
		"https://s.example?x", "https://s.example#x", "https://s.example:0",
		"https://s.example:65536", "https://s.example:", "https://s.example/../x",
		"https://s.example/a b", "https://[::1", "ftp://s.example"};
	struct url u;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_int(url_read(str_from(rows[i]), &u), -EINVAL);
	check_int(url_read(STR("http://s.example"), &u), -EPERM);
	check_int(url_read(STR("http://127.0.0.1.s.example/"), &u), -EPERM);
}

int main(void)
{
	run_test(addresses_are_taken_apart);
	run_test(others_are_none);
	return tap_done();
}
