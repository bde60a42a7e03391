/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "base/macro.h"

#include <stdio.h>

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
static void add_block(struct sha256 *h)
{
	uint32_t w[64], a = h->state[0], b = h->state[1], c = h->state[2], d = h->state[3],
			e = h->state[4], f = h->state[5], g = h->state[6], last = h->state[7];

	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)h->block[4 * i] << 24 | (uint32_t)h->block[4 * i + 1] << 16 |
		       (uint32_t)h->block[4 * i + 2] << 8 | h->block[4 * i + 3];
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
	h->state[0] += a;
	h->state[1] += b;
	h->state[2] += c;
	h->state[3] += d;
	h->state[4] += e;
	h->state[5] += f;
	h->state[6] += g;
	h->state[7] += last;
}

void sha256_add(struct sha256 *h, struct str data)
{
	while (data.n > 0) {
		size_t at = h->length % sizeof(h->block);
		size_t n = MIN(data.n, sizeof(h->block) - at);

		memcpy(h->block + at, data.p, n);
		h->length += n;
		data = str_from_index(data, n);
		if (at + n == sizeof(h->block))
			add_block(h);
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

void sha256_hex(struct sha256 *h, char ret[SHA256_HEX_MAX])
{
	uint64_t bits = h->length * 8;

	sha256_add(h, STR("\x80"));
	while (h->length % sizeof(h->block) != 56)
		sha256_add(h, str_make("", 1));
	add_uint64(h, bits);
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
