/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"
#include "tap.h"

static struct cloche_err err;

static void addresses_follow_from_a_place(void)
{
	static const struct {
		const char *place, *domain, *api, *envd;
	} rows[] = {
		{"e2b.app", "", "https://api.e2b.app", "https://49983-i1.e2b.app"},
		{"e2b.app", "e2b.app", "https://api.e2b.app", "https://49983-i1.e2b.app"},
		{"e2b.app", "eu.e2b.app", "https://api.e2b.app", "https://49983-i1.eu.e2b.app"},
		{"e2b.app", "evil.example", "https://api.e2b.app", "https://49983-i1.e2b.app"},
		{"e2b.app", "evile2b.app", "https://api.e2b.app", "https://49983-i1.e2b.app"},
		{"e2b.app", "x/.e2b.app", "https://api.e2b.app", "https://49983-i1.e2b.app"},
		{"https://s.example/", "evil.example", "https://s.example", "https://s.example"},
		{"https://10.0.0.7:8443/v1/e2b/", "", "https://10.0.0.7:8443/v1/e2b",
			"https://10.0.0.7:8443/v1/e2b"},
		{"https://[2001:db8::7]:80", "", "https://[2001:db8::7]:80",
			"https://[2001:db8::7]:80"},
		{"http://127.0.0.1:3000", "", "http://127.0.0.1:3000", "http://127.0.0.1:3000"},
		{"http://localhost", "", "http://localhost", "http://localhost"},
		{"http://[::1]:1/x", "", "http://[::1]:1/x", "http://[::1]:1/x"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(buf_donep) struct buf api = BUF_INIT(1024), envd = BUF_INIT(1024);
		struct place p;

		must(place_read(rows[i].place, &p, &err) == 0);
		check_int(place_add_api(&p, &api), 0);
		check_int(place_add_envd(&p, STR("i1"), str_from(rows[i].domain), &envd), 0);
		check_str(buf_str(&api), rows[i].api);
		check_str(buf_str(&envd), rows[i].envd);
	}
}

static void others_are_refused(void)
{
	static const char *const rows[] = {"", "e2b", "-e2b.app", "e2b.app.", "e2b..app",
		"e2b.app/x", "e2b.app:80", "a b.c", "https://", "https:///x", "https://a_b",
		"https://x@s.example", "https://x:y@s.example", "https://s.example?x",
		"https://s.example#x", "https://s.example:0x1",
		"https://s.example:", "https://s.example:123456", "https://s.example/../x",
		"https://s.example/%2e", "https://s.example\n", "https://[::1", "https://[x]/",
		"HTTPS://s.example", "ftp://s.example", "file:///etc/passwd", "http://s.example",
		"http://127.0.0.1.s.example", "http://localhost.s.example",
		"http://127.0.0.1@s.example", "http://10.0.0.1"};
	char long_one[PLACE_TEXT_MAX + 20] = "https://s.example/";
	struct place p;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_int(place_read(rows[i], &p, &err), -E_USAGE);
		if (tap_ok_now && (!err.message[0] || !err.hint[0]))
			tap_fail_at(__FILE__, __LINE__, "nothing is said of %s", rows[i]);
	}
	check_int(place_read("http://s.example", &p, &err), -E_USAGE);
	check(strstr(err.message, "without TLS"));
	memset(long_one + strlen(long_one), 'x', sizeof(long_one) - strlen(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	check_int(place_read(long_one, &p, &err), -E_USAGE);
}

static void names_are_judged(void)
{
	check(place_is_id(STR("i2k9-a0b1")) && place_is_id(STR("sandbox-x")));
	check(!place_is_id(STR("")) && !place_is_id(STR("a.b")) && !place_is_id(STR("a/b")));
	check(!place_is_id(STR("-x")) && !place_is_id(STR("a\nb")) && !place_is_id(STR("a@b")));
	check(place_is_template(STR("team/base:v1.2_x")));
	check(!place_is_template(STR("")) && !place_is_template(STR("a b")));
	check(!place_is_template(STR("-x")) && !place_is_template(STR("a\"b")));
}

int main(void)
{
	run_test(addresses_follow_from_a_place);
	run_test(others_are_refused);
	run_test(names_are_judged);
	return tap_done();
}
