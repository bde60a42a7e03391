/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/synthetic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <tap.h>
#include <torture.h>

static struct str of4(struct dns_synthetic *m, struct in_addr a)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = a, .sin_port = 99};

	return dns_synthetic_name(m, (struct sockaddr *)&sa);
}

static struct str of6(struct dns_synthetic *m, struct in6_addr a)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = a};

	return dns_synthetic_name(m, (struct sockaddr *)&sa);
}

static void there_and_back(void)
{
	_cleanup_(dns_synthetic_freep) struct dns_synthetic *m = dns_synthetic_new(100);
	struct in6_addr six, mapped = IN6ADDR_ANY_INIT;
	struct in_addr four, again;
	char text[INET6_ADDRSTRLEN];

	must(m);
	check_int(dns_synthetic_get(m, STR("API.Example."), &four, &six), 0);
	check_str(of4(m, four), "api.example");
	check_str(of6(m, six), "api.example");
	check_z(inet_ntop(AF_INET, &four, text, sizeof(text)), "198.18.0.1");
	check_z(inet_ntop(AF_INET6, &six, text, sizeof(text)), "fd00:c10c::1");
	mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
	memcpy(mapped.s6_addr + 12, &four, 4);
	check_str(of6(m, mapped), "api.example");
	check_int(dns_synthetic_get(m, STR("api.EXAMPLE"), &again, NULL), 0);
	check_int(again.s_addr, four.s_addr);
	check_int(dns_synthetic_count(m), 1);
	check_int(dns_synthetic_get(m, STR("b"), &again, NULL), 0);
	check(again.s_addr != four.s_addr);
	check_int(dns_synthetic_get(m, STR(""), &again, NULL), -EINVAL);
	check_int(dns_synthetic_get(m, STR("."), &again, NULL), -EINVAL);
}

static void what_is_not_ours(void)
{
	_cleanup_(dns_synthetic_freep) struct dns_synthetic *m = dns_synthetic_new(100);
	struct sockaddr un = {.sa_family = AF_UNIX};
	struct in_addr a;

	must(m);
	check_int(dns_synthetic_get(m, STR("x"), &a, NULL), 0);
	a.s_addr = htonl(0xc6120002);
	check(of4(m, a).p == NULL);
	a.s_addr = htonl(0xc6120000);
	check(of4(m, a).p == NULL);
	a.s_addr = htonl(0x08080808);
	check(of4(m, a).p == NULL);
	check(of6(m, in6addr_loopback).p == NULL);
	check(dns_synthetic_name(m, &un).p == NULL);
}

static void name_of(unsigned i, char text[32])
{
	snprintf(text, 32, "name-%u.example", i);
}

/* The least recently used name goes, and its address rests before it means another one. */
static void old_names_leave(void)
{
	enum { MAX_NAMES = 1000, MANY = 300000 };
	_cleanup_(dns_synthetic_freep) struct dns_synthetic *m = dns_synthetic_new(MAX_NAMES);
	struct in_addr first, kept, a;
	char text[32];
	unsigned reused_at = 0;

	must(m);
	check_int(dns_synthetic_get(m, STR("first"), &first, NULL), 0);
	check_int(dns_synthetic_get(m, STR("kept"), &kept, NULL), 0);
	for (unsigned i = 0; i < MANY; i++) {
		name_of(i, text);
		must(dns_synthetic_get(m, str_from(text), &a, NULL) == 0);
		check(a.s_addr != kept.s_addr);
		if (a.s_addr == first.s_addr && !reused_at)
			reused_at = i;
		/* Used by name, or by address. */
		if (i % 500 == 0)
			check_int(dns_synthetic_get(m, STR("kept"), NULL, NULL), 0);
		if (i % 500 == 250)
			check_str(of4(m, kept), "kept");
	}
	check_int(dns_synthetic_count(m), MAX_NAMES);
	check(reused_at > 100000);
	for (unsigned i = MANY - 900; i < MANY; i++) {
		name_of(i, text);
		check_int(dns_synthetic_get(m, str_from(text), &a, NULL), 0);
		check_str(of4(m, a), text);
	}
	check_int(dns_synthetic_count(m), MAX_NAMES);
}

static void all_addresses_are_different(void)
{
	_cleanup_(dns_synthetic_freep) struct dns_synthetic *m =
		dns_synthetic_new(DNS_SYNTHETIC_NAMES + 5);
	_cleanup_(freep) uint8_t *seen = calloc(1, 131072);
	struct in_addr a;
	char text[32];

	must(m && seen);
	for (unsigned i = 0; i < DNS_SYNTHETIC_NAMES; i++) {
		name_of(i, text);
		must(dns_synthetic_get(m, str_from(text), &a, NULL) == 0);
		check((ntohl(a.s_addr) & 0xfffe0000) == 0xc6120000);
		check(!seen[ntohl(a.s_addr) & 0x1ffff]++);
	}
	check_int(dns_synthetic_count(m), DNS_SYNTHETIC_NAMES);
	check_int(dns_synthetic_get(m, STR("one-more"), &a, NULL), 0);
	check_int(dns_synthetic_count(m), DNS_SYNTHETIC_NAMES);
}

static void without_memory(void)
{
	_cleanup_(dns_synthetic_freep) struct dns_synthetic *m = dns_synthetic_new(10);
	struct in_addr a;
	char text[32];
	int r = m ? 0 : -ENOMEM;

	for (unsigned i = 0; i < 30 && r == 0; i++) {
		name_of(i, text);
		r = dns_synthetic_get(m, str_from(text), &a, NULL);
		if (r == 0)
			check_str(of4(m, a), text);
	}
	/* Only a table's growth may fail without a word. */
	check(r == 0 || (r == -ENOMEM && torture_failed));
}

static void memory_runs_out(void)
{
	torture(without_memory);
}

int main(void)
{
	run_test(there_and_back);
	run_test(what_is_not_ours);
	run_test(old_names_leave);
	run_test(all_addresses_are_different);
	run_test(memory_runs_out);
	return tap_done();
}
