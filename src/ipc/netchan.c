/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/netchan.h"

#include <endian.h>
#include <errno.h>

/* Begins a frame and gives a writer over it; the writer carries the error where the buffer is full.
 */
static struct wire_out begin(struct chan *c, enum net_frame type, size_t *ret_mark)
{
	struct buf *b = chan_begin(c, (uint16_t)type, ret_mark);
	struct wire_out w = wire_out(b);

	if (!b)
		w.error = -ENOBUFS;
	return w;
}

static int end(struct chan *c, const struct wire_out *w, size_t mark)
{
	if (w->error == -ENOBUFS)
		return w->error;
	if (w->error < 0) {
		chan_abort(c, mark);
		return w->error;
	}
	return chan_end(c, mark, NULL, 0);
}

int net_send_hello(struct chan *c, const struct net_hello *m)
{
	size_t mark;
	struct wire_out w = begin(c, NET_HELLO, &mark);

	wire_put_u32(&w, m->version);
	wire_put_str(&w, m->spki);
	return end(c, &w, mark);
}

int net_send_mint(struct chan *c, const struct net_mint *m)
{
	size_t mark;
	struct wire_out w = begin(c, NET_MINT, &mark);

	wire_put_u32(&w, m->request);
	wire_put_str(&w, m->host);
	wire_put_u16(&w, m->port);
	wire_put_u8(&w, m->h2);
	wire_put_u8(&w, m->http1);
	return end(c, &w, mark);
}

int net_send_cert(struct chan *c, const struct net_cert *m)
{
	size_t mark;
	struct wire_out w = begin(c, NET_CERT, &mark);

	wire_put_u32(&w, m->request);
	wire_put_u8(&w, m->ok);
	wire_put_u8(&w, (uint8_t)m->mode);
	wire_put_str(&w, m->leaf);
	return end(c, &w, mark);
}

static bool all_zero(const uint8_t *p, size_t from)
{
	for (size_t i = from; i < 16; i++)
		if (p[i])
			return false;
	return true;
}

static bool net_client_allows(const void *m)
{
	const struct net_client *c = m;

	switch (c->family) {
	case 6:
		return true;
	case 4:
		return all_zero(c->address, 4) && all_zero(c->server, 4);
	default:
		return c->family == 0 && c->port == 0 && c->server_port == 0 &&
		       all_zero(c->address, 0) && all_zero(c->server, 0);
	}
}

MESSAGE_TABLE(net_client, NET_CLIENT_FIELDS, net_client_allows)

int net_send_event(struct chan *c, const struct net_event *m)
{
	size_t mark;
	struct wire_out w = begin(c, NET_EVENT, &mark);

	wire_put_u8(&w, (uint8_t)m->kind);
	wire_put_u32(&w, m->connection);
	message_put(&w, net_client_message(), &m->client);
	wire_put_u16(&w, m->status);
	wire_put_u16(&w, m->port);
	wire_put_str(&w, str_prefix(m->a, NET_MAX_VALUE));
	wire_put_str(&w, str_prefix(m->b, NET_MAX_VALUE));
	wire_put_str(&w, str_prefix(m->c, NET_MAX_VALUE));
	wire_put_str(&w, str_prefix(m->method, NET_MAX_METHOD));
	wire_put_str(&w, str_prefix(m->target, NET_MAX_TARGET));
	return end(c, &w, mark);
}

int net_send_data(struct chan *c, uint32_t stream, struct str bytes)
{
	size_t mark;
	struct wire_out w = begin(c, NET_DATA, &mark);

	wire_put_u32(&w, stream);
	if (w.error == 0)
		w.error = buf_add_str(w.b, bytes);
	return end(c, &w, mark);
}

int net_send_reset(struct chan *c, uint32_t stream, enum net_reset why)
{
	size_t mark;
	struct wire_out w = begin(c, NET_RESET, &mark);

	wire_put_u32(&w, stream);
	wire_put_u8(&w, (uint8_t)why);
	return end(c, &w, mark);
}

int net_send_credit(struct chan *c, uint32_t stream, uint32_t bytes)
{
	size_t mark;
	struct wire_out w = begin(c, NET_CREDIT, &mark);

	wire_put_u32(&w, stream);
	wire_put_u32(&w, bytes);
	return end(c, &w, mark);
}

int net_send_forget(struct chan *c)
{
	return chan_send(c, NET_FORGET, STR_NULL, NULL, 0);
}

