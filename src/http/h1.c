/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1.h"
#include "http/h1_internal.h"
#include "http/valid.h"

#include <errno.h>

/* Theory of operation (INV-UNDECIDABLE): input is copied once, line by line, to the end of the
 * head's storage. A line is parsed where it lies as soon as its LF is there, so each byte is looked
 * at a fixed number of times however the input is cut. What is checked before the LF has come (the
 * method's characters, lengths) depends only on the bytes so far, never on how they were grouped;
 * so the first error found is the same for every way to cut the input.
 *
 * h1_line.c has the first line, h1_fields.c the fields and what follows from them.
 *
 * Refused: everything that RFC 9112 lets a recipient refuse. Tolerated in requests: one empty line
 * in front (RFC 9112 2.2). Tolerated in responses: lines that end in a lone LF (2.2); folded lines,
 * unfolded to spaces (5.2); the same Content-Length twice (RFC 9110 8.6); Content-Length beside
 * Transfer-Encoding, which then wins and ends the connection (6.3); a status line without the space
 * before an empty reason. */

enum { STATE_FIRST, STATE_FIELDS, STATE_DONE, STATE_ERROR };

#define FIRST_BYTES 1024

static const struct {
	const char *text;
	unsigned status;
} errors[] = {
#define H1_ERROR_DEF(name, number, string) [H1_E_##name] = {string, number},
#include "http/h1_errors.def"
#undef H1_ERROR_DEF
};

unsigned h1_error_status(enum h1_error e)
{
	return errors[e].status;
}

const char *h1_error_text(enum h1_error e)
{
	return errors[e].text;
}

static void h1_begin_head(struct h1_parser *p, struct http_head *head)
{
	http_head_clear(head);
	head->is_request = p->is_request;
	p->head = head;
	p->state = STATE_FIRST;
	p->line = 0;
}

void h1_parser_request(struct h1_parser *p, struct http_head *head)
{
	*p = (struct h1_parser){.is_request = true};
	h1_begin_head(p, head);
}

void h1_parser_response(struct h1_parser *p, struct http_head *head, unsigned opt)
{
	*p = (struct h1_parser){.opt = opt};
	h1_begin_head(p, head);
}

void h1_parser_next(struct h1_parser *p)
{
	h1_begin_head(p, p->head);
	if (++p->interim > HTTP_INTERIM_MAX) {
		p->error = H1_E_TOO_MANY_INTERIM;
		p->state = STATE_ERROR;
	}
}

/* Longest line allowed now, with its line end; sets the error for a longer one. */
static size_t line_limit(const struct h1_parser *p, enum h1_error *ret)
{
	size_t line = HTTP_LINE_MAX, left = HTTP_HEAD_MAX - MIN(p->line, (size_t)HTTP_HEAD_MAX);

	*ret = H1_E_LINE_TOO_LONG;
	if (p->state == STATE_FIRST && p->is_request) {
		line = HTTP_METHOD_MAX + 1 + HTTP_TARGET_MAX + sizeof(" HTTP/1.1") - 1;
		*ret = H1_E_TARGET_TOO_LONG;
	} else if (p->state == STATE_FIRST) {
		line = sizeof("HTTP/1.1 200 ") - 1 + HTTP_REASON_MAX;
		*ret = H1_E_STATUS_LINE;
	}
	if (line + 2 > left) {
		*ret = H1_E_HEAD_TOO_LARGE;
		return left;
	}
	return line + 2;
}

/* Check the beginning of a first line that may not be complete, so that input that is not HTTP at
 * all (TLS, SOCKS, ssh) is refused without waiting for a line end. */
static enum h1_error check_start(const struct h1_parser *p, struct str s)
{
	static const struct str http = {"HTTP/1.", 7};

	if (!p->is_request)
		return str_eq(str_prefix(s, http.n), str_prefix(http, s.n)) ? H1_E_OK
									    : H1_E_STATUS_LINE;
	if (s.n && s.p[0] == '\r') {
		if (p->skipped_line)
			return H1_E_EMPTY_LINES;
		return s.n > 1 && s.p[1] != '\n' ? H1_E_LINE_END : H1_E_OK;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == ' ' && i > 0)
			return H1_E_OK;
		if (!http_char_is(s.p[i], HTTP_C_TOKEN))
			return H1_E_METHOD;
		if (i >= HTTP_METHOD_MAX)
			return H1_E_METHOD_TOO_LONG;
	}
	return H1_E_OK;
}

