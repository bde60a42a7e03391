/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/address.h"

#include "tap.h"
#include <arpa/inet.h>
#include <sys/un.h>

static struct sockaddr_storage make(const char *text)
{
	struct sockaddr_storage ss = {0};
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		memcpy(&ss, &in, sizeof(in));
	else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		memcpy(&ss, &in6, sizeof(in6));
	else
		must(false);
	return ss;
}

static const char *refusal(const char *text, const struct address_policy *p)
{
	struct sockaddr_storage ss = make(text);

	return address_refusal((const struct sockaddr *)&ss, p);
}

static const struct {
	const char *addr, *refused; /* with no rule */
	const char *with_private;   /* with allow_private: true */
} cases[] = {
	{"1.1.1.1", NULL, NULL},
	{"8.8.8.8", NULL, NULL},
	{"100.63.255.255", NULL, NULL},
	{"100.128.0.0", NULL, NULL},
	{"172.15.0.1", NULL, NULL},
	{"172.32.0.1", NULL, NULL},
	{"11.0.0.0", NULL, NULL},
	{"223.255.255.255", NULL, NULL},
	{"2606:4700:4700::1111", NULL, NULL},
	{"2a00:1450::1", NULL, NULL},
	{"2001:4860:4860::8888", NULL, NULL},
	{"0.0.0.0", "unspecified address", "unspecified address"},
	{"0.1.2.3", "unspecified address", "unspecified address"},
	{"10.0.0.1", "private address", NULL},
	{"10.255.255.255", "private address", NULL},
	{"172.16.0.1", "private address", NULL},
	{"172.31.255.255", "private address", NULL},
	{"192.168.1.1", "private address", NULL},
	{"100.64.0.1", "shared address space (carrier-grade NAT)", NULL},
	{"127.0.0.1", "loopback address", NULL},
	{"127.255.255.254", "loopback address", NULL},
	{"169.254.1.1", "link-local address", "link-local address"},
	{"169.254.169.254", "cloud metadata address", "cloud metadata address"},
	{"169.254.170.2", "cloud metadata address", "cloud metadata address"},
	{"168.63.129.16", "cloud metadata address", "cloud metadata address"},
	{"100.100.100.200", "cloud metadata address", "cloud metadata address"},
	{"192.0.0.192", "cloud metadata address", "cloud metadata address"},
	{"192.0.0.8", "reserved address", "reserved address"},
	{"192.0.2.1", "documentation address", "documentation address"},
	{"198.51.100.7", "documentation address", "documentation address"},
	{"203.0.113.7", "documentation address", "documentation address"},
	{"192.88.99.1", "6to4 relay address", "6to4 relay address"},
	{"198.18.0.1", "benchmarking address", "benchmarking address"},
	{"198.19.255.255", "benchmarking address", "benchmarking address"},
	{"224.0.0.1", "multicast address", "multicast address"},
	{"239.255.255.250", "multicast address", "multicast address"},
	{"240.0.0.1", "reserved address", "reserved address"},
	{"255.255.255.255", "broadcast address", "broadcast address"},
	{"::", "unspecified address", "unspecified address"},
	{"::1", "loopback address", NULL},
	{"::2", "not a global unicast address", "not a global unicast address"},
	{"::7f00:1", "not a global unicast address", "not a global unicast address"},
	{"::ffff:127.0.0.1", "loopback address", NULL},
	{"::ffff:169.254.169.254", "cloud metadata address", "cloud metadata address"},
	{"::ffff:10.1.2.3", "private address", NULL},
	{"::ffff:1.1.1.1", NULL, NULL},
	{"64:ff9b::1.1.1.1", NULL, NULL},
	{"64:ff9b::10.0.0.1", "private address", NULL},
	{"64:ff9b::169.254.169.254", "cloud metadata address", "cloud metadata address"},
	{"64:ff9b::127.0.0.1", "loopback address", NULL},
	{"64:ff9b:1::1.1.1.1", "local NAT64 address", "local NAT64 address"},
	{"100::1", "discard-only address", "discard-only address"},
	{"2001::1", "Teredo address", "Teredo address"},
	{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo address", "Teredo address"},
	{"2001:10::1", "reserved address", "reserved address"},
	{"2001:db8::1", "documentation address", "documentation address"},
	{"3fff::1", "documentation address", "documentation address"},
	{"2002:7f00:1::", "6to4 address", "6to4 address"},
	{"fc00::1", "unique local address", NULL},
	{"fd12:3456::1", "unique local address", NULL},
	{"fd00:ec2::254", "cloud metadata address", "cloud metadata address"},
	{"fd20:ce::254", "cloud metadata address", "cloud metadata address"},
	{"fe80::1", "link-local address", "link-local address"},
	{"fec0::1", "site-local address", "site-local address"},
	{"ff02::1", "multicast address", "multicast address"},
	{"4000::1", "not a global unicast address", "not a global unicast address"},
	{"5f00::1", "not a global unicast address", "not a global unicast address"},
};

static void test_table(void)
{
	const struct address_policy none = {0}, open = {.allow_private = true};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_z(refusal(cases[i].addr, &none), cases[i].refused);
		check_z(refusal(cases[i].addr, &open), cases[i].with_private);
	}
}

