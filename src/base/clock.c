/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_mono_usec(void)
{
	return now(CLOCK_MONOTONIC);
}

uint64_t clock_real_usec(void)
{
	return now(CLOCK_REALTIME);
}

static size_t format_seconds(uint64_t real_usec, char *ret)
{
	time_t seconds = (time_t)(real_usec / USEC_PER_SEC);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return strftime(ret, CLOCK_ISO_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
}

void clock_format_utc(uint64_t real_usec, char ret[CLOCK_ISO_MAX])
{
	size_t n = format_seconds(real_usec, ret);

	snprintf(ret + n, CLOCK_ISO_MAX - n, "Z");
}

void clock_format_iso(uint64_t real_usec, char ret[CLOCK_ISO_MAX])
{
	size_t n = format_seconds(real_usec, ret);

	snprintf(ret + n, CLOCK_ISO_MAX - n, ".%06u+00:00", (unsigned)(real_usec % USEC_PER_SEC));
}
