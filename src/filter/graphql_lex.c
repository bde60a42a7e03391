/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: blanks, commas, comments and byte order marks are skipped, then the longest
 * token is taken. Strings are decoded as they are met, into memory that is as large as the source.
 *
 * In addition to the edition of October 2021, \u{...} and surrogate pairs in escapes are accepted,
 * as in the next edition and in servers already; half a pair is refused. Control bytes are refused
 * everywhere, even if some servers accept them. */
#include "filter/graphql_lex.h"

#include "base/parse.h"

#include <errno.h>
#include <stdlib.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Return the byte that is `ahead` bytes further on, or NUL, which no source holds, after the
 * end. */
static char peek(const struct gql_lexer *l, size_t ahead)
{
	return ahead < l->source.n - l->at ? l->source.p[l->at + ahead] : '\0';
}

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

static void skip_ignored(struct gql_lexer *l)
{
	for (;;) {
		char c = peek(l, 0);

		if (c == ' ' || c == '\t' || c == ',' || is_line_end(c)) {
			l->at++;
		} else if (c == '#') {
			while (l->at < l->source.n && !is_line_end(peek(l, 0)))
				l->at++;
		} else if (str_starts(str_from_index(l->source, l->at), STR(BYTE_ORDER_MARK))) {
			l->at += sizeof(BYTE_ORDER_MARK) - 1;
		} else {
			return;
		}
	}
}

static void skip_digits(struct gql_lexer *l)
{
	while (str_is_digit(peek(l, 0)))
		l->at++;
}

/* 2.9.1, 2.9.2. */
static int lex_number(struct gql_lexer *l, struct gql_token *t)
{
	t->kind = GQL_T_INT;
	if (peek(l, 0) == '-')
		l->at++;
	if (!str_is_digit(peek(l, 0)))
		return -EINVAL;
	if (peek(l, 0) == '0')
		l->at++;
	else
		skip_digits(l);
	if (peek(l, 0) == '.') {
		t->kind = GQL_T_FLOAT;
		l->at++;
		if (!str_is_digit(peek(l, 0)))
			return -EINVAL;
		skip_digits(l);
	}
	if ((peek(l, 0) | 0x20) == 'e') {
		t->kind = GQL_T_FLOAT;
		l->at++;
		if (peek(l, 0) == '+' || peek(l, 0) == '-')
			l->at++;
		if (!str_is_digit(peek(l, 0)))
			return -EINVAL;
		skip_digits(l);
	}
	if (str_is_digit(peek(l, 0)) || peek(l, 0) == '.' || is_name_start(peek(l, 0)))
		return -EINVAL;
	t->text = str_make(l->source.p + t->at, l->at - t->at);
	return 0;
}

static void put(struct gql_lexer *l, char c)
{
	l->text[l->text_n++] = c;
}

static void put_code_point(struct gql_lexer *l, uint32_t cp)
{
	static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0};
	unsigned n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	if (n == 1) {
		put(l, (char)cp);
		return;
	}
	put(l, (char)(mark[n] | cp >> 6 * (n - 1)));
	while (--n > 0)
		put(l, (char)(0x80 | (cp >> 6 * (n - 1) & 0x3f)));
}

/* XXXX, or {X...} if `braces`. */
static int lex_code(struct gql_lexer *l, bool braces, uint32_t *ret)
{
	bool open = braces && peek(l, 0) == '{';
	uint32_t value = 0;
	unsigned n = 0;

	l->at += open;
	for (int digit; (open || n < 4) && (digit = parse_hex_digit(peek(l, 0))) >= 0; n++) {
		if (value >> 20)
			return -EINVAL;
		value = value << 4 | (uint32_t)digit;
		l->at++;
	}
	if (open ? n == 0 || peek(l, 0) != '}' : n != 4)
		return -EINVAL;
	l->at += open;
	*ret = value;
	return 0;
}

static int lex_unicode(struct gql_lexer *l)
{
	size_t at = l->at;
	uint32_t cp = 0, low = 0;
	int r = lex_code(l, true, &cp);

	if (r == 0 && cp >= 0xd800 && cp < 0xdc00 && peek(l, 0) == '\\' && peek(l, 1) == 'u') {
		bool pair = l->source.p[at] != '{';

		l->at += 2;
		r = lex_code(l, false, &low);
		if (r == 0 && pair && low >= 0xdc00 && low < 0xe000)
			cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
	}
	if (r < 0)
		return r;
	if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
		return -EINVAL;
	put_code_point(l, cp);
	return 0;
}

static int lex_escape(struct gql_lexer *l)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t i = str_chr(str_from(from), peek(l, 0));

	if (peek(l, 0) == 'u') {
		l->at++;
		return lex_unicode(l);
	}
	if (i == sizeof(from) - 1)
		return -EINVAL;
	put(l, to[i]);
	l->at++;
	return 0;
}

