/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_write.h"
#include "http/chunked.h"
#include "http/valid.h"

#include <errno.h>

/* Theory of operation (INV-NO-RAW-BYTES): each part is checked by http/valid.h immediately before
 * it is appended, so that no path through the program, and no head that a taken-over peer made up,
 * can end or split a message early. What frames or routes the message is written from the model's
 * own values. The first failure is kept in the writer and ends up in err; out is then cut back to
 * where it was. */

struct writer {
	struct buf *out;
	const char *bad; /* what must not be written */
	int r;           /* first failure of the buffer */
};

static void h1_write_add(struct writer *w, struct str s)
{
	if (w->r >= 0)
		w->r = buf_add_str(w->out, s);
}

static void add_checked(struct writer *w, bool ok, struct str s, const char *what)
{
	if (!ok && !w->bad)
		w->bad = what;
	if (!w->bad)
		h1_write_add(w, s);
}

static void add_number(struct writer *w, uint64_t n)
{
	if (w->r >= 0)
		w->r = buf_add_uint(w->out, n);
}

/* This is most of the work of a head: make one reservation for the whole line. */
static void add_field(struct writer *w, struct str name, struct str value)
{
	char *at;

	if (!http_is_field_name(name))
		w->bad = "a malformed field name";
	else if (!http_is_field_value(value))
		w->bad = "a malformed field value";
	if (w->bad || w->r < 0)
		return;
	w->r = buf_reserve(w->out, name.n + value.n + 4, &at);
	if (w->r < 0)
		return;
	memcpy(at, name.p, name.n);
	memcpy(at + name.n, ": ", 2);
	if (value.n)
		memcpy(at + name.n + 2, value.p, value.n);
	memcpy(at + name.n + 2 + value.n, "\r\n", 2);
	buf_commit(w->out, name.n + value.n + 4);
}

static void add_length(struct writer *w, uint64_t length)
{
	h1_write_add(w, STR("Content-Length: "));
	add_number(w, length);
	h1_write_add(w, STR("\r\n"));
}

static void add_fields(struct writer *w, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (http_fields_is_end_to_end(f, i))
			add_field(w, http_fields_name(f, i), http_fields_value(f, i));
}

/* Connection and what it names (RFC 9110 7.6.1). */
static void add_connection(struct writer *w, const struct http_head *h, unsigned flags)
{
	static const struct {
		unsigned flag;
		struct str option;
	} options[] = {
		{H1_W_UPGRADE, {"upgrade", 7}},
		{H1_W_CLOSE, {"close", 5}},
		{H1_W_KEEP_ALIVE, {"keep-alive", 10}},
		{H1_W_TRAILERS, {"TE", 2}},
	};
	const struct http_fields *f = &h->fields;
	int upgrade = http_fields_find_id(f, HTTP_F_UPGRADE, 0);
	const char *before = "Connection: ";

	if ((flags & H1_W_UPGRADE) && upgrade < 0)
		w->bad = "an upgrade to nothing";
	else if (flags & H1_W_UPGRADE)
		add_field(w, STR("Upgrade"), http_fields_value(f, (unsigned)upgrade));
	if (flags & H1_W_TRAILERS)
		h1_write_add(w, STR("TE: trailers\r\n"));
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!(flags & options[i].flag))
			continue;
		h1_write_add(w, str_from(before));
		h1_write_add(w, options[i].option);
		before = ", ";
	}
	if (before[0] == ',')
		h1_write_add(w, STR("\r\n"));
}

static int finish(struct writer *w, size_t before, struct cloche_err *err)
{
	if (w->bad || w->r < 0)
		w->out->tail = w->out->head + before;
	if (w->bad)
		return err_set(err, E_PROTOCOL, "refused to write %s", w->bad);
	if (w->r == -ENOMEM)
		return err_nomem(err);
	if (w->r < 0)
		return err_set(err, E_LIMIT, "HTTP head does not fit its buffer");
	return 0;
}

/* RFC 9112 3. */
static void request_line(struct writer *w, const struct http_head *h)
{
	struct str method = http_head_method(h), target = http_head_target(h);

	add_checked(w, h->is_request && http_is_method(method), method, "a malformed method");
	h1_write_add(w, STR(" "));
	add_checked(w, http_is_target(target), target, "a malformed target");
	h1_write_add(w, STR(" HTTP/1.1\r\nHost: "));
	add_checked(w, http_is_host(http_head_host(h)), http_head_host(h), "a malformed host");
	if (h->port) {
		h1_write_add(w, STR(":"));
		add_number(w, h->port);
	}
	h1_write_add(w, STR("\r\n"));
}

int h1_write_request(
	struct buf *out, const struct http_head *h, unsigned flags, struct cloche_err *err)
{
	struct writer w = {.out = out};
	size_t before = buf_len(out);
	struct str method = http_head_method(h);

