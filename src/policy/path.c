/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a rule about paths is only worth something when the origin reads the path as
 * we do. Servers differ in what they decode, how often, what they strip and fold. So we do not try
 * to be like any of them: a path is taken only when every one of those readings gives the same
 * segments, and refused otherwise. Splitting at '?' comes first, because that is what the origin
 * does with the raw bytes; then one decoding; then the checks on the decoded bytes. */
#include "policy/path.h"

#include "base/parse.h"
#include "base/utf8.h"
#include "policy/glob.h"
#include <errno.h>

/* How many `?` of a pattern are tried as the border between path and query. */
#define BORDERS_MAX 8

static bool has_raw_byte(struct str s, bool backslash_too)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c >= 0x7f || c == '#' || (backslash_too && c == '\\'))
			return true;
	}
	return false;
}

/* Decodes s once into mem (s.n bytes). A '%' that begins no triplet sets *ret_bad and stays. */
static struct str decode(struct str s, char *mem, bool *ret_bad, bool *ret_slash)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		int value;

		if (s.p[i] != '%') {
			mem[n++] = s.p[i];
			continue;
		}
		value = parse_percent(str_from_index(s, i));
		if (value < 0) {
			*ret_bad = true;
			mem[n++] = '%';
			continue;
		}
		*ret_slash |= value == '/';
		mem[n++] = (char)value;
		i += 2;
	}
	return str_make(mem, n);
}

/* "." and "..", also with parameters: Java servers cut "..;x" at the ';' before they resolve it. */
static bool is_dot_segment(struct str segment)
{
	struct str name = str_prefix(segment, str_chr(segment, ';'));

	return str_eq(name, STR(".")) || str_eq(name, STR(".."));
}

static bool has_segment(struct str path, bool (*is)(struct str segment))
{
	while (path.n > 0) {
		size_t end = str_chr(path, '/');

		if (is(str_prefix(path, end)))
			return true;
		path = str_from_index(path, end + 1);
	}
	return false;
}

/* Characters that NFKC turns into '.', '/', '\' or '%', and two slashes that look like one. */
static bool is_lookalike(uint32_t c)
{
	static const uint32_t folded[] = {0x2024, 0x2025, 0x2026, 0x2044, 0x2215, 0xfe52, 0xfe68,
		0xfe6a, 0xff05, 0xff0e, 0xff0f, 0xff3c};

	for (size_t i = 0; i < ARRAY_SIZE(folded); i++)
		if (c == folded[i])
			return true;
	return false;
}

/* A space, Unicode's other White_Space beyond ASCII, and two invisible characters. */
static bool is_blank(uint32_t c)
{
	return c == ' ' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200b) ||
	       c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000 ||
	       c == 0xfeff;
}

/* ".. ", "...": Windows, for one, strips dots and blanks at the end of a name. */
static bool is_dots(struct str segment)
{
	bool dots = false;

	segment = str_prefix(segment, str_chr(segment, ';'));
	while (segment.n > 0) {
		uint32_t c = 0;
		size_t n = utf8_decode(segment, &c);

		if (n == 0 || (c != '.' && !is_blank(c)))
			return false;
		dots |= c == '.';
		segment = str_from_index(segment, n);
	}
	return dots;
}

static enum path_problem check_always(struct str decoded)
{
	for (size_t i = 0; i < decoded.n; i++) {
		unsigned char c = (unsigned char)decoded.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return PATH_CONTROL;
	}
	return has_segment(decoded, is_dot_segment) ? PATH_DOT_SEGMENT : PATH_OK;
}

static enum path_problem check_unsure(struct str decoded)
{
	enum path_problem problem = PATH_OK;

	for (struct str rest = decoded; rest.n > 0;) {
		uint32_t c = 0;
		size_t n = utf8_decode(rest, &c);

		if (n == 0)
			return PATH_NOT_UTF8;
		if (is_lookalike(c) || (c >= 0x80 && c < 0xa0))
			problem = PATH_LOOKALIKE;
		if (problem == PATH_OK && parse_percent(rest) >= 0)
			problem = PATH_DOUBLE_ENCODED;
		rest = str_from_index(rest, n);
	}
	if (problem == PATH_OK && str_find(decoded, STR("//")) < decoded.n)
		problem = PATH_EMPTY_SEGMENT;
	if (has_segment(decoded, is_dots))
		problem = PATH_DOTS;
	if (str_chr(decoded, '\\') < decoded.n)
		problem = PATH_BACKSLASH;
	return str_chr(decoded, '\t') < decoded.n ? PATH_TAB : problem;
}

int path_parse(struct str target, struct path *ret)
{
	size_t mark = str_chr(target, '?');
	struct str raw = str_prefix(target, mark);
	bool bad_percent = false;

	*ret = (struct path){.has_query = mark < target.n};
	ret->query = str_from_index(target, mark + 1);
	if (raw.n == 0 || raw.p[0] != '/')
		ret->problem = PATH_NOT_ABSOLUTE;
	else if (target.n > PATH_MAX_TARGET)
		ret->problem = PATH_TOO_LONG;
	else if (has_raw_byte(raw, true) || has_raw_byte(ret->query, false))
		ret->problem = PATH_RAW_BYTE;
	if (ret->problem != PATH_OK)
		return 0;

	ret->mem = malloc(raw.n);
	if (!ret->mem)
		return -ENOMEM;
	ret->decoded = decode(raw, ret->mem, &bad_percent, &ret->encoded_slash);
	ret->problem = bad_percent ? PATH_BAD_PERCENT : check_always(ret->decoded);
	if (ret->problem == PATH_OK)
		ret->unsure = check_unsure(ret->decoded);
	return 0;
}

