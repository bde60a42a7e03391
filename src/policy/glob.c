/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one pass over pattern and text remembers only the last `*`. If something
 * after it does not fit, that `*` takes one more byte. An earlier `*` never has to be tried again,
 * because the last one reaches everything that it could reach. So there is no recursion and no
 * exponential case. */
#include "policy/glob.h"

bool glob_is_pattern(struct str s)
{
	return str_chr(s, '*') < s.n || str_chr(s, '?') < s.n;
}

/* Index behind the ']' of the set that opens at i, or i if it is not closed. */
static size_t set_end(struct str p, size_t i)
{
	size_t j = i + 1;

	if (j < p.n && p.p[j] == '!')
		j++;
	if (j < p.n && p.p[j] == ']')
		j++;
	while (j < p.n && p.p[j] != ']')
		j++;
	return j < p.n ? j + 1 : i;
}

/* Whether c is in the set, which is given without its brackets. */
static bool set_has(struct str set, unsigned char c)
{
	bool negated = set.n > 0 && set.p[0] == '!', found = false;

	for (size_t i = negated ? 1 : 0; i < set.n && !found; i++) {
		unsigned char low = (unsigned char)set.p[i];

		if (i + 2 < set.n && set.p[i + 1] == '-') {
			found = c >= low && c <= (unsigned char)set.p[i + 2];
			i += 2;
		} else {
			found = c == low;
		}
	}
	return found != negated;
}

/* Matches the one-byte element at *i against c and moves *i behind it when it fits. */
static bool element_matches(struct str p, size_t *i, char c)
{
	size_t end;

	if (p.p[*i] == '?') {
		++*i;
		return true;
	}
	if (p.p[*i] == '[' && (end = set_end(p, *i)) > *i) {
		if (!set_has(str_make(p.p + *i + 1, end - *i - 2), (unsigned char)c))
			return false;
		*i = end;
		return true;
	}
	if (p.p[*i] != c)
		return false;
	++*i;
	return true;
}

bool glob_match(struct str pattern, struct str text)
{
	size_t i = 0, t = 0;
	size_t star = pattern.n,
	       star_text = 0; /* index after the last `*`, and end of the text it has taken */
	bool have_star = false;

	while (t < text.n) {
		if (i < pattern.n && pattern.p[i] == '*') {
			star = ++i;
			star_text = t;
			have_star = true;
		} else if (i < pattern.n && element_matches(pattern, &i, text.p[t])) {
			t++;
		} else if (have_star) {
			i = star;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (i < pattern.n && pattern.p[i] == '*')
		i++;
	return i == pattern.n;
}

bool glob_match_or_equal(struct str pattern, struct str text)
{
	return glob_is_pattern(pattern) ? glob_match(pattern, text) : str_eq(pattern, text);
}
