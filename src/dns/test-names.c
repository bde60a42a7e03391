/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <tap.h>

static const char *addrs(const struct dns_result *r)
{
	static char text[1000];
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; r && i < r->n; i++) {
		char one[INET6_ADDRSTRLEN];
		const union dns_addr *a = &r->addrs[i];

		inet_ntop(a->sa.sa_family,
			a->sa.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
						   : (const void *)&a->v6.sin6_addr,
			one, sizeof(one));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", one);
	}
	return text;
}

static void a_hosts_file(void)
{
	struct dns_names m = {.max = 100};

	check_int(dns_hosts_parse(&m, STR("# comment\n"
					  "127.0.0.1\tlocalhost\n"
					  "::1 localhost ip6-localhost\r\n"
					  "  10.0.0.1   One.Example. two # three\n"
					  "10.0.0.2 one.example\n"
					  "10.0.0.2 one.example\n"
					  "garbage line\n"
					  "300.0.0.1 bad\n"
					  "1.2.3.4 ok bad..name also_ok \xff\n"
					  "1.2.3.4\n"
					  "\n\n5.6.7.8 last")),
		0);
	check_z(addrs(dns_names_get(&m, STR("localhost"), 1)), "127.0.0.1 ::1");
	check_z(addrs(dns_names_get(&m, STR("ip6-localhost"), 1)), "::1");
	check_z(addrs(dns_names_get(&m, STR("one.example"), 1)), "10.0.0.1 10.0.0.2");
	check_z(addrs(dns_names_get(&m, STR("two"), 1)), "10.0.0.1");
	check_z(addrs(dns_names_get(&m, STR("also_ok"), 1)), "1.2.3.4");
	check_z(addrs(dns_names_get(&m, STR("last"), 1)), "5.6.7.8");
	check(!dns_names_get(&m, STR("three"), 1) && !dns_names_get(&m, STR("bad"), 1));
	check_int(m.count, 7);
	dns_names_done(&m);
}

static void entries_expire_and_make_room(void)
{
	struct dns_names m = {.max = 3};
	struct dns_result r = {.n = 1, .expires_usec = 100};

	check_int(dns_names_put(&m, STR("a"), &r), 0);
	check_int(dns_names_put(&m, STR("b"), &r), 0);
	check_int(dns_names_put(&m, STR("c"), &r), 0);
	check(dns_names_get(&m, STR("a"), 99));
	check_int(dns_names_put(&m, STR("d"), &r), 0);
	check_int(m.count, 3);
	check(!dns_names_get(&m, STR("b"), 99));
	check(dns_names_get(&m, STR("a"), 99));
	check(!dns_names_get(&m, STR("a"), 100));
	check_int(m.count, 2);
	r.expires_usec = 200;
	check_int(dns_names_put(&m, STR("c"), &r), 0);
	check(dns_names_get(&m, STR("c"), 150));
	check_int(m.count, 2);
	dns_names_done(&m);
}

static void results_are_bounded(void)
{
	struct dns_result r = {0};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = 80};
	struct sockaddr other = {.sa_family = AF_UNIX};

	dns_result_add(&r, &other);
	check_int(r.n, 0);
	for (unsigned i = 0; i < 100; i++) {
		sa.sin_addr.s_addr = i;
		dns_result_add(&r, (struct sockaddr *)&sa);
		dns_result_add(&r, (struct sockaddr *)&sa);
	}
	check_int(r.n, DNS_ADDRS_MAX);
	check_int(r.addrs[0].v4.sin_port, 0);
	check(r.addrs[0].v4.sin_addr.s_addr != r.addrs[1].v4.sin_addr.s_addr);
}

static void names_become_canonical(void)
{
	char text[300];
	static const char *const bad[] = {"", ".", "a..b", ".a", "a b", "a/b", "\xff", "a..",
		"x23456789012345678901234567890123456789012345678901234567890xyzw"};
	struct str s;

	check_int(dns_name_canonical(STR("A_b-C.9."), text, &s), 0);
	check_str(s, "a_b-c.9");
	check_z(text, "a_b-c.9");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_int(dns_name_canonical(str_from(bad[i]), text, &s), -EINVAL);
	memset(text, 'a', sizeof(text));
	for (size_t i = 50; i < sizeof(text); i += 50)
		text[i] = '.';
	check_int(dns_name_canonical(str_make(text, 254), text, &s), -EINVAL);
	check_int(dns_name_canonical(str_make(text, 253), text, &s), 0);
}

static void servers(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {{"", "127.0.0.1"}, {"# nameserver 1.1.1.1\nsearch x\n", "127.0.0.1"},
		{"nameserver 192.0.2.1", "192.0.2.1"},
		{"domain a\nnameserver\t192.0.2.1 # here\r\n nameserver 2001:db8::1\r\n"
		 "nameserver fe80::1%eth0\nnameserver\nnameservers 192.0.2.9\n"
		 "nameserver 192.0.2.2\nnameserver 192.0.2.3\n",
			"192.0.2.1,[2001:db8::1],192.0.2.2"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_donep) struct buf got = BUF_INIT(4096);

		check_int(dns_servers_parse(&got, str_from(cases[i].text)), 0);
		check_str(buf_str(&got), cases[i].want);
	}
}

int main(void)
{
	run_test(a_hosts_file);
	run_test(entries_expire_and_make_room);
	run_test(results_are_bounded);
	run_test(names_become_canonical);
	run_test(servers);
	return tap_done();
}