void path_done(struct path *p)
{
	free(p->mem);
	*p = (struct path){0};
}

enum path_problem path_problem_for_rule(const struct path *p, bool rule_takes_encoded_slash)
{
	if (p->problem != PATH_OK)
		return p->problem;
	if (p->unsure != PATH_OK)
		return p->unsure;
	return p->encoded_slash && !rule_takes_encoded_slash ? PATH_ENCODED_SLASH : PATH_OK;
}

const char *path_problem_text(enum path_problem problem)
{
	static const char *const texts[] = {
		[PATH_OK] = "the path is unambiguous",
		[PATH_NOT_ABSOLUTE] = "the target does not begin with a slash",
		[PATH_TOO_LONG] = "the target is too long",
		[PATH_RAW_BYTE] = "the target holds a byte that has to be percent-encoded",
		[PATH_BAD_PERCENT] = "the path holds a percent sign without two hexadecimal digits",
		[PATH_CONTROL] = "the path holds an encoded control byte",
		[PATH_TAB] = "the path holds an encoded tab",
		[PATH_BACKSLASH] = "the path holds an encoded backslash",
		[PATH_DOT_SEGMENT] = "the path holds a dot segment (. or ..)",
		[PATH_DOTS] =
			"the path holds a segment of dots and blanks, which some servers shorten",
		[PATH_NOT_UTF8] = "the decoded path is not UTF-8",
		[PATH_LOOKALIKE] =
			"the path holds a character that some servers turn into . / \\ or %",
		[PATH_EMPTY_SEGMENT] = "the path holds an empty segment (//)",
		[PATH_DOUBLE_ENCODED] = "the path is percent-encoded twice",
		[PATH_ENCODED_SLASH] = "the path holds an encoded slash (%2F)",
	};

	_Static_assert(ARRAY_SIZE(texts) == PATH_PROBLEMS, "each problem has a text");
	return texts[problem];
}

/* Whether the query matches, decoded where it can be. False on lack of memory. */
static bool query_matches(struct str pattern, struct str query)
{
	_cleanup_(freep) char *mem = malloc(query.n + 1);
	bool bad = false, slash = false;

	return mem && glob_match(pattern, decode(query, mem, &bad, &slash));
}

static bool border_matches(struct str pattern, const struct path *p, bool any_query)
{
	size_t at = 0;

	for (int i = 0; i < BORDERS_MAX; i++) {
		at += str_chr(str_from_index(pattern, at), '?');
		if (at >= pattern.n)
			return false;
		if (glob_match(str_prefix(pattern, at), p->decoded) &&
			(any_query || query_matches(str_from_index(pattern, at + 1), p->query)))
			return true;
		at++;
	}
	return false;
}

bool path_pattern_matches(struct str pattern, const struct path *p)
{
	return glob_match_or_equal(pattern, p->decoded) ||
	       (p->has_query && border_matches(pattern, p, false));
}

bool path_pattern_has_query(struct str pattern, const struct path *p)
{
	return border_matches(pattern, p, true);
}

int path_fold(struct str decoded, struct buf *ret)
{
	char last = '\0';
	int r = 0;

	for (size_t i = 0; r == 0 && i < decoded.n; i++) {
		char c = str_lower_char(decoded.p[i]);

		if (c == ';')
			while (i + 1 < decoded.n && decoded.p[i + 1] != '/')
				i++;
		else if (c != '/' || last != '/')
			r = buf_add_char(ret, last = c);
	}
	while (r == 0 && buf_len(ret) > 0 && buf_data(ret)[buf_len(ret) - 1] == '/')
		ret->tail--;
	return r;
}

/* The next segment that is not empty, without its parameters; the null view at the end. */
static struct str next_segment(struct str *path)
{
	struct str segment = STR_NULL;

	while (path->n > 0 && segment.n == 0) {
		size_t end = str_chr(*path, '/');

		segment = str_prefix(*path, end);
		segment = str_prefix(segment, str_chr(segment, ';'));
		*path = str_from_index(*path, end + 1);
	}
	return segment;
}

static bool is_name_char(char c)
{
	return str_is_alnum(c) || c == '-' || c == '_';
}

static bool segment_may_be(struct str segment, struct str name)
{
	while (segment.n > 0 && (unsigned char)segment.p[0] <= ' ')
		segment = str_from_index(segment, 1);
	if (str_chr(segment, '%') < segment.n)
		return true; /* it may be decoded once more */
	return str_ieq(str_prefix(segment, name.n), name) &&
	       (segment.n == name.n || !is_name_char(segment.p[name.n]));
}

bool path_may_be(struct str path, struct str endpoint, bool below)
{
	if (str_chr(path, '\\') < path.n)
		return true;
	for (;;) {
		struct str name = next_segment(&endpoint), segment = next_segment(&path);

		if (name.n == 0)
			return below || segment.n == 0;
		if (!segment_may_be(segment, name))
			return false;
	}
}

bool path_prefix_matches(struct str prefix, const struct path *p)
{
	if (!str_starts(p->decoded, prefix))
		return false;
	return p->decoded.n == prefix.n || p->decoded.p[prefix.n] == '/';
}
