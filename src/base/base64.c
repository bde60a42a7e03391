/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Values of the characters of both alphabets; NONE for all others. */
enum { NONE = 0x80 };
#define X NONE
static const uint8_t values[128] = {X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
	X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, 62, X, 62, X, 63, 52, 53,
	54, 55, 56, 57, 58, 59, 60, 61, X, X, X, X, X, X, X, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
	12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, X, X, X, X, 63, X, 26, 27, 28, 29,
	30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, X,
	X, X, X, X};
#undef X

static unsigned value_of(char c)
{
	unsigned char i = (unsigned char)c;

	return i < sizeof(values) ? values[i] : NONE;
}

/* Decode four characters at a time into three bytes; n is a multiple of four. Return false if a
 * character is in neither alphabet. */
static bool decode_groups(const char *from, size_t n, char *to)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i += 4) {
		unsigned a = value_of(from[i]), b = value_of(from[i + 1]);
		unsigned c = value_of(from[i + 2]), d = value_of(from[i + 3]);

		wrong |= a | b | c | d;
		*to++ = (char)(a << 2 | b >> 4);
		*to++ = (char)(b << 4 | c >> 2);
		*to++ = (char)(c << 6 | d);
	}
	return !(wrong & NONE);
}

static bool has_any(struct str s, char a, char b)
{
	return str_chr(s, a) < s.n || str_chr(s, b) < s.n;
}

int base64_decode(struct buf *out, struct str s)
{
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t padding = 0, n, whole;
	char *p;
	int r;

	while (padding < 2 && s.n > padding && s.p[s.n - 1 - padding] == '=')
		padding++;
	if (padding && s.n % 4 != 0)
		return -EINVAL;
	s.n -= padding;
	if (s.n % 4 == 1)
		return -EINVAL;
	if (has_any(s, '+', '/') && has_any(s, '-', '_'))
		return -EINVAL;
	r = buf_reserve(out, s.n / 4 * 3 + 3, &p);
	if (r < 0)
		return r;
	whole = s.n / 4 * 4;
	if (!decode_groups(s.p, whole, p))
		return -EINVAL;
	n = whole / 4 * 3;
	for (size_t i = whole; i < s.n; i++) {
		unsigned value = value_of(s.p[i]);

		if (value == NONE)
			return -EINVAL;
		bits = bits << 6 | value;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			p[n++] = (char)(bits >> n_bits & 0xff);
		}
	}
	if (bits & ((1U << n_bits) - 1))
		return -EINVAL;
	buf_commit(out, n);
	return 0;
}

static int encode(struct buf *out, struct str s, const char *digits)
{
	size_t n = 0;
	char *p;
	int r = buf_reserve(out, (s.n + 2) / 3 * 4, &p);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s.n; i += 3) {
		size_t left = s.n - i;
		uint32_t b = (uint32_t)(unsigned char)s.p[i] << 16;

		if (left > 1)
			b |= (uint32_t)(unsigned char)s.p[i + 1] << 8;
		if (left > 2)
			b |= (unsigned char)s.p[i + 2];
		p[n++] = digits[b >> 18];
		p[n++] = digits[b >> 12 & 63];
		p[n++] = left > 1 ? digits[b >> 6 & 63] : '=';
		p[n++] = left > 2 ? digits[b & 63] : '=';
	}
	buf_commit(out, n);
	return 0;
}

int base64_encode(struct buf *out, struct str s)
{
	return encode(out, s, alphabet);
}

int base64url_encode(struct buf *out, struct str s)
{
	int r = encode(out, s, url_alphabet);

	if (r == 0)
		out->tail -= (3 - s.n % 3) % 3;
	return r;
}

/* Character i of a text holds its bits from 6 * i on. */
static size_t first_inner(unsigned at)
{
	return (8U * at + 5) / 6;
}

size_t base64_inner_len(size_t n, unsigned at)
{
	return 8 * (at + n) / 6 - first_inner(at);
}

void base64_inner(struct str s, unsigned at, char *ret)
{
	size_t n = base64_inner_len(s.n, at), bit = 6 * first_inner(at) - 8U * at;

	for (size_t i = 0; i < n; i++, bit += 6) {
		const unsigned char *p = (const unsigned char *)s.p + bit / 8;
		/* A character that ends at a byte boundary needs no bits of the next byte. */
		unsigned two = (unsigned)p[0] << 8 | (bit % 8 > 2 ? p[1] : 0U);

		ret[i] = alphabet[two >> (10 - bit % 8) & 63];
	}
}
