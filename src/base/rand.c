/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void rand_bytes(void *p, size_t n)
{
	char *at = p;

	while (n > 0) {
		ssize_t r = getrandom(at, n, 0);

		if (r < 0) {
			if (errno == EINTR)
				continue;
			abort(); /* nothing is safe without random numbers */
		}
		at += r;
		n -= (size_t)r;
	}
}

uint64_t rand_u64(void)
{
	uint64_t v;

	rand_bytes(&v, sizeof(v));
	return v;
}

uint32_t rand_below(uint32_t bound)
{
	uint32_t limit = UINT32_MAX - UINT32_MAX % bound, v;

	do {
		rand_bytes(&v, sizeof(v));
	} while (v >= limit);
	return v % bound;
}

void rand_id(char *ret, size_t n)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	enum { LETTERS = sizeof(alphabet) - 1, EVEN = 256 / LETTERS * LETTERS };
	unsigned char pool[32]; /* one system call per id, not per letter */
	size_t left = 0;

	for (size_t i = 0; i < n;) {
		if (left == 0) {
			rand_bytes(pool, sizeof(pool));
			left = sizeof(pool);
		}
		/* The highest values would make some letters more likely than others. */
		if (pool[--left] < EVEN)
			ret[i++] = alphabet[pool[left] % LETTERS];
	}
	ret[n] = '\0';
}
