/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "policy/host.h"

#include "seeded.h"
#include "tap.h"

#define L63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *in, *want; /* NULL: refused */
	enum host_kind kind;
} hosts[] = {
	{"allowed.com", "allowed.com", HOST_NAME},
	{"allowed.com.", "allowed.com", HOST_NAME},
	{"ALLOWED.Com", "allowed.com", HOST_NAME},
	{"localhost", "localhost", HOST_NAME},
	{"_dmarc.x.com", "_dmarc.x.com", HOST_NAME},
	{"r3---sn.x.com", "r3---sn.x.com", HOST_NAME},
	{"xn--bcher-kva.example", "xn--bcher-kva.example", HOST_NAME},
	{"1password.com", "1password.com", HOST_NAME},
	{"4.com", "4.com", HOST_NAME},
	{"0xdead.com", "0xdead.com", HOST_NAME},
	{"a.0b", "a.0b", HOST_NAME},
	{"a.0xg", "a.0xg", HOST_NAME},
	{"1.2.3.4", "1.2.3.4", HOST_IPV4},
	{"1.2.3.4.", "1.2.3.4", HOST_IPV4},
	{"0.0.0.0", "0.0.0.0", HOST_IPV4},
	{"255.255.255.255", "255.255.255.255", HOST_IPV4},
	{"[::1]", "[::1]", HOST_IPV6},
	{"[2001:DB8:0:0::1]", "[2001:db8::1]", HOST_IPV6},
	{"[64:ff9b::1.2.3.4]", "[64:ff9b::102:304]", HOST_IPV6},
	{L63 "." L63 "." L63 "." L61, L63 "." L63 "." L63 "." L61, HOST_NAME},
	{L63 "." L63 "." L63 "." L61 ".", L63 "." L63 "." L63 "." L61, HOST_NAME},
	/* not hosts */
	{"", NULL, 0},
	{".", NULL, 0},
	{"..", NULL, 0},
	{"a..b", NULL, 0},
	{".a", NULL, 0},
	{"a..", NULL, 0},
	{"a b", NULL, 0},
	{" a", NULL, 0},
	{"a\t", NULL, 0},
	{"a\n", NULL, 0},
	{"evil.com#.allowed.com", NULL, 0},
	{"evil.com%2f.allowed.com", NULL, 0},
	{"evil.com/.allowed.com", NULL, 0},
	{"evil.com\\.allowed.com", NULL, 0},
	{"user@allowed.com", NULL, 0},
	{"allowed.com,evil.com", NULL, 0},
	{"allowed.com?", NULL, 0},
	{"allowed.com:443", NULL, 0},
	{"*.com", NULL, 0},
	{"b\xc3\xbc"
	 "cher.example",
		NULL, 0},
	{"allowed\xef\xbc\x8e"
	 "com",
		NULL, 0},
	{"allowed.com\x7f", NULL, 0},
	{L63 "a.com", NULL, 0},
	{L63 "." L63 "." L63 "." L63, NULL, 0},
	/* other spellings of addresses */
	{"127.1", NULL, 0},
	{"127.0.1", NULL, 0},
	{"2130706433", NULL, 0},
	{"0x7f000001", NULL, 0},
	{"0x7f.1", NULL, 0},
	{"0x7f.0.0.1", NULL, 0},
	{"0X7F.0.0.1", NULL, 0},
	{"127.0.0.0x1", NULL, 0},
	{"0177.0.0.1", NULL, 0},
	{"127.0.0.01", NULL, 0},
	{"256.1.1.1", NULL, 0},
	{"1.2.3.4.5", NULL, 0},
	{"1.2.3", NULL, 0},
	{"a.1", NULL, 0},
	{"a.0x", NULL, 0},
	{"0", NULL, 0},
	{"::1", NULL, 0},
	{"[::1", NULL, 0},
	{"[]", NULL, 0},
	{"[::1%eth0]", NULL, 0},
	{"[::1%25lo]", NULL, 0},
	{"[::ffff:169.254.169.254]", NULL, 0},
	{"[::ffff:a9fe:a9fe]", NULL, 0},
	{"[1.2.3.4]", NULL, 0},
	{"[v1.x]", NULL, 0},
	{"[[::1]]", NULL, 0},
};

static void test_hosts(void)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct host h = {.n = 12345}, again;
		int r = host_parse(str_from(hosts[i].in), &h);

		if ((r == 0) != (hosts[i].want != NULL))
			tap_fail("\"%s\": %d", hosts[i].in, r);
		if (r < 0) {
			check(h.n == 12345);
			continue;
		}
		check_str(host_str(&h), hosts[i].want);
		check_int(h.kind, hosts[i].kind);
		/* the canonical form is its own canonical form */
		must(host_parse(host_str(&h), &again) == 0);
		check(str_eq(host_str(&h), host_str(&again)) && h.kind == again.kind);
	}
}

