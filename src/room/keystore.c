/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: everything is one nest of DER values, each with its length in front. So the
 * headers are written backwards, from the innermost outwards. */
#include "room/keystore.h"

#include <errno.h>
#include <string.h>

enum { SEQUENCE = 0x30, OCTETS = 0x04, EXPLICIT_0 = 0xa0 };

/* RFC 7292 sections 4 and 4.2.3, RFC 2315. The last one makes the JDK trust a certificate: an
 * attribute of Oracle's with anyExtendedKeyUsage (sun.security.pkcs12). */
static const char oid_data[] = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
static const char oid_cert_bag[] = "\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03";
static const char oid_x509[] = "\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01";
static const char version_3[] = "\x02\x01\x03";
static const char trusted[] = "\x31\x18\x30\x16"
			      "\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01"
			      "\x31\x06\x06\x04\x55\x1d\x25\x00";

struct head {
	char bytes[KEYSTORE_HEAD_MAX];
	size_t at;    /* of the first byte used: bytes are added downwards */
	size_t total; /* of everything inside so far */
};

static void put(struct head *h, const void *p, size_t n)
{
	h->at -= n;
	memcpy(h->bytes + h->at, p, n);
	h->total += n;
}
#define put_text(h, text) put((h), (text), sizeof(text) - 1)

/* Make everything so far the content of one value (X.690 section 8.1). */
static void wrap(struct head *h, unsigned char tag)
{
	unsigned char b[6], *p = b + sizeof(b);
	size_t n = h->total;

	if (n < 0x80) {
		*--p = (unsigned char)n;
	} else {
		unsigned char bytes = 0;

		for (; n; n >>= 8, bytes++)
			*--p = (unsigned char)n;
		*--p = 0x80 | bytes;
	}
	*--p = tag;
	put(h, p, (size_t)(b + sizeof(b) - p));
}

static int add_certificate(struct buf *bags, struct str der)
{
	struct head h = {.at = sizeof(h.bytes), .total = der.n};
	char *p;
	int r;

	wrap(&h, OCTETS);
	wrap(&h, EXPLICIT_0);
	put_text(&h, oid_x509);
	wrap(&h, SEQUENCE);
	wrap(&h, EXPLICIT_0);
	put_text(&h, oid_cert_bag);
	h.total += sizeof(trusted) - 1; /* after the certificate */
	wrap(&h, SEQUENCE);
	r = buf_reserve(bags, h.total, &p);
	if (r < 0)
		return r;
	p = mempcpy(p, h.bytes + h.at, sizeof(h.bytes) - h.at);
	p = mempcpy(p, der.p, der.n);
	memcpy(p, trusted, sizeof(trusted) - 1);
	buf_commit(bags, h.total);
	return 0;
}

size_t keystore_head(size_t bags_len, char ret[KEYSTORE_HEAD_MAX])
{
	struct head h = {.at = sizeof(h.bytes), .total = bags_len};

	wrap(&h, SEQUENCE);
	for (int i = 0; i < 2; i++) {
		wrap(&h, OCTETS);
		wrap(&h, EXPLICIT_0);
		put_text(&h, oid_data);
		wrap(&h, SEQUENCE);
		if (i == 0)
			wrap(&h, SEQUENCE);
	}
	put_text(&h, version_3);
	wrap(&h, SEQUENCE);
	memcpy(ret, h.bytes + h.at, sizeof(h.bytes) - h.at);
	return sizeof(h.bytes) - h.at;
}

enum { SKIP = 0x40, WRONG = 0x80 };

/* Set the six bits of each character, or one of those. */
static void make_table(unsigned char table[256])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	memset(table, WRONG, 256);
	for (unsigned char i = 0; i < 64; i++)
		table[(unsigned char)digits[i]] = i;
	table['\n'] = table['\r'] = table['='] = SKIP;
}

/* Decode into out, which is empty. Return -EINVAL if text is not base64. Every start of a room
 * decodes some 200 KB here, so take four characters at once while none is special. */
static int decode(struct buf *out, struct str text, const unsigned char table[256])
{
	const unsigned char *p = (const unsigned char *)text.p, *end = p + text.n;
	unsigned bits = 0, n_bits = 0;
	char *start, *to;
	int r = buf_reserve(out, text.n / 4 * 3 + 3, &start);

	if (r < 0)
		return r;
	for (to = start; p < end;) {
		unsigned a = table[*p];

		if (n_bits == 0 && end - p >= 4) {
			unsigned b = table[p[1]], c = table[p[2]], d = table[p[3]];

			if ((a | b | c | d) < SKIP) {
				*to++ = (char)(a << 2 | b >> 4);
				*to++ = (char)(b << 4 | c >> 2);
				*to++ = (char)(c << 6 | d);
				p += 4;
				continue;
			}
		}
		p++;
		if (a == WRONG)
			return -EINVAL;
		if (a == SKIP)
			continue;
		bits = bits << 6 | a;
		n_bits = (n_bits + 6) % 8;
		if (n_bits != 6)
			*to++ = (char)(bits >> n_bits);
	}
	buf_commit(out, (size_t)(to - start));
	return to > start ? 0 : -EINVAL;
}

bool keystore_next_pem(struct str *pem, struct str *ret)
{
	const struct str begin = STR("-----BEGIN CERTIFICATE-----"),
			 end = STR("-----END CERTIFICATE-----");
	size_t n;

	*pem = str_from_index(*pem, str_find(*pem, begin) + begin.n);
	n = str_find(*pem, end);
	*ret = str_prefix(*pem, n);
	if (n == pem->n)
		return false;
	*pem = str_from_index(*pem, n);
	return true;
}

int keystore_add_pem(struct buf *bags, struct str pem)
{
	_cleanup_(buf_donep) struct buf der = BUF_INIT(bags->max);
	unsigned char table[256];
	struct str text;

	make_table(table);
	while (keystore_next_pem(&pem, &text)) {
		int r;

		buf_clear(&der);
		r = decode(&der, text, table);
		if (r == 0)
			r = add_certificate(bags, buf_str(&der));
		if (r < 0 && r != -EINVAL)
			return r;
	}
	return 0;
}
