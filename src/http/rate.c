/* SPDX-License-Identifier: Apache-2.0 */
#include "http/rate.h"

#include "base/clock.h"

struct http_rate http_rate_make(unsigned burst, unsigned per_second)
{
	return (struct http_rate){
		.left = burst, .burst = burst, .rate = per_second, .at = clock_mono_usec()};
}

bool http_rate_take(struct http_rate *r)
{
	uint64_t now, more;

	if (r->left == 0) {
		now = clock_mono_usec();
		more = (now - r->at) * r->rate / USEC_PER_SEC;
		if (more > 0) {
			r->left = (unsigned)MIN(more, (uint64_t)r->burst);
			r->at = now;
		}
	}
	if (r->left == 0)
		return false;
	r->left--;
	return true;
}
