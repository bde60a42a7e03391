/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base dns */
/* Each query is answered by one well-formed answer to it, or dropped; a name that got an address is
 * found by it. */
#include "dns/responder.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void check_name(struct dns_synthetic *map, const struct dns_event *e)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = e->answer.v4};
	struct str name = dns_query_name(&e->query), found;

	for (size_t i = 0; i < name.n; i++)
		require((name.p[i] >= '0' && name.p[i] <= '9') ||
			((name.p[i] | 0x20) >= 'a' && (name.p[i] | 0x20) <= 'z') ||
			name.p[i] == '-' || name.p[i] == '_' || name.p[i] == '.');
	if (e->answer.kind != DNS_ANSWER_A || e->answer.v4.s_addr == htonl(INADDR_LOOPBACK))
		return;
	found = dns_synthetic_name(map, (struct sockaddr *)&four);
	require(str_ieq(found, name));
}

/* The answer is one to this query: id, QR, no more records than we give, question echoed. */
static void check_answer(struct str query, struct str answer, const struct dns_event *e, size_t max)
{
	const uint8_t *a = (const uint8_t *)answer.p;

	require(answer.n >= DNS_HEADER_LEN && answer.n <= max);
	require(memcmp(answer.p, query.p, 2) == 0 && (a[2] & 0xf8) == 0x80);
	require((a[3] & 0x0f) == 0 || (a[3] & 0x0f) == 1);
	require(a[4] == 0 && a[5] <= 1 && a[6] == 0 && a[7] <= 1 && a[8] == 0 && a[9] <= 1);
	require(a[10] == 0 && a[11] == e->query.edns);
	if (a[5])
		require(memcmp(answer.p + 12, e->query.wire, e->query.wire_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dns_synthetic *map;
	struct str stream = str_make(data, size), query;
	struct buf out = BUF_INIT(4096);
	struct dns_event event;

	if (!map)
		map = dns_synthetic_new(64);
	require(map != NULL);
	for (int tcp = 0; tcp <= 1; tcp++) {
		query = stream;
		if (tcp && dns_tcp_next(&stream, &query) == 0)
			continue;
		buf_clear(&out);
		if (dns_respond(map, query, tcp, &out, &event) == 0) {
			require(buf_len(&out) == 0);
			continue;
		}
		check_answer(query, buf_str(&out), &event,
			tcp ? (size_t)DNS_TCP_MAX : dns_query_udp_limit(&event.query));
		if (event.answer.kind != DNS_ANSWER_FORMERR)
			check_name(map, &event);
	}
	buf_done(&out);
	return 0;
}
