/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: heads are written from the model, as for HTTP/1 (h1_write.c): each field is
 * checked again and nothing is passed through. Bodies are pulled: when windows let a stream send,
 * its bytes are copied once from the caller into the output. */
#include "http/chunked.h"
#include "http/h2_internal.h"
#include "http/valid.h"

#include <errno.h>

enum { PSEUDO_MAX = 4, OTHER_MAX = 3 /* te, expect, content-length */ };
#define DIGITS_MAX 20

struct block {
	nghttp2_nv v[HTTP_FIELDS_MAX + PSEUDO_MAX + OTHER_MAX];
	size_t n;
	uint8_t flags;
	char length[DIGITS_MAX + 1], status[4], port[8];
};

static void put(struct block *b, struct str name, struct str value)
{
	b->v[b->n++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
		.value = (uint8_t *)(uintptr_t)(value.p ? value.p : ""),
		.namelen = name.n,
		.valuelen = value.n,
		.flags = b->flags};
}

/* Copy s in lower case into h->text, which does not move: reserve() has made room. */
static struct str lower(struct h2 *h, struct str s)
{
	char *at = h->text.mem + h->text.tail;

	for (size_t i = 0; i < s.n; i++)
		at[i] = str_lower_char(s.p[i]);
	buf_commit(&h->text, s.n);
	return str_make(at, s.n);
}

static int reserve(struct h2 *h, const struct http_fields *f, size_t more)
{
	char *at;

	buf_clear(&h->text);
	for (unsigned i = 0; i < f->n; i++)
		more += f->v[i].name_len;
	return buf_reserve(&h->text, more, &at);
}

static int put_fields(struct h2 *h, struct block *b, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct str name = http_fields_name(f, i), value = http_fields_value(f, i);

		if (!http_fields_is_end_to_end(f, i))
			continue;
		if (!http_is_field_name(name) || !http_is_field_value(value))
			return -EINVAL;
		put(b, lower(h, name), value);
	}
	return 0;
}

static struct str digits(char at[], size_t size, uint64_t n)
{
	size_t i = size;