int net_send_end(struct chan *c, uint32_t stream)
{
	struct net_fields_out f = net_begin_trailers(c, stream);

	return net_end_fields(&f);
}

/* The count of fields is the last value before them and is filled in at the end. */
static struct net_fields_out begin_fields(struct chan *c, struct wire_out *w, size_t mark)
{
	struct net_fields_out f = {.c = c, .mark = mark, .error = w->error};

	if (f.error == 0) {
		f.count_at = buf_len(w->b) - mark;
		wire_put_u16(w, 0);
		f.error = w->error;
	}
	return f;
}

struct net_fields_out net_begin_open(struct chan *c, const struct net_open *m)
{
	size_t mark = 0;
	struct wire_out w = begin(c, NET_OPEN, &mark);

	wire_put_u32(&w, m->stream);
	wire_put_u32(&w, m->connection);
	message_put(&w, net_client_message(), &m->client);
	wire_put_u8(&w, (uint8_t)m->kind);
	wire_put_u8(&w, (uint8_t)m->scheme);
	wire_put_str(&w, m->host);
	wire_put_u16(&w, m->port);
	wire_put_str(&w, m->method);
	wire_put_str(&w, m->target);
	wire_put_u8(&w, (uint8_t)m->body);
	wire_put_u64(&w, m->length);
	wire_put_u8(&w, m->expect_continue);
	wire_put_u8(&w, m->te_trailers);
	return begin_fields(c, &w, mark);
}

struct net_fields_out net_begin_response(
	struct chan *c, enum net_frame type, const struct net_response *m)
{
	size_t mark = 0;
	struct wire_out w = begin(c, type, &mark);

	wire_put_u32(&w, m->stream);
	wire_put_u16(&w, m->status);
	wire_put_u8(&w, (uint8_t)m->body);
	wire_put_u64(&w, m->length);
	wire_put_u8(&w, m->close);
	wire_put_u8(&w, m->refused);
	return begin_fields(c, &w, mark);
}

struct net_fields_out net_begin_trailers(struct chan *c, uint32_t stream)
{
	size_t mark = 0;
	struct wire_out w = begin(c, NET_END, &mark);

	wire_put_u32(&w, stream);
	return begin_fields(c, &w, mark);
}

void net_add_field(struct net_fields_out *f, struct str name, struct str value)
{
	struct wire_out w = wire_out(&f->c->out);

	if (f->error < 0)
		return;
	if (f->n == NET_MAX_FIELDS) {
		f->error = -E2BIG;
		return;
	}
	wire_put_str(&w, name);
	wire_put_str(&w, value);
	f->error = w.error;
	f->n++;
}

int net_end_fields(struct net_fields_out *f)
{
	uint16_t n = htole16(f->n);

	if (f->error == -ENOBUFS)
		return f->error;
	if (f->error < 0) {
		chan_abort(f->c, f->mark);
		return f->error;
	}
	memcpy(buf_data(&f->c->out) + f->mark + f->count_at, &n, sizeof(n));
	return chan_end(f->c, f->mark, NULL, 0);
}

char *net_begin_data(struct chan *c, uint32_t stream, size_t max, size_t *ret_mark)
{
	struct wire_out w = begin(c, NET_DATA, ret_mark);
	char *at;

	wire_put_u32(&w, stream);
	if (w.error == 0)
		w.error = buf_reserve(w.b, max, &at);
	if (w.error == 0)
		return at;
	if (w.error != -ENOBUFS)
		chan_abort(c, *ret_mark);
	return NULL;
}

int net_commit_data(struct chan *c, size_t mark, size_t n)
{
	if (n == 0) {
		chan_abort(c, mark);
		return 0;
	}
	buf_commit(&c->out, n);
	return chan_end(c, mark, NULL, 0);
}

bool net_get_hello(struct str payload, struct net_hello *ret)
{
	struct wire_in r = wire_in(payload);

	ret->version = wire_get_u32(&r);
	ret->spki = wire_get_str(&r, NET_MAX_SPKI);
	return wire_ok(&r);
}

bool net_get_mint(struct str payload, struct net_mint *ret)
{
	struct wire_in r = wire_in(payload);

	ret->request = wire_get_u32(&r);
	ret->host = wire_get_str(&r, NET_MAX_HOST);
	ret->port = wire_get_u16(&r);
	ret->h2 = wire_get_bool(&r);
	ret->http1 = wire_get_bool(&r);
	return wire_ok(&r);
}