	if (str_ieq(method, STR("CONNECT")) || str_ieq(method, STR("TRACE")) ||
		(h->flags & (HTTP_CONNECT | HTTP_TRACE)))
		w.bad = "a CONNECT or TRACE request";
	if (h->body == HTTP_BODY_CLOSE)
		w.bad = "a request whose body has no end";
	request_line(&w, h);
	add_fields(&w, &h->fields);
	if (h->body == HTTP_BODY_CHUNKED)
		h1_write_add(&w, STR("Transfer-Encoding: chunked\r\n"));
	else if (h->body == HTTP_BODY_LENGTH)
		add_length(&w, h->content_length);
	else if (h->flags & HTTP_HAS_LENGTH)
		add_length(&w, 0);
	if ((flags & H1_W_EXPECT) && h->body != HTTP_BODY_NONE)
		h1_write_add(&w, STR("Expect: 100-continue\r\n"));
	add_connection(&w, h, flags);
	h1_write_add(&w, STR("\r\n"));
	return finish(&w, before, err);
}

/* RFC 9112 6.3. Where a body would be allowed, its absence must be stated. */
static void response_framing(struct writer *w, const struct http_head *h)
{
	bool bodiless = (h->flags & HTTP_TO_HEAD) || h->status == 304;

	if (h->status < 200 || h->status == 204)
		return;
	if (h->body == HTTP_BODY_CHUNKED)
		h1_write_add(w, STR("Transfer-Encoding: chunked\r\n"));
	else if (h->body == HTTP_BODY_LENGTH)
		add_length(w, h->content_length);
	else if (h->body == HTTP_BODY_NONE && !bodiless)
		add_length(w, 0);
	else if (h->body == HTTP_BODY_NONE && (h->flags & HTTP_HAS_LENGTH))
		add_length(w, h->content_length);
}

/* RFC 9112 4. */
int h1_write_response(struct buf *out, const struct http_head *h, unsigned flags)
{
	struct writer w = {.out = out};
	size_t before = buf_len(out);
	struct str reason = http_head_reason(h);

	if (!http_is_status(h->status) || h->is_request)
		w.bad = "a malformed status";
	if (h->status == 101 && !(flags & H1_W_UPGRADE))
		w.bad = "a 101 that does not upgrade";
	if ((h->status < 200 || h->status == 204) && h->body != HTTP_BODY_NONE)
		w.bad = "a body where there cannot be one";
	if (h->body == HTTP_BODY_CLOSE)
		flags |= H1_W_CLOSE;
	h1_write_add(&w, STR("HTTP/1.1 "));
	add_number(&w, h->status);
	h1_write_add(&w, STR(" "));
	add_checked(&w, http_is_reason(reason), reason, "a malformed reason");
	h1_write_add(&w, STR("\r\n"));
	add_fields(&w, &h->fields);
	response_framing(&w, h);
	add_connection(&w, h, flags & ~(unsigned)H1_W_TRAILERS);
	h1_write_add(&w, STR("\r\n"));
	return finish(&w, before, NULL);
}

size_t h1_chunk_head(char ret[H1_CHUNK_HEAD_MAX], size_t n)
{
	size_t digits = 1;

	while (digits < 2 * sizeof(n) && n >> (4 * digits))
		digits++;
	for (size_t i = digits; i-- > 0; n >>= 4)
		ret[i] = "0123456789abcdef"[n & 0xf];
	memcpy(ret + digits, "\r\n", 2);
	return digits + 2;
}

int h1_write_chunk(struct buf *out, struct str data)
{
	char head[H1_CHUNK_HEAD_MAX];
	size_t n = h1_chunk_head(head, data.n);
	char *at;
	int r;

	if (data.n == 0)
		return 0;
	if (data.n > buf_room(out))
		return -E2BIG;
	r = buf_reserve(out, n + data.n + 2, &at);
	if (r < 0)
		return r;
	memcpy(at, head, n);
	memcpy(at + n, data.p, data.n);
	memcpy(at + n + data.n, "\r\n", 2);
	buf_commit(out, n + data.n + 2);
	return 0;
}

int h1_write_last_chunk(struct buf *out, const struct http_fields *trailers)
{
	struct writer w = {.out = out};
	size_t before = buf_len(out);

	h1_write_add(&w, STR("0\r\n"));
	for (unsigned i = 0; trailers && i < trailers->n; i++)
		if (http_is_trailer_name(http_fields_name(trailers, i)))
			add_field(
				&w, http_fields_name(trailers, i), http_fields_value(trailers, i));
	h1_write_add(&w, STR("\r\n"));
	if (w.bad || w.r < 0)
		out->tail = out->head + before;
	return w.bad ? -EINVAL : w.r;
}
