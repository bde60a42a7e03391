/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: jansson reads a copy of the text, of the same length, in which everything
 * that it cannot represent is replaced. So jansson still decides what is JSON. To write a changed
 * value, the text is walked in parallel with two trees, the old value and the new one, and copied
 * up to each difference. In jansson's trees the members of an object are in the order of the text,
 * and none is repeated. */
#include "filter/body_json.h"

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------- reading ----------------------------------------- */

/* What jansson certainly holds: an integer of 64 bits, and a double. */
enum { DIGITS_MAX = 18, EXPONENT_MAX = 308 };

struct copy {
	struct str text;
	char *bytes; /* NULL until something is replaced */
};

static int copy_replace(struct copy *c, size_t at, struct str with)
{
	if (!c->bytes) {
		c->bytes = malloc(c->text.n);
		if (!c->bytes)
			return -ENOMEM;
		memcpy(c->bytes, c->text.p, c->text.n);
	}
	memcpy(c->bytes + at, with.p, with.n);
	return 0;
}

static bool char_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t digits_length(struct str s)
{
	size_t n = 0;

	while (n < s.n && str_is_digit(s.p[n]))
		n++;
	return n;
}

/* Return the length of the exponent that s begins with, or 0. A positive exponent is added to
 * *size. */
static size_t exponent_length(struct str s, size_t *size)
{
	size_t at = 1, n, value = 0;

	if (s.n < 2 || (s.p[0] | 0x20) != 'e')
		return 0;
	at += s.p[1] == '+' || s.p[1] == '-';
	n = digits_length(str_from_index(s, at));
	for (size_t i = at; i < at + n && value <= EXPONENT_MAX; i++)
		value = value * 10 + (size_t)(s.p[i] - '0');
	if (s.p[1] != '-')
		*size += value;
	return n > 0 ? at + n : 0;
}

/* Return the length of the number (RFC 8259 section 6) that s begins with, without a sign. jansson
 * finds invalid bytes after it and a leading zero that should not be there. */
static size_t number_length(struct str s, bool *ret_wide)
{
	size_t size = digits_length(s), at = size, n;
	bool real = false, leading = size > 1 && s.p[0] == '0';

	if (at < s.n && s.p[at] == '.') {
		n = digits_length(str_from_index(s, at + 1));
		at += n > 0 ? n + 1 : 0;
		real = n > 0;
	}
	n = exponent_length(str_from_index(s, at), &size);
	*ret_wide = !leading && size > (real || n > 0 ? (size_t)EXPONENT_MAX : (size_t)DIGITS_MAX);
	return at + n;
}

/* Move *at past the number there, and replace one that is too large. Such a number has at least
 * five characters. */
static int number_take(struct copy *c, size_t *at)
{
	bool wide;
	size_t n = number_length(str_from_index(c->text, *at), &wide);
	int r = wide ? copy_replace(c, *at, STR("9e99")) : 0;

	for (size_t i = 4; r == 0 && wide && i < n; i++)
		c->bytes[*at + i] = ' ';
	*at += n;
	return r;
}

/* Move *at past the string there. Replace halves of surrogate pairs in it, or only report whether
 * there are any. */
static int string_walk(struct copy *c, size_t *at, bool replace, bool *ret_halves)
{
	size_t i = *at + 1, n = 1;
	int r = 0;

	for (; r == 0 && i < c->text.n && c->text.p[i] != '"'; i += n) {
		bool half = false;

		n = 1;
		if (c->text.p[i] == '\\')
			n = json_escape_length(str_from_index(c->text, i), &half);
		if (half && replace)
			r = copy_replace(c, i, STR("\\ufffd"));
		*ret_halves |= half;
	}
	*at = i + 1;
	return r;
}

/* A half in a member's name is not replaced, so that jansson refuses it: a server that drops it
 * would read another name. */
static int string_take(struct copy *c, size_t *at)
{
	size_t start = *at, next;
	bool halves = false;
	int r = string_walk(c, at, false, &halves);

	for (next = *at; next < c->text.n && char_is_blank(c->text.p[next]);)
		next++;
	if (r < 0 || !halves || (next < c->text.n && c->text.p[next] == ':'))
		return r;
	return string_walk(c, &start, true, &halves);
}

int body_json_read(struct str text, json_t **ret)
{
	struct copy c = {.text = text};
	json_error_t why;
	int r = 0;

	/* jansson does not notice a NUL after a number. */
	if (str_chr(text, '\0') < text.n)
		return -EINVAL;
	for (size_t i = 0; r == 0 && i < text.n;) {
		if (text.p[i] == '"')
			r = string_take(&c, &i);
		else if (str_is_digit(text.p[i]))
			r = number_take(&c, &i);
		else
			i++;
	}
	if (r == 0)
		r = json_text_read(c.bytes ? str_make(c.bytes, text.n) : text,
			JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, ret, &why);
	free(c.bytes);
	if (r < 0 && r != -ENOMEM)
		return json_error_code(&why) == json_error_duplicate_key ? -EEXIST : -EINVAL;
	return r;
}

/* ------------------------------------------- writing ----------------------------------------- */

