/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/netchan.h"

#include <endian.h>
#include <errno.h>

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

MESSAGE_TABLE(net_client, NET_CLIENT_FIELDS, net_client_allows);
MESSAGE_TABLE(net_owner, NET_OWNER_FIELDS, NULL);
MESSAGE_TABLE(net_hello, NET_HELLO_FIELDS, NULL);
MESSAGE_TABLE(net_mint, NET_MINT_FIELDS, NULL);
MESSAGE_TABLE(net_cert, NET_CERT_FIELDS, NULL);
MESSAGE_TABLE(net_open, NET_OPEN_FIELDS, NULL);
MESSAGE_TABLE(net_response, NET_RESPONSE_FIELDS, NULL);
MESSAGE_TABLE(net_trailers, NET_TRAILERS_FIELDS, NULL);
MESSAGE_TABLE(net_end_of_stream, NET_END_OF_STREAM_FIELDS, NULL);
MESSAGE_TABLE(net_credit, NET_CREDIT_FIELDS, NULL);
MESSAGE_TABLE(net_event, NET_EVENT_FIELDS, NULL);
MESSAGE_TABLE(net_ports, NET_PORTS_FIELDS, NULL);

int net_send_data(struct chan *c, uint32_t stream, struct str bytes)
{
	struct frame_out f = frame_begin(c, NET_DATA);

	wire_put_u32(&f.w, stream);
	if (f.w.error == 0)
		f.w.error = buf_add_str(f.w.b, bytes);
	return frame_end(&f, NULL, 0);
}

int net_send_reset(struct chan *c, uint32_t stream, enum net_reset why)
{
	const struct net_end_of_stream m = {.stream = stream, .why = why};

	return message_send(c, NET_RESET, net_end_of_stream_message(), &m, NULL, 0);
}

int net_send_credit(struct chan *c, uint32_t stream, uint32_t bytes)
{
	const struct net_credit m = {.stream = stream, .bytes = bytes};

	return message_send(c, NET_CREDIT, net_credit_message(), &m, NULL, 0);
}

int net_send_end(struct chan *c, uint32_t stream)
{
	struct net_fields_out f = net_begin_trailers(c, stream);

	return net_end_fields(&f);
}

/* The count of fields is the last value before the fields; it is filled in at the end. */
static struct net_fields_out begin_fields(
	struct chan *c, enum net_frame type, const struct message *t, const void *m)
{
	struct net_fields_out f = {.frame = frame_begin(c, (uint16_t)type)};

	message_put(&f.frame.w, t, m);
	if (f.frame.w.error == 0)
		f.count_at = buf_len(&c->out) - f.frame.mark - sizeof(f.n);
	return f;
}

struct net_fields_out net_begin_open(struct chan *c, const struct net_open *m)
{
	return begin_fields(c, NET_OPEN, net_open_message(), m);
}

struct net_fields_out net_begin_response(
	struct chan *c, enum net_frame type, const struct net_response *m)
{
	return begin_fields(c, type, net_response_message(), m);
}

struct net_fields_out net_begin_trailers(struct chan *c, uint32_t stream)
{
	const struct net_trailers m = {.stream = stream};

	return begin_fields(c, NET_END, net_trailers_message(), &m);
}

void net_add_field(struct net_fields_out *f, struct str name, struct str value)
{
	struct wire_out *w = &f->frame.w;

	if (w->error == 0 &&
		(f->n == NET_MAX_FIELDS || name.n > NET_MAX_NAME || value.n > NET_MAX_VALUE))
		w->error = -E2BIG;
	wire_put_str(w, name);
	wire_put_str(w, value);
	f->n++;
}

int net_end_fields(struct net_fields_out *f)
{
	uint16_t n = htole16(f->n);

	if (f->frame.w.error == 0)
		memcpy(buf_data(f->frame.w.b) + f->frame.mark + f->count_at, &n, sizeof(n));
	return frame_end(&f->frame, NULL, 0);
}

char *net_begin_data(struct chan *c, uint32_t stream, size_t max, size_t *ret_mark)
{
	struct frame_out f = frame_begin(c, NET_DATA);
	char *at;

	*ret_mark = f.mark;
	wire_put_u32(&f.w, stream);
	if (f.w.error == 0)
		f.w.error = buf_reserve(f.w.b, max, &at);
	if (f.w.error == 0)
		return at;
	if (f.w.b)
		chan_abort(c, f.mark);
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

/* Read the struct before the fields; ret_fields is the rest. */
static bool get_before(
	struct str payload, const struct message *t, void *ret, struct wire_in *ret_fields)
{
	*ret_fields = wire_in(payload);
	return message_take(ret_fields, t, ret);
}

bool net_get_open(struct str payload, struct net_open *ret, struct wire_in *ret_fields)
{
	return get_before(payload, net_open_message(), ret, ret_fields);
}

bool net_get_response(struct str payload, struct net_response *ret, struct wire_in *ret_fields)
{
	return get_before(payload, net_response_message(), ret, ret_fields);
}

bool net_get_data(struct str payload, uint32_t *ret_stream, struct str *ret_bytes)
{
	struct wire_in r = wire_in(payload);

	*ret_stream = wire_get_u32(&r);
	*ret_bytes = r.rest;
	return !r.bad && r.rest.n > 0 && r.rest.n <= NET_MAX_DATA;
}

bool net_get_trailers(struct str payload, struct net_trailers *ret, struct wire_in *ret_fields)
{
	return get_before(payload, net_trailers_message(), ret, ret_fields);
}

bool net_next_field(struct wire_in *fields, struct str *ret_name, struct str *ret_value)
{
	*ret_name = wire_get_str(fields, NET_MAX_NAME);
	*ret_value = wire_get_str(fields, NET_MAX_VALUE);
	return !fields->bad;
}
