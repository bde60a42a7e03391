/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a line is one JSON object. Exactly one of the known members is there and
 * gives its kind. Unknown members are ignored, so that a later version can add some. */
#include "base/base64.h"
#include "base/utf8.h"
#include "record/cassette.h"

#include <errno.h>

void cassette_line_done(struct cassette_line *l)
{
	json_decref(l->doc);
	buf_done(&l->bytes);
	buf_done(&l->value);
	*l = CASSETTE_LINE_INIT;
}

static int no_line(struct cloche_err *err, const char *why)
{
	return err_set(err, E_CORRUPT, "it is no line of a cassette: %s", why);
}

/* --- headers --- */

static bool is_headers(const json_t *headers)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(headers) || json_array_size(headers) > CASSETTE_HEADERS_MAX)
		return false;
	json_array_foreach (headers, i, one)
		if (!json_is_array(one) || json_array_size(one) != 2 ||
			!json_is_string(json_array_get(one, 0)) ||
			!json_is_string(json_array_get(one, 1)))
			return false;
	return true;
}

/* Convert to bytes. A character above U+00FF becomes NUL, which no header may hold. */
static int cassette_line_add_bytes(struct buf *out, struct str s)
{
	int r = 0;

	while (r == 0 && s.n > 0) {
		uint32_t c = 0;
		size_t n = utf8_decode(s, &c);

		r = buf_add_char(out, (char)(n > 0 && c <= 0xff ? c : 0));
		s = str_from_index(s, MAX(n, (size_t)1));
	}
	return r;
}

bool cassette_header(struct cassette_line *l, size_t i, struct str *ret_name, struct str *ret_value)
{
	const json_t *one = json_array_get(l->headers, i);

	buf_clear(&l->value);
	if (!one || cassette_line_add_bytes(&l->value, json_str(json_array_get(one, 1))) < 0)
		return false;
	*ret_name = json_str(json_array_get(one, 0));
	*ret_value = buf_str(&l->value);
	return true;
}

/* --- the kinds of lines --- */

static bool is_text(struct str s, size_t max)
{
	return s.n > 0 && s.n <= max && str_is_visible(s);
}

static int read_request(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	l->method = json_str_at(v, "method");
	l->url = json_str_at(v, "url");
	l->headers = json_object_get(v, "headers");
	if (!is_text(l->method, CASSETTE_METHOD_MAX) || !is_text(l->url, CASSETTE_URL_MAX))
		return no_line(err, "a request has a method and a URL, in ASCII");
	return is_headers(l->headers) ? 0 : no_line(err, "a request has headers");
}

static int read_status(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	uint64_t status = json_count_at(v, "status");

	if (status < 100 || status > 999)
		return no_line(err, "a status is a number from 100 to 999");
	l->status = (unsigned)status;
	return 0;
}

static int read_refused(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	l->reason = json_str_at(v, "reason");
	if (!l->reason.p)
		l->reason = STR("");
	return read_status(l, v, err);
}

static int read_response(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	l->headers = json_object_get(v, "headers");
	if (!is_headers(l->headers))
		return no_line(err, "an answer has headers");
	return read_status(l, v, err);
}

static int read_piece(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	int r = json_is_string(v) ? base64_decode(&l->bytes, json_str(v)) : -EINVAL;

	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == -E2BIG || l->bytes.tail > CASSETTE_PIECE_MAX)
		return no_line(err, "the piece is too long");
	if (r < 0)
		return no_line(err, "a piece is no base64");
	l->piece = buf_str(&l->bytes);
	return 0;
}

static int read_end(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	l->headers = json_object_get(l->doc, "trailers");
	l->error = json_str_at(l->doc, "error");
	if (!json_is_true(v))
		return no_line(err, "what says an end is true");
	return !l->headers || is_headers(l->headers) ? 0 : no_line(err, "trailers are none");
}

static int read_word(struct cassette_line *l, const json_t *v, struct cloche_err *err)
{
	return json_is_true(v) ? 0 : no_line(err, "\"cut\" or \"upgraded\" is not true");
}

