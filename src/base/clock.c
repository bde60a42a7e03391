/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/macro.h"

#include <string.h>
#include <time.h>

static uint64_t now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_usec_of_msec(uint64_t msec)
{
	return MIN(msec, (uint64_t)INT64_MAX / 4 / USEC_PER_MSEC) * USEC_PER_MSEC;
}

uint64_t clock_mono_usec(void)
{
	return now(CLOCK_MONOTONIC);
}

uint64_t clock_real_usec(void)
{
	return now(CLOCK_REALTIME);
}

/* Cached, because a log formats the same second many times. */
static size_t format_seconds(uint64_t real_usec, char *ret)
{
	static _Thread_local struct {
		time_t seconds;
		size_t n;
		char text[CLOCK_ISO_MAX];
	} last;
	time_t seconds = (time_t)(real_usec / USEC_PER_SEC);
	struct tm tm;

	if (last.n == 0 || last.seconds != seconds) {
		gmtime_r(&seconds, &tm);
		last.n = strftime(last.text, sizeof(last.text), "%Y-%m-%dT%H:%M:%S", &tm);
		last.seconds = seconds;
	}
	memcpy(ret, last.text, last.n);
	return last.n;
}

void clock_format_utc(uint64_t real_usec, char ret[CLOCK_ISO_MAX])
{
	size_t n = format_seconds(real_usec, ret);

	memcpy(ret + n, "Z", 2);
}

void clock_format_iso(uint64_t real_usec, char ret[CLOCK_ISO_MAX])
{
	size_t n = format_seconds(real_usec, ret);
	unsigned micro = (unsigned)(real_usec % USEC_PER_SEC);

	memcpy(ret + n, ".000000+00:00", 14);
	for (char *digit = ret + n + 6; micro > 0; micro /= 10)
		*digit-- = (char)('0' + micro % 10);
}