static void test_named_ranges(void)
{
	struct cidr ranges[3];
	const struct address_policy p = {.allow = ranges, .n_allow = 3};

	must(cidr_parse(STR("10.1.0.0/16"), &ranges[0]) == 0);
	must(cidr_parse(STR("169.254.169.254"), &ranges[1]) == 0);
	must(cidr_parse(STR("fe80::/64"), &ranges[2]) == 0);
	check_z(refusal("10.1.2.3", &p), NULL);
	check_z(refusal("::ffff:10.1.2.3", &p), NULL);
	check_z(refusal("64:ff9b::10.1.2.3", &p), NULL);
	check_z(refusal("10.2.2.3", &p), "private address");
	check_z(refusal("169.254.169.254", &p), NULL);
	check_z(refusal("169.254.169.253", &p), "link-local address");
	check_z(refusal("fe80::5", &p), NULL);
	check_z(refusal("127.0.0.1", &p), "loopback address");
}

/* What somebody may want to open, and what may be asked away by nobody. */
static void test_advice(void)
{
	static const char *const good[] = {"10.1.2.3", "192.168.1.1", "100.64.0.1", "127.0.0.1",
		"fd00::1", "::1", "203.0.113.7", "192.0.2.1", "198.51.100.1", "198.19.0.1",
		"240.0.0.1", "2001:db8::1", "3fff::1", "fec0::1", "64:ff9b::203.0.113.7"};
	static const char *const bad[] = {"169.254.169.254", "169.254.170.2", "168.63.129.16",
		"100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "169.254.1.1",
		"fe80::1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "ff02::1", "::", "192.0.0.1",
		"2002:a9fe:a9fe::1", "2001::1", "4000::1", "64:ff9b::169.254.169.254",
		"::ffff:169.254.169.254"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct sockaddr_storage ss = make(good[i]);

		check(address_may_be_advised((const struct sockaddr *)&ss));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct sockaddr_storage ss = make(bad[i]);

		check(!address_may_be_advised((const struct sockaddr *)&ss));
	}
}

static void test_never(void)
{
	struct cidr all[2];
	const struct address_policy p = {.allow = all, .n_allow = 2, .allow_private = true};

	must(cidr_parse(STR("0.0.0.0/0"), &all[0]) == 0);
	must(cidr_parse(STR("::/0"), &all[1]) == 0);
	check_z(refusal("127.0.0.1", &p), NULL);
	check_z(refusal("0.0.0.0", &p), "unspecified address");
	check_z(refusal("::", &p), "unspecified address");
	check_z(refusal("224.0.0.1", &p), "multicast address");
	check_z(refusal("ff02::1", &p), "multicast address");
	check_z(refusal("255.255.255.255", &p), "broadcast address");
}

static void test_own(void)
{
	struct cidr own[2], named;
	struct address_policy p = {.own = own, .n_own = 2};

	must(cidr_parse(STR("93.184.216.34"), &own[0]) == 0);
	must(cidr_parse(STR("2606:2800::5"), &own[1]) == 0);
	check_z(refusal("93.184.216.34", &p), "address of this host");
	check_z(refusal("::ffff:93.184.216.34", &p), "address of this host");
	check_z(refusal("64:ff9b::93.184.216.34", &p), "address of this host");
	check_z(refusal("2606:2800::5", &p), "address of this host");
	check_z(refusal("93.184.216.35", &p), NULL);
	must(cidr_parse(STR("93.184.216.34/32"), &named) == 0);
	p.allow = &named;
	p.n_allow = 1;
	check_z(refusal("93.184.216.34", &p), NULL);
	check_z(refusal("2606:2800::5", &p), "address of this host");
}

static void test_family(void)
{
	const struct sockaddr_un un = {.sun_family = AF_UNIX};
	const struct address_policy open = {.allow_private = true};

	check_z(address_refusal((const struct sockaddr *)&un, &open), "not an internet address");
}

static void test_cidr(void)
{
	static const struct {
		const char *in, *out;
	} good[] = {{"10.0.0.0/8", "10.0.0.0/8"}, {"0.0.0.0/0", "0.0.0.0/0"},
		{"1.2.3.4", "1.2.3.4/32"}, {"1.2.3.4/32", "1.2.3.4/32"}, {"fd00::/8", "fd00::/8"},
		{"::/0", "::/0"}, {"::1", "::1/128"}, {"10.128.0.0/9", "10.128.0.0/9"}};
	static const char *const bad[] = {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8",
		"10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0/-1", "10/8", "10.0.0/8", "fd00::1/8",
		"::/129", "[::1]", "host", "10.0.0.0/8/8", "10.128.0.0/8", "010.0.0.0/8",
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111"};
	char text[CIDR_TEXT_MAX];
	struct cidr c;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		must(cidr_parse(str_from(good[i].in), &c) == 0);
		cidr_format(&c, text);
		check_z(text, good[i].out);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cidr_parse(str_from(bad[i]), &c) == 0)
			tap_fail("accepted %s", bad[i]);
	check(cidr_parse(STR("1.2.3.4\0"), &c) < 0);
}

int main(void)
{
	run_test(test_table);
	run_test(test_named_ranges);
	run_test(test_advice);
	run_test(test_never);
	run_test(test_own);
	run_test(test_family);
	run_test(test_cidr);
	return tap_done();
}
