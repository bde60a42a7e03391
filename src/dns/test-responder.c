/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/responder.h"

#include <tap.h>

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"

static struct dns_synthetic *map;
static struct dns_event event;

/* Asks for name (one label, or two with a dot) and leaves the event; returns what dns_respond did.
 */
static int ask(const char *name, unsigned type, unsigned class)
{
	_cleanup_(buf_donep) struct buf packet = BUF_INIT(1000), out = BUF_INIT(2000);
	struct str left = str_from(name);

	must(buf_add_str(&packet, STR(HEAD)) == 0);
	while (left.n) {
		size_t n = str_chr(left, '.');

		must(buf_add_char(&packet, (char)n) == 0);
		must(buf_add(&packet, left.p, n) == 0);
		left = str_from_index(left, n + 1);
	}
	must(buf_add_char(&packet, 0) == 0);
	for (int i = 1; i >= 0; i--)
		must(buf_add_char(&packet, (char)(type >> (8 * i))) == 0);
	for (int i = 1; i >= 0; i--)
		must(buf_add_char(&packet, (char)(class >> (8 * i))) == 0);
	return dns_respond(map, buf_str(&packet), false, &out, &event);
}

static void names_get_addresses(void)
{
	struct in_addr four;
	struct in6_addr six;

	check_int(ask("API.example", DNS_TYPE_A, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_A);
	check_int(dns_synthetic_get(map, STR("api.example"), &four, &six), 0);
	check_int(event.answer.v4.s_addr, four.s_addr);
	check_str(dns_query_name(&event.query), "API.example");
	check_int(ask("api.example", DNS_TYPE_AAAA, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_AAAA);
	check(memcmp(&event.answer.v6, &six, sizeof(six)) == 0);
}

static void everything_else_is_nodata(void)
{
	unsigned before = dns_synthetic_count(map);

	for (unsigned type = 0; type < 70; type++) {
		if (type == DNS_TYPE_A || type == DNS_TYPE_AAAA)
			continue;
		check_int(ask("secret.data.evil.example", type, 1), 1);
		check_int(event.answer.kind, DNS_ANSWER_NODATA);
	}
	check_int(ask("x", 255, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_NODATA);
	check_int(ask("x", 65535, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_NODATA);
	check_int(ask("version.bind", DNS_TYPE_A, 3), 1);
	check_int(event.answer.kind, DNS_ANSWER_NODATA);
	check_int(ask("", DNS_TYPE_A, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_NODATA);
	check_int(ask("1.0.18.198.in-addr.arpa", DNS_TYPE_PTR, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_NODATA);
	check_int(dns_synthetic_count(map), before);
}

static void localhost_is_the_rooms_own(void)
{
	static const char *const names[] = {"localhost", "LocalHost", "a.b.localhost"};
	unsigned before = dns_synthetic_count(map);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		check_int(ask(names[i], DNS_TYPE_A, 1), 1);
		check_int(ntohl(event.answer.v4.s_addr), 0x7f000001);
		check_int(ask(names[i], DNS_TYPE_AAAA, 1), 1);
		check(IN6_IS_ADDR_LOOPBACK(&event.answer.v6));
	}
	check_int(dns_synthetic_count(map), before);
	check_int(ask("notlocalhost", DNS_TYPE_A, 1), 1);
	check(event.answer.v4.s_addr != htonl(INADDR_LOOPBACK));
	check_int(ask("localhost.example", DNS_TYPE_A, 1), 1);
	check(event.answer.v4.s_addr != htonl(INADDR_LOOPBACK));
}

static void malformed_ones_are_answered(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(2000);

	check_int(ask("a\nALLOWED GET https://x", DNS_TYPE_A, 1), 1);
	check_int(event.answer.kind, DNS_ANSWER_FORMERR);
	check_str(dns_query_name(&event.query), "a\nALLOWED GET https://x");
	check_int(dns_respond(map, STR("short"), false, &out, &event), 0);
	check_int(dns_respond(map, STR("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\0\0\1\0\1"), false, &out,
			  &event),
		0);
	check_int(buf_len(&out), 0);
	check_int(
		dns_respond(map,
			STR("\x12\x34\x01\x00\0\1\0\0\0\0\0\1\0\0\1\0\1\0\0\x29\x10\0\0\5\0\0\0\0"),
			false, &out, &event),
		1);
	check_int(event.answer.kind, DNS_ANSWER_BADVERS);
}

static void types_have_names(void)
{
	char text[DNS_TYPE_TEXT_MAX];

	dns_type_text(28, text);
	check_z(text, "AAAA");
	dns_type_text(48, text);
	check_z(text, "DNSKEY");
	dns_type_text(65535, text);
	check_z(text, "TYPE65535");
}

int main(void)
{
	map = dns_synthetic_new(1000);
	must(map);
	run_test(names_get_addresses);
	run_test(everything_else_is_nodata);
	run_test(localhost_is_the_rooms_own);
	run_test(malformed_ones_are_answered);
	run_test(types_have_names);
	dns_synthetic_free(map);
	return tap_done();
}