/* RFC 9112 5.2: a server's folded line continues the value before it. */
static enum h1_error unfold(struct h1_parser *p, struct str line)
{
	struct http_fields *f = &p->head->fields;
	struct http_field *field = f->n ? &f->v[f->n - 1] : NULL;
	struct str more = str_trim(line);
	uint32_t at;

	if (p->is_request || !field || field->hop || field->id == HTTP_F_CONTENT_LENGTH)
		return H1_E_FOLD;
	if (http_span_class(more, HTTP_C_VALUE) < more.n)
		return H1_E_FIELD_VALUE;
	if (more.n == 0)
		return H1_E_OK;
	at = (uint32_t)(more.p - f->text.mem);
	if (field->value_len == 0) {
		field->value = at;
	} else {
		uint32_t end = field->value + field->value_len;

		memset(f->text.mem + end, ' ', at - end);
	}
	if (at + more.n - field->value > HTTP_VALUE_MAX)
		return H1_E_LINE_TOO_LONG;
	field->value_len = (uint32_t)(at + more.n - field->value);
	return H1_E_OK;
}

static enum h1_error field_line(struct h1_parser *p, struct str line)
{
	struct http_fields *f = &p->head->fields;
	struct str name, value;
	enum h1_error e;
	int r;

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return unfold(p, line);
	e = h1_split_field(line, &name, &value);
	if (e != H1_E_OK)
		return e;
	r = http_fields_push(f, (struct http_field){
					.name = (uint32_t)(name.p - f->text.mem),
					.name_len = (uint16_t)name.n,
					.value = (uint32_t)(value.p - f->text.mem),
					.value_len = (uint32_t)value.n,
				});
	if (r < 0)
		return r == -E2BIG ? H1_E_TOO_MANY_FIELDS : H1_E_NO_MEMORY;
	return H1_E_OK;
}

/* A line is complete; it is given without its line end. */
static enum h1_error whole_line(struct h1_parser *p, struct str line)
{
	enum h1_error e;

	if (p->state == STATE_FIRST) {
		if (line.n == 0 && p->is_request) {
			p->skipped_line = true;
			buf_clear(&p->head->fields.text);
			return H1_E_OK;
		}
		e = p->is_request ? h1_request_line(p, line) : h1_status_line(p, line);
		p->state = STATE_FIELDS;
		return e;
	}
	if (line.n)
		return field_line(p, line);
	e = h1_finish(p);
	p->state = STATE_DONE;
	return e;
}

/* Appends to the storage up to the next LF, or to just over the limit. */
static enum h1_error take_line(struct h1_parser *p, struct str in, size_t *ret_used)
{
	struct buf *text = &p->head->fields.text;
	enum h1_error too_long, e = H1_E_OK;
	size_t limit = line_limit(p, &too_long), pending = text->tail - p->line;
	size_t take = str_chr(in, '\n'), n;
	bool complete = take < in.n;
	char *at;

	take += complete;
	n = pending + take; /* pending < limit: checked when it came */
	if (n > limit)
		take = limit - pending + 1;
	if (buf_reserve(text, text->cap ? take : MAX(take, (size_t)FIRST_BYTES), &at) < 0)
		return H1_E_NO_MEMORY;
	memcpy(at, in.p, take);
	buf_commit(text, take);
	*ret_used = take;
	if (p->state == STATE_FIRST)
		e = check_start(p, str_make(text->mem + p->line, text->tail - p->line));
	if (e != H1_E_OK)
		return e;
	if (n > limit || (n == limit && !complete))
		return too_long;
	if (!complete)
		return H1_E_OK;
	/* RFC 9112 2.2: in a response, a lone LF ends a line, too. It can mean nothing else there,
	 * because no value may contain it. In a request it is refused, because the next reader of
	 * the request is not known. */
	n--;
	if (n > 0 && text->mem[text->tail - 2] == '\r')
		n--;
	else if (p->is_request)
		return H1_E_LINE_END;
	e = whole_line(p, str_make(text->mem + p->line, n));
	p->line = text->tail;
	return e;
}

enum h1_result h1_parse(struct h1_parser *p, struct str in, size_t *ret_used)
{
	size_t pos = 0;

	*ret_used = 0;
	while (pos < in.n && p->state < STATE_DONE) {
		size_t used = 0;

		p->error = take_line(p, str_from_index(in, pos), &used);
		if (p->error != H1_E_OK)
			p->state = STATE_ERROR;
		pos += used;
	}
	*ret_used = pos;
	if (p->state == STATE_ERROR)
		return H1_ERROR;
	return p->state == STATE_DONE ? H1_DONE : H1_MORE;
}