bool net_get_cert(struct str payload, struct net_cert *ret)
{
	struct wire_in r = wire_in(payload);

	ret->request = wire_get_u32(&r);
	ret->ok = wire_get_bool(&r);
	ret->mode = wire_get_enum(&r, NET_MODE_END);
	ret->leaf = wire_get_str(&r, NET_MAX_CERT);
	return wire_ok(&r);
}

bool net_get_event(struct str payload, struct net_event *ret)
{
	struct wire_in r = wire_in(payload);

	ret->kind = wire_get_enum(&r, NET_EVENT_KIND_END);
	ret->connection = wire_get_u32(&r);
	message_take(&r, net_client_message(), &ret->client);
	ret->status = wire_get_u16(&r);
	ret->port = wire_get_u16(&r);
	ret->a = wire_get_str(&r, NET_MAX_VALUE);
	ret->b = wire_get_str(&r, NET_MAX_VALUE);
	ret->c = wire_get_str(&r, NET_MAX_VALUE);
	ret->method = wire_get_str(&r, NET_MAX_METHOD);
	ret->target = wire_get_str(&r, NET_MAX_TARGET);
	return wire_ok(&r);
}

static uint16_t get_count(struct wire_in *r)
{
	uint16_t n = wire_get_u16(r);

	if (n > NET_MAX_FIELDS)
		r->bad = true;
	return n;
}

bool net_get_open(struct str payload, struct net_open *ret, struct wire_in *ret_fields)
{
	struct wire_in r = wire_in(payload);

	ret->stream = wire_get_u32(&r);
	ret->connection = wire_get_u32(&r);
	message_take(&r, net_client_message(), &ret->client);
	ret->kind = wire_get_enum(&r, NET_KIND_END);
	ret->scheme = wire_get_enum(&r, NET_SCHEME_END);
	ret->host = wire_get_str(&r, NET_MAX_HOST);
	ret->port = wire_get_u16(&r);
	ret->method = wire_get_str(&r, NET_MAX_METHOD);
	ret->target = wire_get_str(&r, NET_MAX_TARGET);
	ret->body = wire_get_enum(&r, NET_BODY_END);
	ret->length = wire_get_u64(&r);
	ret->expect_continue = wire_get_bool(&r);
	ret->te_trailers = wire_get_bool(&r);
	ret->fields_n = get_count(&r);
	*ret_fields = r;
	return !r.bad;
}

bool net_get_response(struct str payload, struct net_response *ret, struct wire_in *ret_fields)
{
	struct wire_in r = wire_in(payload);

	ret->stream = wire_get_u32(&r);
	ret->status = wire_get_u16(&r);
	ret->body = wire_get_enum(&r, NET_BODY_END);
	ret->length = wire_get_u64(&r);
	ret->close = wire_get_bool(&r);
	ret->refused = wire_get_bool(&r);
	ret->fields_n = get_count(&r);
	*ret_fields = r;
	return !r.bad;
}

bool net_get_data(struct str payload, uint32_t *ret_stream, struct str *ret_bytes)
{
	struct wire_in r = wire_in(payload);

	*ret_stream = wire_get_u32(&r);
	*ret_bytes = r.rest;
	return !r.bad && r.rest.n > 0 && r.rest.n <= NET_MAX_DATA;
}

bool net_get_end(struct str payload, uint32_t *ret_stream, uint16_t *ret_fields_n,
	struct wire_in *ret_fields)
{
	struct wire_in r = wire_in(payload);

	*ret_stream = wire_get_u32(&r);
	*ret_fields_n = get_count(&r);
	*ret_fields = r;
	return !r.bad;
}

bool net_get_reset(struct str payload, uint32_t *ret_stream, enum net_reset *ret_why)
{
	struct wire_in r = wire_in(payload);

	*ret_stream = wire_get_u32(&r);
	*ret_why = wire_get_enum(&r, NET_RESET_END);
	return wire_ok(&r);
}

bool net_get_credit(struct str payload, uint32_t *ret_stream, uint32_t *ret_bytes)
{
	struct wire_in r = wire_in(payload);

	*ret_stream = wire_get_u32(&r);
	*ret_bytes = wire_get_u32(&r);
	return wire_ok(&r) && *ret_bytes > 0 && *ret_bytes <= NET_WINDOW;
}

bool net_next_field(struct wire_in *fields, struct str *ret_name, struct str *ret_value)
{
	*ret_name = wire_get_str(fields, NET_MAX_NAME);
	*ret_value = wire_get_str(fields, NET_MAX_VALUE);
	return !fields->bad;
}