struct rewrite {
	struct buf *out;
	struct str text;
	size_t at;   /* where the walk is */
	size_t done; /* everything before it was written, or left out */
};

static int rewrite_flush(struct rewrite *w, size_t to)
{
	int r = buf_add(w->out, w->text.p + w->done, to - w->done);

	w->done = to;
	return r;
}

static bool rewrite_is_at(const struct rewrite *w, char c)
{
	return w->at < w->text.n && w->text.p[w->at] == c;
}

static void blanks_skip(struct rewrite *w)
{
	while (w->at < w->text.n && char_is_blank(w->text.p[w->at]))
		w->at++;
}

/* Skip the string, number, word or punctuation here. */
static void token_skip(struct rewrite *w)
{
	bool quoted = rewrite_is_at(w, '"');

	w->at++;
	if (str_chr(STR("[]{},:"), w->text.p[w->at - 1]) < 6)
		return;
	for (; w->at < w->text.n; w->at++) {
		char c = w->text.p[w->at];

		if (quoted && c == '\\')
			w->at++;
		else if (quoted ? c == '"' : char_is_blank(c) || str_chr(STR("]},:"), c) < 4)
			break;
	}
	w->at += quoted;
}

static void value_skip(struct rewrite *w)
{
	size_t depth = 0;

	do {
		blanks_skip(w);
		depth += rewrite_is_at(w, '[') || rewrite_is_at(w, '{');
		depth -= rewrite_is_at(w, ']') || rewrite_is_at(w, '}');
		token_skip(w);
	} while (depth > 0 && w->at < w->text.n);
}

static int value_rewrite(struct rewrite *w, const json_t *before, const json_t *after);

static int array_rewrite(struct rewrite *w, const json_t *before, const json_t *after)
{
	int r = 0;

	token_skip(w); /* the bracket */
	for (size_t i = 0; r == 0 && i < json_array_size(before); i++) {
		r = value_rewrite(w, json_array_get(before, i), json_array_get(after, i));
		blanks_skip(w);
		token_skip(w); /* the comma, or the bracket */
	}
	if (json_array_size(before) == 0) {
		blanks_skip(w);
		token_skip(w);
	}
	return r;
}

/* Rewrite one member, including the comma before it. */
static int member_rewrite(struct rewrite *w, const json_t *before, const json_t *after, bool *first)
{
	size_t start = w->at;
	int r = 0;

	blanks_skip(w);
	if (rewrite_is_at(w, ',')) {
		if (*first && after) {
			r = rewrite_flush(w, w->at);
			w->done++; /* all members before it were removed */
		}
		token_skip(w);
		blanks_skip(w);
	}
	if (r == 0 && !after)
		r = rewrite_flush(w, start);
	token_skip(w); /* the name */
	blanks_skip(w);
	token_skip(w); /* the colon */
	if (r == 0 && after) {
		*first = false;
		return value_rewrite(w, before, after);
	}
	value_skip(w);
	w->done = w->at;
	return r;
}

static int member_add(struct rewrite *w, const char *name, const json_t *value, bool *first)
{
	_cleanup_json_ json_t *text = json_string(name);
	int r = text ? rewrite_flush(w, w->at) : -ENOMEM;

	if (r == 0 && !*first)
		r = buf_add_char(w->out, ',');
	*first = false;
	if (r == 0)
		r = json_text_write(w->out, text, JSON_TEXT_COMPACT);
	if (r == 0)
		r = buf_add_char(w->out, ':');
	return r < 0 ? r : json_text_write(w->out, value, JSON_TEXT_COMPACT);
}

static int object_rewrite(struct rewrite *w, const json_t *before, const json_t *after)
{
	const char *name;
	json_t *member;
	bool first = true;
	int r = 0;

	token_skip(w); /* the brace */
	json_object_foreach ((json_t *)(uintptr_t)before, name, member) {
		if (r == 0)
			r = member_rewrite(w, member, json_object_get(after, name), &first);
	}
	json_object_foreach ((json_t *)(uintptr_t)after, name, member) {
		if (r == 0 && !json_object_get(before, name))
			r = member_add(w, name, member, &first);
	}
	blanks_skip(w);
	token_skip(w);
	return r;
}

static int value_rewrite(struct rewrite *w, const json_t *before, const json_t *after)
{
	int r;

	blanks_skip(w);
	if (json_is_object(before) && json_is_object(after))
		return object_rewrite(w, before, after);
	if (json_is_array(before) && json_is_array(after) &&
		json_array_size(before) == json_array_size(after))
		return array_rewrite(w, before, after);
	if (json_equal(before, after)) {
		value_skip(w);
		return 0;
	}
	r = rewrite_flush(w, w->at);
	value_skip(w);
	w->done = w->at;
	return r < 0 ? r : json_text_write(w->out, after, JSON_TEXT_COMPACT);
}

int body_json_write(struct buf *out, struct str text, const json_t *after)
{
	struct rewrite w = {.out = out, .text = text};
	_cleanup_json_ json_t *before = NULL;
	int r = body_json_read(text, &before);

	if (r == 0)
		r = value_rewrite(&w, before, after);
	return r < 0 ? r : rewrite_flush(&w, text.n);
}
