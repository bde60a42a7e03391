/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unit tests: random numbers that can be had again. Where this is included (once in a program), all
 * that base/rand.h gives comes from one number, which is printed: CLOCHE_TEST_SEED=number in the
 * environment makes the run the same. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t seeded_state;

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t seeded_next(void)
{
	uint64_t z = seeded_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* In place of the C library's. */
ssize_t getrandom(void *p, size_t n, unsigned flags)
{
	char *at = p;

	(void)flags;
	for (size_t left = n; left > 0;) {
		uint64_t v = seeded_next();
		size_t k = left < sizeof(v) ? left : sizeof(v);

		memcpy(at, &v, k);
		at += k;
		left -= k;
	}
	return (ssize_t)n;
}

static inline void seeded_begin(void)
{
	const char *given = getenv("CLOCHE_TEST_SEED");

	if (given)
		seeded_state = strtoull(given, NULL, 10);
	else
		(void)!syscall(SYS_getrandom, &seeded_state, sizeof(seeded_state), 0);
	printf("# CLOCHE_TEST_SEED=%llu\n", (unsigned long long)seeded_state);
	fflush(stdout); /* a sanitizer ends the program without that */
}
