/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/message.h"

#include <errno.h>
#include <tap.h>

#define S(lit)                                                                                     \
	{                                                                                          \
		lit, sizeof(lit) - 1                                                               \
	}
/* id 0x1234, RD, one question */
#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define HEAD_OPT "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01"
#define A_IN "\x00\x01\x00\x01"
#define AAAA_IN "\x00\x1c\x00\x01"
#define NAME                                                                                       \
	"\x01"                                                                                     \
	"a"                                                                                        \
	"\x07"                                                                                     \
	"eXample"                                                                                  \
	"\x00"
#define OPT "\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00"

static void queries_that_are_accepted(void)
{
	static const struct {
		struct str packet;
		const char *name;
		int type, qclass, edns;
	} cases[] = {
		{S(HEAD NAME A_IN), "a.eXample", 1, 1, -1},
		{S(HEAD NAME AAAA_IN), "a.eXample", 28, 1, -1},
		{S(HEAD "\x00"
			"\x00\x02\x00\x01"),
			"", 2, 1, -1},
		{S(HEAD "\x03"
			"_-9"
			"\x00"
			"\x00\xff\x00\xff"),
			"_-9", 255, 255, -1},
		{S(HEAD NAME "\x00\x10\x00\x03"), "a.eXample", 16, 3, -1},
		{S(HEAD_OPT NAME A_IN OPT), "a.eXample", 1, 1, 4096},
		{S(HEAD_OPT NAME A_IN
			 "\x00\x00\x29\x02\x00\x00\x00\x80\x00\x00\x05\x00\x0a\x00\x01x"),
			"a.eXample", 1, 1, 512},
		/* AD and CD set */
		{S("\x12\x34\x01\x30\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), "a.eXample", 1, 1,
			-1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dns_query q;

		check_int(dns_query_parse(cases[i].packet, &q), 0);
		check_int(q.id, 0x1234);
		check_str(dns_query_name(&q), cases[i].name);
		check_int(q.type, cases[i].type);
		check_int(q.qclass, cases[i].qclass);
		check_int(q.edns, cases[i].edns >= 0);
		if (q.edns)
			check_int(q.edns_size, cases[i].edns);
	}
}

static void queries_that_are_refused(void)
{
	static const struct {
		struct str packet;
		int r;
	} cases[] = {
		{S(""), -ENOMSG},
		{S("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00"), -ENOMSG},
		/* An answer */
		{S("\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), -ENOMSG},
		/* Other operations: status, notify, update, 15 */
		{S("\x12\x34\x11\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), -EBADMSG},
		{S("\x12\x34\x20\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), -EBADMSG},
		{S("\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), -EBADMSG},
		{S("\x12\x34\x78\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), -EBADMSG},
		/* No question, two questions, 65535 */
		{S("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"), -EBADMSG},
		{S("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" NAME A_IN NAME A_IN),
			-EBADMSG},
		{S("\x12\x34\x01\x00\xff\xff\x00\x00\x00\x00\x00\x00" NAME A_IN), -EBADMSG},
		/* Records where none belong */
		{S("\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00" NAME A_IN), -EBADMSG},
		{S("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x01\x00\x00" NAME A_IN), -EBADMSG},
		{S("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x02" NAME A_IN OPT OPT), -EBADMSG},
		{S(HEAD_OPT NAME A_IN), -EBADMSG},
		{S(HEAD NAME A_IN OPT), -EBADMSG},
		{S(HEAD_OPT NAME A_IN NAME A_IN "\x00\x00\x00\x00\x00\x00"), -EBADMSG},
		{S(HEAD_OPT NAME A_IN "\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x05\x01"),
			-EBADMSG},
		{S(HEAD_OPT NAME A_IN "\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00"), -EBADMSG},
		/* Trailing bytes, truncation */
		{S(HEAD NAME A_IN "x"), -EBADMSG},
		{S(HEAD NAME "\x00\x01\x00"), -EBADMSG},
		{S(HEAD NAME), -EBADMSG},
		{S(HEAD "\x05"
			"abc"),
			-EBADMSG},
		{S(HEAD "\x01"
			"a"),
			-EBADMSG},
		/* Compression, reserved label types */
		{S(HEAD "\xc0\x0c" A_IN), -EBADMSG},
		{S(HEAD "\x01"
			"a"
			"\xc0\x0c" A_IN),
			-EBADMSG},
		{S(HEAD "\x40"
			"a"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x80"
			"a"
			"\x00" A_IN),
			-EBADMSG},
		/* Bytes that are not of a name */
		{S(HEAD "\x03"
			"a\nb"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x03"
			"a\x1b"
			"b"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x03"
			"a]b"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x03"
			"a b"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x03"
			"a.b"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x03"
			"a\x00"
			"b"
			"\x00" A_IN),
			-EBADMSG},
		{S(HEAD "\x02"
			"\xc3\xa4"
			"\x00" A_IN),
			-EBADMSG},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dns_query q;
		int r = dns_query_parse(cases[i].packet, &q);

		if (r != cases[i].r)
			tap_fail("case %zu: got %d, want %d", i, r, cases[i].r);
		check(q.name_len <= DNS_NAME_MAX);
	}
}

/* A name of n labels of 63 and one of `last` bytes. */
static size_t long_name(char *p, unsigned n, unsigned last)
{
	size_t at = 0;

	for (unsigned i = 0; i <= n; i++) {
		unsigned len = i < n ? 63 : last;

		if (!len)
			continue;
		p[at++] = (char)len;
		memset(p + at, 'x', len);
		at += len;
	}
	p[at++] = 0;
	return at;
}

static void names_have_a_longest(void)
{
	for (unsigned last = 60; last <= 62; last++) {
		char packet[400] = HEAD;
		size_t n = 12 + long_name(packet + 12, 3, last);
		struct dns_query q;
		int r;

		memcpy(packet + n, A_IN, 4);
		r = dns_query_parse(str_make(packet, n + 4), &q);
		check_int(r, n - 12 <= 255 ? 0 : -EBADMSG);
		if (r == 0)
			check_int(q.name_len, n - 12 - 2);
	}
}

static void expect_answer(struct str packet, struct dns_answer a, size_t limit, struct str want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1000);
	struct dns_query q;
	int r = dns_query_parse(packet, &q);

	check(r != -ENOMSG);
	check_int(dns_answer_write(&out, &q, &a, limit), 0);
	if (!str_eq(buf_str(&out), want)) {
		tap_fail("%zu bytes, want %zu", buf_len(&out), want.n);
		for (size_t i = 0; i < buf_len(&out); i++)
			printf("%02x%s", (uint8_t)buf_data(&out)[i],
				i + 1 < buf_len(&out) ? " " : "\n");
	}
}

#define SOA                                                                                        \
	"\x00\x00\x06\x00\x01\x00\x00\x00\x3c\x00\x16\x00\x00"                                     \
	"\x00\x00\x00\x01\x00\x00\x0e\x10\x00\x00\x02\x58\x00\x01\x51\x80\x00\x00\x00\x3c"
#define OUR_OPT "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"

static void answers_to_the_byte(void)
{
	struct dns_answer a = {.kind = DNS_ANSWER_A}, nodata = {.kind = DNS_ANSWER_NODATA},
			  formerr = {.kind = DNS_ANSWER_FORMERR},
			  servfail = {.kind = DNS_ANSWER_SERVFAIL},
			  badvers = {.kind = DNS_ANSWER_BADVERS}, aaaa = {.kind = DNS_ANSWER_AAAA};

	a.v4.s_addr = htonl(0xc6120001);
	aaaa.v6 = in6addr_loopback;
	/* The case of the letters comes back as it was. */
	expect_answer(STR(HEAD NAME A_IN), a, 512,
		STR("\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A_IN
		    "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x01"));
	/* No RD asked, no RD back; id kept. */
	expect_answer(STR("\xff\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), a, 512,
		STR("\xff\x01\x80\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A_IN
		    "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x01"));
	expect_answer(STR(HEAD_OPT NAME AAAA_IN OPT), aaaa, 512,
		STR("\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x01" NAME AAAA_IN
		    "\xc0\x0c\x00\x1c\x00\x01\x00\x00\x00\x3c\x00\x10"
		    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01" OUR_OPT));
	expect_answer(STR(HEAD NAME "\x00\x41\x00\x01"), nodata, 512,
		STR("\x12\x34\x81\x80\x00\x01\x00\x00\x00\x01\x00\x00" NAME
		    "\x00\x41\x00\x01" SOA));
	expect_answer(STR(HEAD "\x03"
			       "a\nb"
			       "\x00" A_IN),
		formerr, 512,
		STR("\x12\x34\x81\x81\x00\x01\x00\x00\x00\x00\x00\x00\x03"
		    "a\nb"
		    "\x00" A_IN));
	expect_answer(STR("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00"), formerr, 512,
		STR("\x12\x34\x81\x81\x00\x00\x00\x00\x00\x00\x00\x00"));
	/* The operation is not echoed: the answer is to a query. */
	expect_answer(STR("\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN), formerr,
		512, STR("\x12\x34\x80\x81\x00\x00\x00\x00\x00\x00\x00\x00"));
	expect_answer(STR(HEAD NAME A_IN), servfail, 512,
		STR("\x12\x34\x81\x82\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN));
	expect_answer(STR(HEAD_OPT NAME A_IN "\x00\x00\x29\x10\x00\x00\x01\x00\x00\x00\x00"),
		badvers, 512,
		STR("\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x01" NAME A_IN
		    "\x00\x00\x29\x04\xd0\x01\x00\x00\x00\x00\x00"));
	/* Too long for the limit: question and OPT, with TC. */
	expect_answer(STR(HEAD_OPT NAME A_IN OPT), a, 50,
		STR("\x12\x34\x83\x80\x00\x01\x00\x00\x00\x00\x00\x01" NAME A_IN OUR_OPT));
	expect_answer(STR(HEAD NAME "\x00\x10\x00\x01"), nodata, 59,
		STR("\x12\x34\x83\x80\x00\x01\x00\x00\x00\x00\x00\x00" NAME "\x00\x10\x00\x01"));
}

static void udp_limits(void)
{
	struct dns_query q = {0};

	check_int(dns_query_udp_limit(&q), 512);
	q.edns = true;
	check_int(dns_query_udp_limit(&q), 512);
	q.edns_size = 900;
	check_int(dns_query_udp_limit(&q), 900);
	q.edns_size = 65535;
	check_int(dns_query_udp_limit(&q), DNS_UDP_MAX);
}

static void tcp_framing(void)
{
	struct str in = STR("\x00\x03"
			    "abc"
			    "\x00\x00"
			    "\x00\x02"
			    "x"),
		   message;

	check_int(dns_tcp_next(&in, &message), 1);
	check_str(message, "abc");
	check_int(dns_tcp_next(&in, &message), 1);
	check_int(message.n, 0);
	check_int(dns_tcp_next(&in, &message), 0);
	check_int(in.n, 3);
	in = STR("\x01");
	check_int(dns_tcp_next(&in, &message), 0);
}

int main(void)
{
	run_test(queries_that_are_accepted);
	run_test(queries_that_are_refused);
	run_test(names_have_a_longest);
	run_test(answers_to_the_byte);
	run_test(udp_limits);
	run_test(tcp_framing);
	return tap_done();
}