static void test_nul(void)
{
	struct host h;
	uint16_t port;

	check(host_parse(STR("allowed.com\0.evil.com"), &h) < 0);
	check(host_parse(STR("allowed.com\0"), &h) < 0);
	check(host_parse(STR("[::1\0]"), &h) < 0);
	check(host_parse_authority(STR("allowed.com:44\0003"), &h, &port) < 0);
	check(host_parse(STR_NULL, &h) < 0);
}

static void test_authority(void)
{
	static const struct {
		const char *in, *host; /* NULL: refused */
		uint16_t port;
	} cases[] = {
		{"allowed.com", "allowed.com", 0},
		{"allowed.com:443", "allowed.com", 443},
		{"ALLOWED.com.:444", "allowed.com", 444},
		{"1.2.3.4:80", "1.2.3.4", 80},
		{"[::1]:65535", "[::1]", 65535},
		{"[::1]", "[::1]", 0},
		{"allowed.com:", NULL, 0},
		{"allowed.com:0", NULL, 0},
		{"allowed.com:0443", NULL, 0},
		{"allowed.com:+443", NULL, 0},
		{"allowed.com: 443", NULL, 0},
		{"allowed.com:443 ", NULL, 0},
		{"allowed.com:65536", NULL, 0},
		{"allowed.com:4294967739", NULL, 0},
		{"allowed.com:443:443", NULL, 0},
		{":443", NULL, 0},
		{"", NULL, 0},
		{"[::1]443", NULL, 0},
		{"[::1]:", NULL, 0},
		{"[::1", NULL, 0},
		{"::1:443", NULL, 0},
		{"a@allowed.com:443", NULL, 0},
		{"allowed.com:443@evil.com", NULL, 0},
		{"allowed.com:443/x", NULL, 0},
		{"allowed.com:0x1bb", NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host h;
		uint16_t port = 7;
		int r = host_parse_authority(str_from(cases[i].in), &h, &port);

		if ((r == 0) != (cases[i].host != NULL))
			tap_fail("\"%s\": %d", cases[i].in, r);
		if (r == 0 && cases[i].host) {
			check_str(host_str(&h), cases[i].host);
			check_int(port, cases[i].port);
		}
	}
}

static bool matches(const char *pattern, const char *host)
{
	char canonical[HOST_MAX + 1];
	struct host h;

	must(host_pattern_parse(str_from(pattern), canonical) == 0);
	must(host_parse(str_from(host), &h) == 0);
	return host_pattern_matches(str_from(canonical), &h);
}

static void test_patterns(void)
{
	static const char *const bad[] = {"", ".", "*..x", ".*", "a b*", "*/x", "*:443", "*@x",
		"*#", "https://*", "*\\", "b\xc3\xbc*", "http://x", "x:1", "*%2f", "[::1]*"};
	char text[HOST_MAX + 1];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (host_pattern_parse(str_from(bad[i]), text) == 0)
			tap_fail("accepted %s", bad[i]);
	check(matches("*.X.com.", "a.x.COM"));
	check(matches("*.x.com", "a.b.x.com."));
	check(!matches("*.x.com", "x.com"));
	check(!matches("*.x.com", "evilx.com"));
	check(!matches("x.com", "a.x.com"));
	check(!matches("*.x.com", "x.com.evil.org"));
	check(matches("api-?.x.com", "api-1.x.com"));
	check(!matches("api-?.x.com", "api-12.x.com"));
	check(matches("api-[12]*.x.com", "api-1.x.com"));
	check(!matches("api-[!12]*.x.com", "api-1.x.com"));
	check(matches("*", "anything.at.all"));
	/* only exact A-labels match: the look-alike is another name */
	check(!matches("xn--pple-43d.com", "apple.com"));
	check(matches("XN--PPLE-43D.com", "xn--pple-43d.com"));
	/* addresses have to be written out */
	check(!matches("*", "1.2.3.4"));
	check(!matches("1.2.3.*", "1.2.3.4"));
	check(!matches("*", "[::1]"));
	check(matches("1.2.3.4", "1.2.3.4"));
	check(matches("[0::1]", "[::1]"));
}

/* Whatever is accepted holds only what a canonical host may hold. */
static void test_random(void)
{
	static const char bytes[] = "aZ09.-_:[]x@/#%\0 \x80";

	for (int i = 0; i < 50000; i++) {
		char s[24];
		uint32_t n = rand_below(sizeof(s));
		struct host h, again;

		for (uint32_t j = 0; j < n; j++)
			s[j] = bytes[rand_below(sizeof(bytes) - 1)];
		if (host_parse(str_make(s, n), &h) < 0)
			continue;
		check(strspn(h.text, "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") == h.n);
		check(h.n <= HOST_MAX && h.text[h.n] == '\0');
		check(host_parse(host_str(&h), &again) == 0 &&
			str_eq(host_str(&h), host_str(&again)));
	}
}

int main(void)
{
	seeded_begin();
	run_test(test_hosts);
	run_test(test_nul);
	run_test(test_authority);
	run_test(test_patterns);
	run_test(test_random);
	return tap_done();
}
