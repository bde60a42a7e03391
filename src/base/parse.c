/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>

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
	unsigned shift = 0;
	uint64_t v;
	int r;

	if (s.n == 0)
		return -EINVAL;
	switch (s.p[s.n - 1] | 0x20) {
	case 'b':
		s.n--;
		break;
	case 'k':
		shift = 10;
		s.n--;
		break;
	case 'm':
		shift = 20;
		s.n--;
		break;
	case 'g':
		shift = 30;
		s.n--;
		break;
	case 't':
		shift = 40;
		s.n--;
		break;
	default:
		break;
	}
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