static const struct {
	const char *name;
	int (*read)(struct cassette_line *l, const json_t *v, struct cloche_err *err);
} kinds[] = {
	[CASSETTE_REQUEST] = {"request", read_request},
	[CASSETTE_SENT] = {"sent", read_piece},
	[CASSETTE_SENT_END] = {"sent_end", read_end},
	[CASSETTE_REFUSED] = {"refused", read_refused},
	[CASSETTE_RESPONSE] = {"response", read_response},
	[CASSETTE_UPGRADED] = {"upgraded", read_word},
	[CASSETTE_DATA] = {"data", read_piece},
	[CASSETTE_END] = {"end", read_end},
	[CASSETTE_CUT] = {"cut", read_word},
};

static void clear(struct cassette_line *l)
{
	struct buf bytes = l->bytes, value = l->value;

	json_decref(l->doc);
	buf_clear(&bytes);
	buf_clear(&value);
	*l = (struct cassette_line){.bytes = bytes, .value = value};
}

static int read_value(struct cassette_line *l, struct cloche_err *err)
{
	const json_t *value = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const json_t *v = json_object_get(l->doc, kinds[i].name);

		if (v && value)
			return no_line(err, "it is two things");
		if (v)
			l->kind = (enum cassette_kind)i;
		value = v ? v : value;
	}
	if (!value)
		return no_line(err, "it is nothing that is known");
	l->usec = json_count_at(l->doc, "t");
	l->number = json_count_at(l->doc, "e");
	if (l->number == 0 && (l->kind != CASSETTE_CUT || json_object_get(l->doc, "e")))
		return no_line(err, "it has no number of an exchange");
	return kinds[l->kind].read(l, value, err);
}

/* Take the text begin and a number after it from the front of *s. */
static bool take_number(struct str *s, struct str begin, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i = begin.n;

	if (!str_starts(*s, begin))
		return false;
	for (; i < s->n && i < begin.n + 18 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(s->p[i] - '0');
	*s = str_from_index(*s, i);
	*ret = n;
	return i > begin.n;
}

bool cassette_line_begins(
	struct str text, struct str *ret_rest, uint64_t *ret_usec, uint64_t *ret_number)
{
	if (!take_number(&text, STR("{\"t\":"), ret_usec) ||
		!take_number(&text, STR(",\"e\":"), ret_number) || !str_starts(text, STR(",\"")))
		return false;
	*ret_rest = str_from_index(text, 1);
	return true;
}

/* Read a piece in our writer's form: most lines have it, and this is ten times as fast as JSON.
 * Return false for anything else. */
static bool read_quickly(struct cassette_line *l, struct str text)
{
	static const struct str keys[] = {STR("\"sent\":\""), STR("\"data\":\"")};
	struct str rest, end = STR("\"}");

	if (!cassette_line_begins(text, &rest, &l->usec, &l->number) || l->number == 0 ||
		!str_ends(rest, end))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!str_starts(rest, keys[i]) || rest.n < keys[i].n + end.n)
			continue;
		l->kind = i == 0 ? CASSETTE_SENT : CASSETTE_DATA;
		rest = str_from_index(str_prefix(rest, rest.n - end.n), keys[i].n);
		if (base64_decode(&l->bytes, rest) < 0 || l->bytes.tail > CASSETTE_PIECE_MAX)
			return false;
		l->piece = buf_str(&l->bytes);
		return true;
	}
	return false;
}

int cassette_line_read(struct cassette_line *ret, struct str text, struct cloche_err *err)
{
	int r;

	clear(ret);
	if (read_quickly(ret, text))
		return 0;
	clear(ret);
	if (text.n > CASSETTE_LINE_MAX)
		return no_line(err, "it is too long");
	r = json_text_read(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &ret->doc, NULL);
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 || !json_is_object(ret->doc))
		return no_line(err, "no JSON object");
	return read_value(ret, err);
}
