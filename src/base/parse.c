/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

int parse_u64(struct str s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0)
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, 10U, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return -ERANGE;
	}
	if (v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_hex_u64(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 16)
		return s.n ? -ERANGE : -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		int digit = parse_hex_digit(s.p[i]);

		if (digit < 0)
			return -EINVAL;
		v = v << 4 | (unsigned)digit;
	}
	*ret = v;
	return 0;
}

/* Digits with an optional fraction, as thousandths. */
static int parse_milli(struct str s, uint64_t *ret)
{
	size_t dot = str_chr(s, '.');
	uint64_t whole, milli = 0, scale = 100;
	int r;

	r = parse_u64(str_prefix(s, dot), UINT64_MAX / 2000, &whole);
	if (r < 0)
		return r;
	if (dot < s.n) {
		struct str fraction = str_from_index(s, dot + 1);

		if (fraction.n == 0 || fraction.n > 9)
			return -EINVAL;
		for (size_t i = 0; i < fraction.n; i++, scale /= 10) {
			if (fraction.p[i] < '0' || fraction.p[i] > '9')
				return -EINVAL;
			milli += (uint64_t)(fraction.p[i] - '0') * scale;
		}
	}
	*ret = whole * 1000 + milli;
	return 0;
}

int parse_size(struct str s, uint64_t *ret_bytes)
{
	static const char units[] = "bkmgt";
	const char *unit = s.n ? strchr(units, s.p[s.n - 1] | 0x20) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units) : 0;
	uint64_t v;
	int r;

	if (unit)
		s.n--;
	r = parse_u64(s, (uint64_t)INT64_MAX >> shift, &v);
	if (r < 0)
		return r;
	if (v == 0)
		return -ERANGE;
	*ret_bytes = v << shift;
	return 0;
}

int parse_duration(struct str s, uint64_t *ret_usec)
{
	static const struct {
		struct str suffix;
		uint64_t usec_per_milli;
	} units[] = {
		/* longer suffixes first */
		{{"ms", 2}, 1},
		{{"s", 1}, 1000},
		{{"m", 1}, 60 * 1000},
		{{"h", 1}, 3600 * 1000},
		{{"d", 1}, 86400ULL * 1000},
		{{"", 0}, 1000},
	};
	uint64_t milli;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!str_ends(s, units[i].suffix))
			continue;
		r = parse_milli(str_prefix(s, s.n - units[i].suffix.n), &milli);
		if (r < 0)
			return r;
		if (__builtin_mul_overflow(milli, units[i].usec_per_milli, &milli))
			return -ERANGE;
		if (milli == 0 || milli > INT64_MAX)
			return -ERANGE;
		*ret_usec = milli;
		return 0;
	}
	return -EINVAL;
}

int parse_cpus(struct str s, uint64_t *ret_millicpus)
{
	uint64_t v;
	int r = parse_milli(s, &v);

	if (r < 0)
		return r;
	if (v < 10 || v > 1024 * 1000)
		return -ERANGE;
	*ret_millicpus = v;
	return 0;
}

static bool take_char(struct str *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = str_from_index(*s, 1);
	return true;
}

/* Take a number that has exactly this many digits. */
static bool take_number(struct str *s, size_t digits, uint64_t max, int *ret)
{
	uint64_t v;

	if (s->n < digits || parse_u64(str_prefix(*s, digits), max, &v) < 0)
		return false;
	*s = str_from_index(*s, digits);
	*ret = (int)v;
	return true;
}

/* Take "2026-11-23T16:45:00". */
static bool take_seconds(struct str *s, int64_t *ret)
{
	struct tm tm = {0};
	bool ok = take_number(s, 4, 9999, &tm.tm_year) && take_char(s, '-') &&
		  take_number(s, 2, 12, &tm.tm_mon) && take_char(s, '-') &&
		  take_number(s, 2, 31, &tm.tm_mday) && (take_char(s, 'T') || take_char(s, ' ')) &&
		  take_number(s, 2, 23, &tm.tm_hour) && take_char(s, ':') &&
		  take_number(s, 2, 59, &tm.tm_min) && take_char(s, ':') &&
		  take_number(s, 2, 60, &tm.tm_sec);

	if (!ok || tm.tm_mon == 0 || tm.tm_mday == 0)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*ret = timegm(&tm);
	return true;
}

/* Take ".123" if it is there. */
static bool take_fraction(struct str *s, int64_t *ret_usec)
{
	int64_t scale = USEC_PER_SEC;
	int digit;

	*ret_usec = 0;
	if (!take_char(s, '.'))
		return true;
	if (!take_number(s, 1, 9, &digit))
		return false;
	do {
		scale /= 10;
		*ret_usec += digit * scale;
	} while (take_number(s, 1, 9, &digit));
	return true;
}

/* Take "Z", "+01:00", "+0100" or "+0100 CET": the zone, in seconds east. */
static bool take_zone(struct str *s, int64_t *ret)
{
	int sign = 1, hours, minutes;

	*ret = 0;
	if (take_char(s, 'Z'))
		return true;
	if (!take_char(s, '+')) {
		sign = -1;
		if (!take_char(s, '-'))
			return false;
	}
	if (!take_number(s, 2, 23, &hours))
		return false;
	(void)take_char(s, ':');
	if (!take_number(s, 2, 59, &minutes))
		return false;
	*ret = (int64_t)sign * (hours * 60 + minutes) * 60;
	if (take_char(s, ' '))
		*s = str_from_index(*s, str_chr(*s, ' '));
	return true;
}

int parse_time(struct str s, int64_t *ret_usec)
{
	int64_t seconds, usec, zone;

	if (!take_seconds(&s, &seconds) || !take_fraction(&s, &usec))
		return -EINVAL;
	(void)take_char(&s, ' ');
	if (!take_zone(&s, &zone) || s.n > 0)
		return -EINVAL;
	*ret_usec = (seconds - zone) * (int64_t)USEC_PER_SEC + usec;
	return 0;
}
