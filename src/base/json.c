/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/escape.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* Deeper than jansson's parser goes; only a value built by hand can exceed it. */
#define DEPTH_MAX 2100

struct writer {
	struct buf *out;
	unsigned indent;
	bool compact;
};

static int write_value(struct writer *w, const json_t *v, unsigned depth);

/* Write the fewest digits (15 to 17) that read back as the same double; 17 always do (IEEE 754). */
static int write_real(struct buf *out, double v)
{
	char text[40];
	bool marked = false;
	int n = 0;

	if (!isfinite(v))
		return buf_add(out, "null", 4);
	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	for (int i = 0; i < n; i++) {
		bool digit = (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+';

		if (!digit && text[i] != 'e')
			text[i] = '.'; /* the locale's decimal point */
		marked = marked || text[i] == '.' || text[i] == 'e';
	}
	if (!marked) {
		memcpy(text + n, ".0", 2);
		n += 2;
	}
	return buf_add(out, text, (size_t)n);
}

/* Write the separator before a member (first or not) or, with `last`, before the closing
 * bracket. */
static int write_break(struct writer *w, unsigned depth, bool first, bool last)
{
	int r = 0;

	if (!first && !last)
		r = buf_add(w->out, ", ", w->indent || w->compact ? 1 : 2);
	if (r == 0 && w->indent) {
		r = buf_add_char(w->out, '\n');
		for (unsigned i = 0; r == 0 && i < depth * w->indent; i++)
			r = buf_add_char(w->out, ' ');
	}
	return r;
}

static int write_object(struct writer *w, const json_t *v, unsigned depth)
{
	/* Iteration changes nothing, although jansson's functions take a non-const pointer. */
	json_t *object = (json_t *)(uintptr_t)v;
	bool first = true;
	int r;

	if (json_object_size(v) == 0)
		return buf_add(w->out, "{}", 2);
	r = buf_add_char(w->out, '{');
	for (void *it = json_object_iter(object); r == 0 && it;
		it = json_object_iter_next(object, it)) {
		r = write_break(w, depth + 1, first, false);
		if (r == 0)
			r = escape_json(w->out, str_from(json_object_iter_key(it)), !w->compact);
		if (r == 0)
			r = buf_add(w->out, ": ", w->compact ? 1 : 2);
		if (r == 0)
			r = write_value(w, json_object_iter_value(it), depth + 1);
		first = false;
	}
	if (r == 0)
		r = write_break(w, depth, false, true);
	return r < 0 ? r : buf_add_char(w->out, '}');
}

static int write_array(struct writer *w, const json_t *v, unsigned depth)
{
	size_t n = json_array_size(v);
	int r;

	if (n == 0)
		return buf_add(w->out, "[]", 2);
	r = buf_add_char(w->out, '[');
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = write_break(w, depth + 1, i == 0, false);
		if (r == 0)
			r = write_value(w, json_array_get(v, i), depth + 1);
	}
	if (r == 0)
		r = write_break(w, depth, false, true);
	return r < 0 ? r : buf_add_char(w->out, ']');
}

static int write_value(struct writer *w, const json_t *v, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return -E2BIG;
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		return write_object(w, v, depth);
	case JSON_ARRAY:
		return write_array(w, v, depth);
	case JSON_STRING:
		return escape_json(w->out, json_str(v), !w->compact);
	case JSON_INTEGER:
		return buf_printf(w->out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	case JSON_REAL:
		return write_real(w->out, json_real_value(v));
	case JSON_TRUE:
		return buf_add(w->out, "true", 4);
	case JSON_FALSE:
		return buf_add(w->out, "false", 5);
	case JSON_NULL:
	default:
		return buf_add(w->out, "null", 4);
	}
}

int json_text_write(struct buf *out, const json_t *value, unsigned indent)
{
	bool compact = indent == JSON_TEXT_COMPACT;
	struct writer w = {.out = out, .indent = compact ? 0 : indent, .compact = compact};

	return write_value(&w, value, 0);
}

int json_text_read(struct str text, size_t flags, json_t **ret, json_error_t *why)
{
	json_error_t own;
	json_t *value;

	why = why ? why : &own;
	errno = 0;
	value = json_loadb(text.p ? text.p : "", text.n, flags, why);
	if (value) {
		*ret = value;
		return 0;
	}
	/* If an allocation failed, jansson reports "invalid token" or nothing. */
	if (errno == ENOMEM || json_error_code(why) == json_error_out_of_memory)
		return -ENOMEM;
	return json_error_code(why) == json_error_numeric_overflow ? -ERANGE : -EINVAL;
}

static int hex4_read(struct str s, unsigned *ret)
{
	unsigned v = 0;

	if (s.n < 4)
		return -EINVAL;
	for (size_t i = 0; i < 4; i++) {
		int digit = parse_hex_digit(s.p[i]);

		if (digit < 0)
			return -EINVAL;
		v = v << 4 | (unsigned)digit;
	}
	*ret = v;
	return 0;
}

size_t json_escape_length(struct str s, bool *ret_half)
{
	unsigned high, low;

	*ret_half = false;
	if (s.n < 2 || s.p[1] != 'u' || hex4_read(str_from_index(s, 2), &high) < 0)
		return MIN(s.n, (size_t)2);
	if (high < 0xd800 || high > 0xdfff)
		return 6;
	if (high < 0xdc00 && s.n >= 12 && s.p[6] == '\\' && s.p[7] == 'u' &&
		hex4_read(str_from_index(s, 8), &low) == 0 && low >= 0xdc00 && low <= 0xdfff)
		return 12;
	*ret_half = true;
	return 6;
}

int json_add_missing(json_t *object, const json_t *from)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)from, key, value)
		if (!json_object_get(object, key) &&
			json_object_set_nocheck(object, key, value) < 0)
			return -ENOMEM;
	return 0;
}

json_t *json_utf8(struct str s)
{
	_cleanup_(buf_donep) struct buf clean = BUF_INIT(SIZE_MAX / 2);

	if (utf8_is_valid(s))
		return json_stringn_nocheck(s.p ? s.p : "", s.n);
	while (s.n > 0) {
		size_t n = utf8_decode(s, NULL);
		int r = n ? buf_add(&clean, s.p, n) : buf_add_str(&clean, STR(UTF8_REPLACEMENT));

		if (r < 0)
			return NULL;
		s = str_from_index(s, MAX(n, (size_t)1));
	}
	return json_stringn_nocheck(buf_data(&clean), buf_len(&clean));
}

json_t *json_text(const char *text)
{
	return text ? json_utf8(str_from(text)) : json_null();
}

json_t *json_texts(char *const *texts)
{
	_cleanup_json_ json_t *all = json_array();

	for (; all && texts && *texts; texts++)
		if (json_array_append_new(all, json_text(*texts)) < 0)
			return NULL;
	return TAKE_PTR(all);
}