	do {
		at[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return str_make(at + i, size - i);
}

static void put_length(struct block *b, const struct http_head *head)
{
	if (head->flags & HTTP_HAS_LENGTH)
		put(b, STR("content-length"), digits(b->length, DIGITS_MAX, head->content_length));
}

/* host[:port] */
static struct str authority(struct h2 *h, struct block *b, const struct http_head *head)
{
	struct str host = lower(h, http_head_host(head)), port;

	if (head->port == 0)
		return host;
	port = digits(b->port, sizeof(b->port), head->port);
	b->port[port.p - b->port - 1] = ':';
	memcpy(h->text.mem + h->text.tail, port.p - 1, port.n + 1);
	buf_commit(&h->text, port.n + 1);
	return str_make(host.p, host.n + port.n + 1);
}

static int request_block(
	struct h2 *h, struct block *b, const struct http_head *head, unsigned flags)
{
	int r;

	if (!head->is_request || head->flags & (HTTP_CONNECT | HTTP_TRACE) ||
		!http_is_method(http_head_method(head)) || !http_is_host(http_head_host(head)) ||
		!http_is_token(http_head_scheme(head)) || !http_is_target(http_head_target(head)))
		return -EINVAL;
	r = reserve(h, &head->fields, HTTP_HOST_MAX + sizeof(b->port));
	if (r < 0)
		return r;
	/* In the order of curl. */
	put(b, STR(":method"), http_head_method(head));
	put(b, STR(":path"), http_head_target(head));
	put(b, STR(":scheme"), http_head_scheme(head));
	put(b, STR(":authority"), authority(h, b, head));
	b->flags = flags & H2_SECRET ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
	r = put_fields(h, b, &head->fields);
	b->flags = NGHTTP2_NV_FLAG_NONE;
	put_length(b, head);
	if (flags & H2_TE_TRAILERS)
		put(b, STR("te"), STR("trailers"));
	if (flags & H2_EXPECT)
		put(b, STR("expect"), STR("100-continue"));
	return r;
}

/* --- bodies --- */

static int send_trailers(struct h2_stream *st)
{
	struct h2 *h = st->h;
	struct block b = {0};
	const struct http_fields *f = &st->trailers;
	int r = reserve(h, f, 0);

	if (r == 0)
		r = put_fields(h, &b, f);
	return r < 0 ? r : nghttp2_submit_trailer(h->session, st->id, b.v, b.n);
}

static struct str waiting(struct h2_stream *st)
{
	return st->detached ? STR_NULL : st->h->c.on->body(st->h->c.arg, st);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2_stream *st = source->ptr;
	struct str bytes = waiting(st);

	if (bytes.n == 0 && !st->local_end)
		return NGHTTP2_ERR_DEFERRED;
	if (bytes.n > 0)
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (st->local_end && bytes.n <= max) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (st->trailers.n > 0) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			if (send_trailers(st) < 0)
				return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	}
	return (ssize_t)MIN(bytes.n, max);
}

/* Write the header and bytes of one DATA frame. The library calls this again as long as there is
 * room. */
static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
	size_t n, nghttp2_data_source *source, void *arg)
{
	enum { HEADER = 9 };
	struct h2 *h = arg;
	struct h2_stream *st = source->ptr;
	struct str bytes;

	if (buf_len(h->out) >= h->enough || buf_room(h->out) < HEADER + n)
		return NGHTTP2_ERR_WOULDBLOCK;
	bytes = waiting(st);
	if (frame->data.padlen > 0 || bytes.n < n)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream was reset meanwhile */
	if (buf_add(h->out, header, HEADER) < 0 || buf_add(h->out, bytes.p, n) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	h->c.on->sent(h->c.arg, st, n);
	return 0;
}

static const nghttp2_data_provider *provider(struct h2_stream *st, nghttp2_data_provider *ret)
{
	*ret = (nghttp2_data_provider){.source = {.ptr = st}, .read_callback = read_body};
	return st->local_end ? NULL : ret;
}

static int result(int r)
{
	if (r == NGHTTP2_ERR_NOMEM)
		return -ENOMEM;
	return r == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE ? -EAGAIN : -EINVAL;
}

int h2_request(struct h2 *h, const struct http_head *head, unsigned flags, void *user,
	struct h2_stream **ret)
{
	struct block b = {0};
	nghttp2_data_provider body;
	struct h2_stream *st;
	int r;

	if (h->c.role != H2_CLIENT)
		return -EINVAL;
	if (h2_streams_free(h) == 0)
		return -EAGAIN;
	r = request_block(h, &b, head, flags);
	if (r < 0)
		return r;
	st = h2_stream_new(h);
	if (!st)
		return -ENOMEM;
	st->user = user;
	st->local_end = flags & H2_END;
	st->to_head = str_eq(http_head_method(head), STR("HEAD"));
	r = nghttp2_submit_request(h->session, NULL, b.v, b.n, provider(st, &body), st);
	if (r < 0) {
		h2_stream_closed(st, H2_INTERNAL_ERROR);
		return result(r);
	}
	st->id = r;
	st->told = true;
	*ret = st;
	return 0;
}

int h2_respond(struct h2_stream *st, const struct http_head *head, unsigned flags)
{
	struct h2 *h = st->h;
	struct block b = {0};
	nghttp2_data_provider body;
	int r;

	if (h->c.role != H2_SERVER || head->is_request || !http_is_status(head->status) ||
		head->status == 101)
		return -EINVAL;
	r = reserve(h, &head->fields, 0);
	if (r < 0)
		return r;
	put(&b, STR(":status"), digits(b.status, 3, head->status));
	b.flags = flags & H2_SECRET ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
	r = put_fields(h, &b, &head->fields);
	if (r < 0)
		return r;
	if (head->status < 200) {
		r = nghttp2_submit_headers(
			h->session, NGHTTP2_FLAG_NONE, st->id, NULL, b.v, b.n, NULL);
		return r < 0 ? result(r) : 0;
	}
	if (head->status != 204)
		put_length(&b, head);
	st->local_end = flags & H2_END;
	r = nghttp2_submit_response(h->session, st->id, b.v, b.n, provider(st, &body));
	return r < 0 ? result(r) : 0;
}

void h2_wake(struct h2_stream *st)
{
	(void)nghttp2_session_resume_data(st->h->session, st->id);
}

int h2_end(struct h2_stream *st, const struct http_fields *trailers)
{
	for (unsigned i = 0; trailers && i < trailers->n; i++) {
		struct str name = http_fields_name(trailers, i);
		int r = 0;

		if (http_is_trailer_name(name) && !trailers->v[i].hop)
			r = http_fields_add(&st->trailers, name, http_fields_value(trailers, i));
		if (r < 0)
			return r;
	}
	st->local_end = true;
	h2_wake(st);
	return 0;
}

/* --- frames that were sent, or could not be sent --- */

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	int32_t id = frame->hd.stream_id;
	struct h2_stream *st = h2_stream_of(h, id);

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA:
		http_rate_earn(&h->control, 2);
		if (st && h->c.role == H2_SERVER && !st->remote_end &&
			frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
			st->expected = true;
			(void)nghttp2_submit_rst_stream(
				session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
		}
		return 0;
	case NGHTTP2_RST_STREAM:
		h->newest_reset = MAX(h->newest_reset, id);
		if (!st || !st->expected)
			(void)h2_glitch(h);
		return 0;
	case NGHTTP2_GOAWAY:
		if (frame->goaway.error_code != NGHTTP2_NO_ERROR && !*h->error)
			h->error = h2_error_name(frame->goaway.error_code);
		return 0;
	default:
		return 0;
	}
}

/* A frame could not be sent. Close the stream of a request; reset the stream of another head if the
 * peer would wait for it. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *st;

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		if (error == NGHTTP2_ERR_FRAME_SIZE_ERROR || error == NGHTTP2_ERR_HEADER_COMP)
			(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
				frame->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
		return 0;
	}
	/* If the stream exists already, on_close comes next. */
	if (h2_stream_of(h, frame->hd.stream_id))
		return 0;
	st = h2_stream_find(h, frame->hd.stream_id);
	if (st)
		h2_stream_closed(st, H2_REFUSED_STREAM);
	return 0;
}

void h2_send_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_send_data_callback(cb, send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_not_sent);
}
