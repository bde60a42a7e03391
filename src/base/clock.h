/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Time in microseconds. */

#include <stddef.h>
#include <stdint.h>

#define USEC_PER_SEC 1000000ULL
#define USEC_PER_MSEC 1000ULL
#define USEC_INFINITY UINT64_MAX

/* So many milliseconds, but no more than 70,000 years: that can be added to any time. */
uint64_t clock_usec_of_msec(uint64_t msec);

uint64_t clock_mono_usec(void);
uint64_t clock_real_usec(void);
/* Write "2026-11-21T21:30:34Z" (utc), or with ".123456+00:00" at the end as Python's isoformat
 * (iso). */
#define CLOCK_ISO_MAX 40
void clock_format_utc(uint64_t real_usec, char ret[CLOCK_ISO_MAX]);
void clock_format_iso(uint64_t real_usec, char ret[CLOCK_ISO_MAX]);
