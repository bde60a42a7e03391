/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"
#include "base/macro.h"

#include <endian.h>
#include <string.h>

enum { SHA1_BLOCK = 64, SHA1_ROUNDS = 80, SHA1_LENGTH = 8 };

static uint32_t sha1_turn(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

/* The function and the constant of a round (FIPS 180-4, 4.1.1 and 4.2.1). */
static uint32_t sha1_mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	switch (round / 20) {
	case 0:
		return ((b & c) ^ (~b & d)) + 0x5a827999;
	case 1:
		return (b ^ c ^ d) + 0x6ed9eba1;
	case 2:
		return ((b & c) ^ (b & d) ^ (c & d)) + 0x8f1bbcdc;
	default:
		return (b ^ c ^ d) + 0xca62c1d6;
	}
}

static void sha1_block(uint32_t state[5], const uint8_t *p)
{
	uint32_t w[SHA1_ROUNDS], v[5];

	memcpy(w, p, SHA1_BLOCK);
	for (unsigned i = 0; i < 16; i++)
		w[i] = be32toh(w[i]);
	for (unsigned i = 16; i < SHA1_ROUNDS; i++)
		w[i] = sha1_turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(v, state, sizeof(v));
	for (unsigned i = 0; i < SHA1_ROUNDS; i++) {
		uint32_t next = sha1_turn(v[0], 5) + sha1_mix(i, v[1], v[2], v[3]) + v[4] + w[i];

		v[4] = v[3];
		v[3] = v[2];
		v[2] = sha1_turn(v[1], 30);
		v[1] = v[0];
		v[0] = next;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(v); i++)
		state[i] += v[i];
}

void sha1_text(struct str text, uint8_t ret[SHA1_BYTES])
{
	uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	uint64_t bits = htobe64((uint64_t)text.n * 8);
	uint8_t last[2 * SHA1_BLOCK] = {0};
	size_t whole = text.n / SHA1_BLOCK * SHA1_BLOCK, rest = text.n - whole, end;

	for (size_t i = 0; i < whole; i += SHA1_BLOCK)
		sha1_block(state, (const uint8_t *)text.p + i);
	if (rest)
		memcpy(last, text.p + whole, rest);
	last[rest] = 0x80;
	end = rest + 1 + SHA1_LENGTH <= SHA1_BLOCK ? SHA1_BLOCK : 2 * SHA1_BLOCK;
	memcpy(last + end - SHA1_LENGTH, &bits, sizeof(bits));
	for (size_t i = 0; i < end; i += SHA1_BLOCK)
		sha1_block(state, last + i);
	for (unsigned i = 0; i < ARRAY_SIZE(state); i++) {
		uint32_t big = htobe32(state[i]);

		memcpy(ret + i * sizeof(big), &big, sizeof(big));
	}
}
