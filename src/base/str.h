/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* String views by value: pointer and length, borrowed, not terminated. Bytes from a room or a
 * network are handled only in this form; no str* function is used on them. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){"" lit, sizeof(lit) - 1})
#define STR_NULL ((struct str){NULL, 0})
/* For printf("%.*s"). */
#define STR_FMT(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_make(const void *p, size_t n)
{
	return (struct str){p, n};
}

/* Return a view of a terminated string; NULL gives the null view. */
static inline struct str str_from(const char *z)
{
	return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Classes of ASCII characters, whatever the locale. */
static inline bool str_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool str_is_alnum(char c)
{
	return str_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char str_lower_char(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Compare, ignoring ASCII case. Unlike strncasecmp() this neither stops at a NUL nor depends on the
 * locale. */
static inline bool str_ieq(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (str_lower_char(a.p[i]) != str_lower_char(b.p[i]))
			return false;
	return true;
}

static inline bool str_is_one_of(struct str s, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s, list[i]))
			return true;
	return false;
}

/* Return whether s has nothing but visible ASCII: no space, no control characters. */
static inline bool str_is_visible(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
			return false;
	return true;
}

/* Compare as bytes: return below, equal to or above 0. A prefix of a string sorts before it. */
static inline int str_compare(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int r = n ? memcmp(a.p, b.p, n) : 0;

	return r != 0 ? r : (a.n > b.n) - (a.n < b.n);
}

static inline bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0);
}

/* Return the index of c, or s.n if there is none. */
static inline size_t str_chr(struct str s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
	return at ? (size_t)(at - s.p) : s.n;
}

/* Return the part from index `from` (at most s.n) to the end. */
static inline struct str str_from_index(struct str s, size_t from)
{
	return from >= s.n ? str_make(s.p ? s.p + s.n : NULL, 0) : str_make(s.p + from, s.n - from);
}

static inline struct str str_prefix(struct str s, size_t n)
{
	return str_make(s.p, n < s.n ? n : s.n);
}

/* Take off the front of *rest what stands before `end` (or all of it), and `end`; return it without
 * `end`. */
static inline struct str str_next(struct str *rest, char end)
{
	struct str part = str_prefix(*rest, str_chr(*rest, end));

	*rest = str_from_index(*rest, part.n + 1);
	return part;
}

/* Take a line off the front; return it without its line end. */
static inline struct str str_next_line(struct str *rest)
{
	return str_next(rest, '\n');
}

/* Sets of characters, for str_is_all(). */
#define STR_DIGITS "0123456789"
#define STR_LOWER "abcdefghijklmnopqrstuvwxyz"
#define STR_UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Return whether each byte of s, which may be empty, is one of these characters. */
static inline bool str_is_all(struct str s, const char *of)
{
	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || !strchr(of, s.p[i]))
			return false;
	return true;
}

/* Remove spaces and tabs at both ends. */
static inline struct str str_trim(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_make(s.p + 1, s.n - 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Return the index of the first occurrence of needle, or s.n. An empty needle is found at 0. */
static inline size_t str_find(struct str s, struct str needle)
{
	const char *at;

	if (needle.n == 0)
		return 0;
	at = s.p && s.n >= needle.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
	return at ? (size_t)(at - s.p) : s.n;
}

/* Copy s into ret, terminated, and cut it if it is too long. */
static inline void str_copy(char *ret, size_t size, struct str s)
{
	s = str_prefix(s, size - 1);
	if (s.n)
		memcpy(ret, s.p, s.n);
	ret[s.n] = '\0';
}

/* Return a terminated heap copy, NULL on lack of memory. A NUL inside is copied as it is. */
static inline char *str_dup(struct str s)
{
	char *copy = __builtin_malloc(s.n + 1);

	if (!copy)
		return NULL;
	if (s.n)
		memcpy(copy, s.p, s.n);
	copy[s.n] = '\0';
	return copy;
}
