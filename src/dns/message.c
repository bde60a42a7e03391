/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/message.h"

#include <errno.h>

/* Theory of operation: a query is read front to back with a view that cannot pass the end.
 * Anything but the one form that resolvers send (one question, perhaps an OPT record, nothing after
 * it) is malformed. An answer is the echoed question and at most one record and an OPT. The
 * record's name is a pointer to the question, so its case comes back as sent, which resolvers
 * check. */

#define FLAG_QR 0x8000
#define FLAG_OPCODE 0x7800
#define FLAG_TC 0x0200
#define FLAG_RD 0x0100
#define FLAG_RA 0x0080

#define RCODE_FORMERR 1
#define RCODE_SERVFAIL 2
#define RCODE_BADVERS 16 /* lower four bits in the header, the others in OPT */

#define NAME_POINTER 0xc00c /* points to the question, after the header */
#define ANSWER_MAX 512      /* more than the longest answer that is written here */

static bool take16(struct str *in, uint16_t *ret)
{
	if (in->n < 2)
		return false;
	*ret = (uint16_t)((uint8_t)in->p[0] << 8 | (uint8_t)in->p[1]);
	*in = str_from_index(*in, 2);
	return true;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* Take a QNAME (RFC 1035 4.1.2), without compression, into q->name. *ret_plain: it has only allowed
 * characters. */
static int take_name(struct str *in, struct dns_query *q, bool *ret_plain)
{
	size_t wire = 0;

	*ret_plain = true;
	for (;;) {
		size_t label;

		if (in->n == 0)
			return -EBADMSG;
		label = (uint8_t)in->p[0];
		wire += 1 + label;
		if (label > 63 || wire > DNS_WIRE_NAME_MAX || in->n < 1 + label)
			return -EBADMSG;
		if (label && q->name_len)
			q->name[q->name_len++] = '.';
		for (size_t i = 1; i <= label; i++) {
			*ret_plain &= is_name_char(in->p[i]);
			q->name[q->name_len++] = in->p[i];
		}
		*in = str_from_index(*in, 1 + label);
		if (label == 0)
			return 0;
	}
}

/* RFC 6891 6.1.2: the OPT record, alone and last. */
static int take_opt(struct str *in, struct dns_query *q)
{
	uint16_t type, size, extended, flags, length;

	if (in->n == 0 || (uint8_t)in->p[0] != 0)
		return -EBADMSG;
	*in = str_from_index(*in, 1);
	if (!take16(in, &type) || !take16(in, &size) || !take16(in, &extended) ||
		!take16(in, &flags) || !take16(in, &length))
		return -EBADMSG;
	if (type != DNS_TYPE_OPT || length != in->n)
		return -EBADMSG;
	in->n = 0;
	q->edns = true;
	q->edns_size = size;
	q->edns_version = (uint8_t)extended;
	return 0;
}

static int take_question(struct str *in, struct dns_query *q)
{
	const char *start = in->p;
	bool plain;
	int r = take_name(in, q, &plain);

	if (r < 0)
		return r;
	if (!take16(in, &q->type) || !take16(in, &q->qclass))
		return -EBADMSG;
	q->wire_len = (size_t)(in->p - start);
	memcpy(q->wire, start, q->wire_len);
	return plain ? 0 : -EBADMSG;
}

int dns_query_parse(struct str packet, struct dns_query *ret)
{
	uint16_t questions, answers, authorities, additionals;
	int r;

	memset(ret, 0, sizeof(*ret));
	if (!take16(&packet, &ret->id) || !take16(&packet, &ret->flags) ||
		!take16(&packet, &questions) || !take16(&packet, &answers) ||
		!take16(&packet, &authorities) || !take16(&packet, &additionals))
		return -ENOMSG;
	if (ret->flags & FLAG_QR)
		return -ENOMSG;
	if ((ret->flags & FLAG_OPCODE) || questions != 1)
		return -EBADMSG;
	r = take_question(&packet, ret);
	if (r < 0)
		return r;
	if (answers || authorities || additionals > 1)
		return -EBADMSG;
	if (additionals) {
		r = take_opt(&packet, ret);
		if (r < 0)
			return r;
	}
	return packet.n ? -EBADMSG : 0;
}

struct answer_buf {
	uint8_t bytes[ANSWER_MAX];
	size_t n;
};

static void put16(struct answer_buf *b, unsigned v)
{
	b->bytes[b->n++] = (uint8_t)(v >> 8);
	b->bytes[b->n++] = (uint8_t)v;
}

static void put32(struct answer_buf *b, uint32_t v)
{
	put16(b, v >> 16);
	put16(b, v & 0xffff);
}

static void put_bytes(struct answer_buf *b, const void *p, size_t n)
{
	memcpy(b->bytes + b->n, p, n);
	b->n += n;
}

static void put_address(struct answer_buf *b, unsigned type, const void *addr, size_t n)
{
	put16(b, NAME_POINTER);
	put16(b, type);
	put16(b, DNS_CLASS_IN);
	put32(b, DNS_TTL);
	put16(b, (unsigned)n);
	put_bytes(b, addr, n);
}

/* RFC 2308 2.2: the SOA of the root says for how long a negative answer may be cached. */
static void put_soa(struct answer_buf *b)
{
	b->bytes[b->n++] = 0;
	put16(b, DNS_TYPE_SOA);
	put16(b, DNS_CLASS_IN);
	put32(b, DNS_TTL);
	put16(b, 22);
	put16(b, 0);       /* MNAME and RNAME: the root */
	put32(b, 1);       /* SERIAL */
	put32(b, 3600);    /* REFRESH */
	put32(b, 600);     /* RETRY */
	put32(b, 86400);   /* EXPIRE */
	put32(b, DNS_TTL); /* MINIMUM */
}

static void put_opt(struct answer_buf *b, unsigned rcode)
{
	b->bytes[b->n++] = 0;
	put16(b, DNS_TYPE_OPT);
	put16(b, DNS_UDP_MAX);
	put16(b, (rcode >> 4) << 8); /* upper bits of the RCODE, version 0 */
	put32(b, 0);                 /* flags, length */
}

static unsigned rcode_of(const struct dns_answer *a)
{
	switch (a->kind) {
	case DNS_ANSWER_A:
	case DNS_ANSWER_AAAA:
	case DNS_ANSWER_NODATA:
		return 0;
	case DNS_ANSWER_FORMERR:
		return RCODE_FORMERR;
	case DNS_ANSWER_SERVFAIL:
		return RCODE_SERVFAIL;
	case DNS_ANSWER_BADVERS:
		return RCODE_BADVERS;
	}
	return RCODE_SERVFAIL;
}

/* whole: with the record that answers, otherwise truncated (TC) to question and OPT. */
static void build(
	struct answer_buf *b, const struct dns_query *q, const struct dns_answer *a, bool whole)
{
	unsigned rcode = rcode_of(a), flags = FLAG_QR | FLAG_RA | (q->flags & FLAG_RD);
	bool address = a->kind == DNS_ANSWER_A || a->kind == DNS_ANSWER_AAAA;
	bool soa = a->kind == DNS_ANSWER_NODATA;

	b->n = 0;
	put16(b, q->id);
	put16(b, flags | (whole ? 0 : FLAG_TC) | (rcode & 0xf));
	put16(b, q->wire_len > 0);
	put16(b, whole && address);
	put16(b, whole && soa);
	put16(b, q->edns);
	put_bytes(b, q->wire, q->wire_len);
	if (whole && a->kind == DNS_ANSWER_A)
		put_address(b, DNS_TYPE_A, &a->v4, sizeof(a->v4));
	if (whole && a->kind == DNS_ANSWER_AAAA)
		put_address(b, DNS_TYPE_AAAA, &a->v6, sizeof(a->v6));
	if (whole && soa)
		put_soa(b);
	if (q->edns)
		put_opt(b, rcode);
}

int dns_answer_write(
	struct buf *out, const struct dns_query *q, const struct dns_answer *a, size_t limit)
{
	struct answer_buf b;

	build(&b, q, a, true);
	if (b.n > limit)
		build(&b, q, a, false);
	return buf_add(out, b.bytes, b.n);
}

size_t dns_query_udp_limit(const struct dns_query *q)
{
	size_t asked = q->edns ? q->edns_size : DNS_UDP_MIN;

	return MIN(MAX(asked, (size_t)DNS_UDP_MIN), (size_t)DNS_UDP_MAX);
}

int dns_tcp_next(struct str *in, struct str *ret)
{
	size_t n;

	if (in->n < 2)
		return 0;
	n = (size_t)(uint8_t)in->p[0] << 8 | (uint8_t)in->p[1];
	if (in->n - 2 < n)
		return 0;
	*ret = str_make(in->p + 2, n);
	*in = str_from_index(*in, 2 + n);
	return 1;
}
