/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test-support.h"
#include "tap.h"

#include <stdarg.h>

const char *const error_names[] = {
#define H1_ERROR_DEF(name, status, text) #name,
#include "http/h1_errors.def"
#undef H1_ERROR_DEF
};

static unsigned test_random_state = 1;

unsigned test_random(unsigned bound)
{
	test_random_state = test_random_state * 1664525U + 1013904223U;
	return (test_random_state >> 8) % bound;
}

size_t cut(unsigned how, size_t left)
{
	if (how == CUT_WHOLE)
		return left;
	return how == CUT_BYTES ? 1 : MIN(left, (size_t)test_random(40) + 1);
}

void show(struct buf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	must(buf_vprintf(out, fmt, ap) == 0);
	va_end(ap);
}

static void show_flags(struct buf *out, unsigned flags)
{
	static const char names[] = "KLEXUW2TACRH";

	for (unsigned i = 0; names[i]; i++)
		if (flags & (1U << i))
			show(out, "%c", names[i]);
}

static void show_body(struct buf *out, const struct http_head *h)
{
	static const char *const framing[] = {"none", "length", "chunked", "close"};

	show(out, " %s", framing[h->body]);
	if (h->flags & HTTP_HAS_LENGTH)
		show(out, "=%llu", (unsigned long long)h->content_length);
}

void show_line(struct buf *out, const struct http_head *h)
{
	if (h->is_request)
		show(out, "%.*s %.*s:%u %.*s", STR_FMT(http_head_method(h)),
			STR_FMT(http_head_host(h)), h->port, STR_FMT(http_head_target(h)));
	else
		show(out, "%u %.*s", h->status, STR_FMT(http_head_reason(h)));
	show(out, " %d", (int)h->version);
	show_body(out, h);
	show(out, " ");
	show_flags(out, h->flags);
}

void show_fields(struct buf *out, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->n; i++)
		show(out, f->v[i].hop ? "|[%.*s:%.*s]" : "|%.*s:%.*s",
			STR_FMT(http_fields_name(f, i)), STR_FMT(http_fields_value(f, i)));
}

void parse_cut(struct outcome *o, struct str in, bool request, unsigned opt, unsigned how)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	_cleanup_(buf_donep) struct buf line = BUF_INIT(sizeof(o->line) - 1);
	_cleanup_(buf_donep) struct buf fields = BUF_INIT(sizeof(o->fields) - 1);
	struct h1_parser p;

	if (request)
		h1_parser_request(&p, &head);
	else
		h1_parser_response(&p, &head, opt);
	memset(o, 0, offsetof(struct outcome, line));
	o->line[0] = o->fields[0] = '\0';
	o->result = H1_MORE;
	while (o->result == H1_MORE && o->used < in.n) {
		/* Exact copies, so that a sanitizer sees a read past the piece. */
		size_t n = cut(how, in.n - o->used), used = SIZE_MAX;
		_cleanup_(freep) char *piece = malloc(n);

		must(piece);
		memcpy(piece, in.p + o->used, n);
		o->result = h1_parse(&p, str_make(piece, n), &used);
		check(used <= n);
		check(o->result != H1_MORE || used == n);
		o->used += used;
	}
	o->error = p.error;
	if (o->result != H1_DONE)
		return;
	show_line(&line, &head);
	show_fields(&fields, &head.fields);
	memcpy(o->line, buf_cstr(&line), buf_len(&line) + 1);
	memcpy(o->fields, buf_cstr(&fields), buf_len(&fields) + 1);
}

void parse_all(struct outcome *o, struct str in, bool request, unsigned opt)
{
	static struct outcome other;

	parse_cut(o, in, request, opt, CUT_WHOLE);
	for (unsigned i = 0; i < 1 + RANDOM_CUTS; i++) {
		parse_cut(&other, in, request, opt, i == 0 ? CUT_BYTES : CUT_RANDOM);
		if (other.result != o->result || other.error != o->error ||
			(o->result == H1_DONE && other.used != o->used) ||
			strcmp(other.line, o->line) != 0 || strcmp(other.fields, o->fields) != 0)
			tap_fail("cut %u of \"%.*s\": %s, %s instead of %s, %s", i,
				STR_FMT(str_prefix(in, 200)), error_names[other.error], other.line,
				error_names[o->error], o->line);
	}
}
