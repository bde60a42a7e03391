/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/rand.h"

#include <pthread.h>
#include <string.h>

static inline uint64_t rotl(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

static uint64_t key[2];

static void draw_key(void)
{
	rand_bytes(key, sizeof(key));
}

uint64_t hash_keyed(const void *p, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const unsigned char *at = p;
	uint64_t v[4], last = (uint64_t)n << 56;
	size_t words = n / 8;

	(void)pthread_once(&once, draw_key);
	v[0] = key[0] ^ 0x736f6d6570736575ULL;
	v[1] = key[1] ^ 0x646f72616e646f6dULL;
	v[2] = key[0] ^ 0x6c7967656e657261ULL;
	v[3] = key[1] ^ 0x7465646279746573ULL;
	for (size_t i = 0; i < words; i++, at += 8) {
		uint64_t m;

		memcpy(&m, at, 8);
		sip_word(v, m);
	}
	for (size_t i = 0; i < n % 8; i++)
		last |= (uint64_t)at[i] << (8 * i);
	sip_word(v, last);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
