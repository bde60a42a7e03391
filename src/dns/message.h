/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* DNS messages (RFC 1035 4) as a responder needs them: queries read strictly, answers written.
 * Pure. */

#include "base/buf.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define DNS_HEADER_LEN 12
#define DNS_NAME_MAX 253      /* of a name as text, without the last dot */
#define DNS_WIRE_NAME_MAX 255 /* of a name in a message */
#define DNS_UDP_MIN 512
#define DNS_UDP_MAX 1232 /* the most that we send, and announce (DNS flag day 2020) */
#define DNS_TCP_MAX 65535
#define DNS_TTL 60 /* seconds, of every answer */

enum { DNS_TYPE_A = 1, DNS_TYPE_SOA = 6, DNS_TYPE_PTR = 12, DNS_TYPE_AAAA = 28, DNS_TYPE_OPT = 41 };
enum { DNS_CLASS_IN = 1 };

struct dns_query {
	uint16_t id, flags; /* as received */
	uint16_t type, qclass;
	/* Text, case kept, no dot at the end, "" for the root. After -EBADMSG it may hold any
	 * bytes (as much of the name as could be read): escape it before showing it. */
	char name[DNS_WIRE_NAME_MAX + 1];
	size_t name_len;
	uint8_t wire[DNS_WIRE_NAME_MAX + 4]; /* the question as received, for echoing */
	size_t wire_len;                     /* 0: not to be echoed */
	bool edns;
	uint8_t edns_version;
	uint16_t edns_size;
};

static inline struct str dns_query_name(const struct dns_query *q)
{
	return str_make(q->name, q->name_len);
}

/* Read a query. Return 0, -EBADMSG if it is malformed or not supported (answer it with
 * DNS_ANSWER_FORMERR: ret is filled as far as that needs), or -ENOMSG if it must not be answered at
 * all (shorter than a header, or itself an answer). */
_warn_unused_ int dns_query_parse(struct str packet, struct dns_query *ret);

enum dns_answer_kind {
	DNS_ANSWER_A,       /* v4 */
	DNS_ANSWER_AAAA,    /* v6 */
	DNS_ANSWER_NODATA,  /* the name exists, but has nothing of this type: with an SOA */
	DNS_ANSWER_FORMERR, /* malformed */
	DNS_ANSWER_SERVFAIL,
	DNS_ANSWER_BADVERS, /* an EDNS version that we do not know (RFC 6891 6.1.3) */
};

struct dns_answer {
	enum dns_answer_kind kind;
	struct in_addr v4;
	struct in6_addr v6;
};

/* Append the answer to q. If it is longer than limit bytes, it is truncated to the question, with
 * TC set. Return 0, -E2BIG or -ENOMEM. */
_warn_unused_ int dns_answer_write(
	struct buf *out, const struct dns_query *q, const struct dns_answer *a, size_t limit);

/* Longest answer that may go back by UDP. */
size_t dns_query_udp_limit(const struct dns_query *q);

/* Take the next message off a TCP stream (RFC 1035 4.2.2). Return 1 with *ret (a view into *in) and
 * *in moved past it, or 0 if more bytes are needed. */
int dns_tcp_next(struct str *in, struct str *ret);
