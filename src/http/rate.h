/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A bucket of so many, filled again by time, which is looked at only when it is empty. What a peer
 * can make us do without giving anything is paid from one. */

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct http_rate {
	unsigned left, burst, rate;
	uint64_t at;
};

/* A full one. */
struct http_rate http_rate_make(unsigned burst, unsigned per_second);
/* Takes one; false if it stays empty. */
_warn_unused_ bool http_rate_take(struct http_rate *r);
