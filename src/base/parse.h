/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict parsing of user input: the whole text must be consumed. Functions return 0, -EINVAL
 * (malformed) or -ERANGE; ret is untouched on failure. */

#include "base/macro.h"
#include "base/str.h"
#include <stdint.h>

/* Return 0 to 15, or -1 if c is not a hexadecimal digit. */
static inline int parse_hex_digit(char c)
{
	unsigned digit = (unsigned char)c - (unsigned)'0',
		 letter = ((unsigned char)c | 0x20U) - 'a';

	return digit < 10 ? (int)digit : letter < 6 ? (int)letter + 10 : -1;
}

/* Return the byte that "%XX" at the front of s stands for (RFC 3986 2.1), or -1. */
static inline int parse_percent(struct str s)
{
	int high = s.n >= 3 && s.p[0] == '%' ? parse_hex_digit(s.p[1]) : -1;
	int low = high >= 0 ? parse_hex_digit(s.p[2]) : -1;

	return low < 0 ? -1 : high << 4 | low;
}

/* Decimal digits only: no sign, no space. */
_warn_unused_ int parse_u64(struct str s, uint64_t max, uint64_t *ret);
/* Hexadecimal digits only, at most 16. */
_warn_unused_ int parse_hex_u64(struct str s, uint64_t *ret);
/* "512", "512b", "64k", "512m", "2g", "1t" (case ignored, powers of 1024) in bytes; above 0. */
_warn_unused_ int parse_size(struct str s, uint64_t *ret_bytes);
/* "30" (seconds), "500ms", "1.5s", "5m", "2h", "1d" in microseconds; above 0. */
_warn_unused_ int parse_duration(struct str s, uint64_t *ret_usec);
/* "0.5", "2" in thousandths of a CPU; at least 10 (0.01). */
_warn_unused_ int parse_cpus(struct str s, uint64_t *ret_millicpus);
/* "2026-11-23T16:45:00Z" in microseconds since 1970, which may be negative; also with a fraction or
 * a zone ("16:45:00.5+01:00"), or as Go prints it ("2026-11-23 16:45:00.5 +0100 CET"). */
_warn_unused_ int parse_time(struct str s, int64_t *ret_usec);
