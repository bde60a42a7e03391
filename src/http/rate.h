/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A token bucket that is refilled over time; the clock is read only when it is empty. It limits
 * what a peer can make us do without giving anything. */

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct http_rate {
	unsigned left, burst, rate;
	uint64_t at;
};

/* Return a full bucket. */
struct http_rate http_rate_make(unsigned burst, unsigned per_second);
/* Take one token. Return false if there is none. */
_warn_unused_ bool http_rate_take(struct http_rate *r);
/* Put n tokens back, as far as they fit. */
static inline void http_rate_earn(struct http_rate *r, unsigned n)
{
	r->left = MIN(r->left + n, r->burst);
}
