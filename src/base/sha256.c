/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "base/macro.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* FIPS 180-4 section 4.2.2. */
static const uint32_t constants[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_init(struct sha256 *h)
{
	*h = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static uint32_t rotate(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

/* Section 6.2.2. */
static void add_block(uint32_t state[8], const uint8_t *p)
{
	uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
			f = state[5], g = state[6], last = state[7];

	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (size_t i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (size_t i = 0; i < 64; i++) {
		uint32_t one = last + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
			       ((e & f) ^ (~e & g)) + constants[i] + w[i];
		uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
			       ((a & b) ^ (a & c) ^ (b & c));

		last = g;
		g = f;
		f = e;
		e = d + one;
		d = c;
		c = b;
		b = a;
		a = one + two;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += last;
}

void sha256_blocks_plain(uint32_t state[8], const uint8_t *p, size_t n)
{
	for (; n > 0; n--, p += SHA256_BLOCK)
		add_block(state, p);
}

#ifdef __x86_64__
/* Whether the processor has instructions for it. It is asked once, as that may leave a virtual
 * machine. */
static bool has_instructions(void)
{
	enum { UNKNOWN, YES, NO };
	static int known = UNKNOWN;
	unsigned a, b, c, d;
	int now = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (now == UNKNOWN) {
		bool has = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1) &&
			   __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);

		now = has ? YES : NO;
		__atomic_store_n(&known, now, __ATOMIC_RELAXED);
	}
	return now == YES;
}

/* The same by those instructions, four rounds at a time. They hold the state as two words of four,
 * with a and c highest; w has the last sixteen words of the message schedule. */
__attribute__((target("sha,sse4.1"))) static void add_blocks_fast(
	uint32_t state[8], const uint8_t *p, size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
	__m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
	__m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
	uint32_t out[8];

	for (; n > 0; n--, p += SHA256_BLOCK) {
		const __m128i abef_was = abef, cdgh_was = cdgh;
		__m128i w[4];

		for (size_t i = 0; i < 16; i++) {
			__m128i *now = &w[i % 4], last = w[(i + 3) % 4], sum;

			if (i < 4) {
				*now = _mm_shuffle_epi8(
					_mm_loadu_si128(
						(const __m128i *)(const void *)(p + 16 * i)),
					swap);
			} else {
				sum = _mm_sha256msg1_epu32(*now, w[(i + 1) % 4]);
				sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
				*now = _mm_sha256msg2_epu32(sum, last);
			}
			sum = _mm_add_epi32(
				*now, _mm_loadu_si128(
					      (const __m128i *)(const void *)(constants + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
		}
		abef = _mm_add_epi32(abef, abef_was);
		cdgh = _mm_add_epi32(cdgh, cdgh_was);
	}
	_mm_storeu_si128((__m128i *)(void *)out, abef);
	_mm_storeu_si128((__m128i *)(void *)(out + 4), cdgh);
	for (size_t i = 0; i < 2; i++) {
		state[i] = out[3 - i];
		state[2 + i] = out[7 - i];
		state[4 + i] = out[1 - i];
		state[6 + i] = out[5 - i];
	}
}
#endif

static void add_blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
#ifdef __x86_64__
	if (has_instructions()) {
		add_blocks_fast(state, p, n);
		return;
	}
#endif
	sha256_blocks_plain(state, p, n);
}

void sha256_add(struct sha256 *h, struct str data)
{
	while (data.n > 0) {
		size_t at = h->length % SHA256_BLOCK;
		size_t n = at == 0 ? data.n - data.n % SHA256_BLOCK : 0;

		if (n > 0) {
			add_blocks(h->state, (const uint8_t *)data.p, n / SHA256_BLOCK);
		} else {
			n = MIN(data.n, SHA256_BLOCK - at);
			memcpy(h->block + at, data.p, n);
			if (at + n == SHA256_BLOCK)
				add_blocks(h->state, h->block, 1);
		}
		h->length += n;
		data = str_from_index(data, n);
	}
}

static void add_uint64(struct sha256 *h, uint64_t value)
{
	char bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(value >> (56 - 8 * i));
	sha256_add(h, str_make(bytes, sizeof(bytes)));
}

void sha256_add_framed(struct sha256 *h, struct str data)
{
	add_uint64(h, data.n);
	sha256_add(h, data);
}

static void sha256_end(struct sha256 *h)
{
	uint64_t bits = h->length * 8;

	sha256_add(h, STR("\x80"));
	while (h->length % SHA256_BLOCK != 56)
		sha256_add(h, str_make("", 1));
	add_uint64(h, bits);
}

void sha256_bytes(struct sha256 *h, uint8_t ret[SHA256_BYTES])
{
	sha256_end(h);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		ret[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(struct sha256 *h, char ret[SHA256_HEX_MAX])
{
	sha256_end(h);
	for (size_t i = 0; i < 8; i++)
		snprintf(ret + 8 * i, 9, "%08x", h->state[i]);
}

void sha256_text(struct str text, char ret[SHA256_HEX_MAX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, text);
	sha256_hex(&h, ret);
}

static void hmac_pad(struct sha256 *h, const uint8_t key[SHA256_BYTES], uint8_t with)
{
	uint8_t block[SHA256_BLOCK];

	memset(block, with, sizeof(block));
	for (size_t i = 0; i < SHA256_BYTES; i++)
		block[i] ^= key[i];
	sha256_init(h);
	sha256_add(h, str_make(block, sizeof(block)));
	explicit_bzero(block, sizeof(block));
}

void sha256_hmac_init(struct sha256_hmac *h, const uint8_t key[SHA256_BYTES])
{
	memcpy(h->key, key, SHA256_BYTES);
	hmac_pad(&h->inner, key, 0x36);
}

void sha256_hmac_bytes(struct sha256_hmac *h, uint8_t ret[SHA256_BYTES])
{
	struct sha256 outer;
	uint8_t inner[SHA256_BYTES];

	sha256_bytes(&h->inner, inner);
	hmac_pad(&outer, h->key, 0x5c);
	sha256_add(&outer, str_make(inner, sizeof(inner)));
	sha256_bytes(&outer, ret);
	explicit_bzero(inner, sizeof(inner));
	explicit_bzero(&outer, sizeof(outer));
	explicit_bzero(h, sizeof(*h));
}
