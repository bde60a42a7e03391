/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/responder.h"

#include <errno.h>
#include <stdio.h>

/* RFC 6761 6.3. */
static bool is_localhost(struct str name)
{
	static const struct str label = {"localhost", 9};

	if (str_ieq(name, label))
		return true;
	return name.n > label.n && name.p[name.n - label.n - 1] == '.' &&
	       str_ieq(str_from_index(name, name.n - label.n), label);
}

static struct dns_answer decide(struct dns_synthetic *map, const struct dns_query *q)
{
	struct dns_answer a = {.kind = DNS_ANSWER_NODATA};
	struct str name = dns_query_name(q);

	if (q->edns && q->edns_version != 0) {
		a.kind = DNS_ANSWER_BADVERS;
		return a;
	}
	if (q->qclass != DNS_CLASS_IN || name.n == 0 ||
		(q->type != DNS_TYPE_A && q->type != DNS_TYPE_AAAA))
		return a;
	a.kind = q->type == DNS_TYPE_A ? DNS_ANSWER_A : DNS_ANSWER_AAAA;
	if (is_localhost(name)) {
		a.v4.s_addr = htonl(INADDR_LOOPBACK);
		a.v6 = in6addr_loopback;
	} else if (dns_synthetic_get(map, name, &a.v4, &a.v6) < 0) {
		a.kind = DNS_ANSWER_SERVFAIL;
	}
	return a;
}

int dns_respond(struct dns_synthetic *map, struct str packet, bool tcp, struct buf *out,
	struct dns_event *ret_event)
{
	struct dns_query *q = &ret_event->query;
	int r = dns_query_parse(packet, q);

	if (r == -ENOMSG)
		return 0;
	if (r < 0)
		ret_event->answer = (struct dns_answer){.kind = DNS_ANSWER_FORMERR};
	else
		ret_event->answer = decide(map, q);
	r = dns_answer_write(
		out, q, &ret_event->answer, tcp ? (size_t)DNS_TCP_MAX : dns_query_udp_limit(q));
	return r < 0 ? r : 1;
}

void dns_type_text(uint16_t type, char ret[DNS_TYPE_TEXT_MAX])
{
	static const struct {
		uint16_t type;
		char text[8];
	} table[] = {{1, "A"}, {2, "NS"}, {5, "CNAME"}, {6, "SOA"}, {12, "PTR"}, {15, "MX"},
		{16, "TXT"}, {28, "AAAA"}, {33, "SRV"}, {35, "NAPTR"}, {43, "DS"}, {48, "DNSKEY"},
		{64, "SVCB"}, {65, "HTTPS"}, {255, "ANY"}, {257, "CAA"}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].type == type) {
			memcpy(ret, table[i].text, sizeof(table[i].text));
			return;
		}
	}
	snprintf(ret, DNS_TYPE_TEXT_MAX, "TYPE%u", type);
}
