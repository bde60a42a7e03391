/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Random bytes from the kernel. */

#include <stddef.h>
#include <stdint.h>

/* Fill p. Abort the process if the kernel cannot (it always can after boot). */
void rand_bytes(void *p, size_t n);
uint64_t rand_u64(void);
/* Return a number uniform in [0, bound), bound > 0, without modulo bias. */
uint32_t rand_below(uint32_t bound);
/* Write n lower-case letters and digits and a terminator into ret[n + 1]. */
void rand_id(char *ret, size_t n);