/* 2.9.4; after the opening quote. */
static int lex_string(struct gql_lexer *l, struct gql_token *t)
{
	size_t start = l->text_n;

	for (;;) {
		char c = peek(l, 0);
		int r;

		if (c == '\0' || is_line_end(c))
			return -EINVAL;
		l->at++;
		if (c == '"')
			break;
		if (c != '\\') {
			put(l, c);
			continue;
		}
		r = lex_escape(l);
		if (r < 0)
			return r;
	}
	t->text = str_make(l->text + start, l->text_n - start);
	return 0;
}

static size_t indent_of(struct str line)
{
	size_t n = 0;

	while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
		n++;
	return n;
}

/* Return the smallest indentation of the lines that are not blank, except for the first line. */
static size_t common_indent(struct str raw)
{
	size_t common = SIZE_MAX;

	for (bool first = true; raw.n > 0; first = false) {
		struct str line = str_next_line(&raw);
		size_t indent = indent_of(line);

		if (!first && indent < line.n && indent < common)
			common = indent;
	}
	return common;
}

/* BlockStringValue() of 2.9.4, in place: raw lies at l->text + start, its line ends are '\n', and
 * the result is not longer. */
static struct str dedent(struct gql_lexer *l, size_t start)
{
	struct str raw = str_make(l->text + start, l->text_n - start);
	size_t common = common_indent(raw), at = start, end = start;
	bool first = true;

	while (raw.n > 0) {
		struct str line = str_next_line(&raw);
		bool blank = indent_of(line) == line.n;

		if (!first)
			line = str_from_index(line, MIN(common, line.n));
		first = false;
		if (blank && end == start)
			continue; /* leading */
		if (at > start)
			l->text[at++] = '\n';
		memmove(l->text + at, line.p, line.n);
		at += line.n;
		if (!blank)
			end = at; /* blank lines after the last such one are dropped */
	}
	l->text_n = end;
	return str_make(l->text + start, end - start);
}

/* Called after the opening quotes. */
static int lex_block_string(struct gql_lexer *l, struct gql_token *t)
{
	size_t start = l->text_n;

	for (;;) {
		struct str rest = str_from_index(l->source, l->at);
		char c = peek(l, 0);

		if (c == '\0')
			return -EINVAL;
		if (str_starts(rest, STR("\"\"\"")))
			break;
		if (str_starts(rest, STR("\\\"\"\""))) {
			memcpy(l->text + l->text_n, "\"\"\"", 3);
			l->text_n += 3;
			l->at += 4;
			continue;
		}
		if (str_starts(rest, STR("\r\n")))
			l->at++;
		put(l, c == '\r' ? '\n' : c);
		l->at++;
	}
	l->at += 3;
	t->text = dedent(l, start);
	return 0;
}

static int lex_quoted(struct gql_lexer *l, struct gql_token *t)
{
	t->kind = GQL_T_STRING;
	if (!l->text)
		l->text = malloc(l->source.n);
	if (!l->text)
		return -ENOMEM;
	if (str_starts(str_from_index(l->source, l->at), STR("\"\"\""))) {
		l->at += 3;
		return lex_block_string(l, t);
	}
	l->at++;
	return lex_string(l, t);
}

static void lex_name(struct gql_lexer *l, struct gql_token *t)
{
	while (is_name_start(peek(l, 0)) || str_is_digit(peek(l, 0)))
		l->at++;
	t->kind = GQL_T_NAME;
	t->text = str_make(l->source.p + t->at, l->at - t->at);
}

int gql_lex(struct gql_lexer *l, struct gql_token *ret)
{
	char c;

	skip_ignored(l);
	*ret = (struct gql_token){.kind = GQL_T_END, .at = l->at};
	if (l->at == l->source.n)
		return 0;
	if (l->tokens++ == GQL_TOKENS_MAX)
		return -E2BIG;
	c = peek(l, 0);
	if (is_name_start(c)) {
		lex_name(l, ret);
		return 0;
	}
	if (str_is_digit(c) || c == '-')
		return lex_number(l, ret);
	if (c == '"')
		return lex_quoted(l, ret);
	if (c == '.' && (peek(l, 1) != '.' || peek(l, 2) != '.'))
		return -EINVAL;
	if (str_chr(STR("!$&().:=@[]{|}"), c) == sizeof("!$&().:=@[]{|}") - 1)
		return -EINVAL;
	ret->kind = GQL_T_PUNCTUATOR;
	ret->c = c;
	l->at += c == '.' ? 3 : 1;
	return 0;
}
