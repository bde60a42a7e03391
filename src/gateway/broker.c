/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker is trusted more than the room, but a frame that breaks the
 * protocol still ends the gateway: two programs that disagree about the state of a stream must not
 * go on. Frames for a stream that we have reset are ignored, because the broker could not know. */
#include "gateway/broker.h"
#include "gateway/conn.h"
#include "gateway/entry.h"
#include "gateway/event.h"
#include "gateway/state.h"
#include "gateway/stream.h"

#include <errno.h>
#include <utlist.h>

enum { FRAMES_A_TURN = 256 };

static const char malformed[] = "the broker sent a malformed frame";

/* The stream, or NULL if the frame is to be ignored. */
static struct stream *broker_find_stream(struct gateway *g, uint32_t id)
{
	struct stream *s = NULL;

	if (id == 0 || id >= g->next_stream) {
		gateway_fail(g, E_PROTOCOL, "the broker answered what was not asked");
		return NULL;
	}
	HASH_FIND(hh, g->streams, &id, sizeof(id), s);
	return s;
}

static bool on_cert(struct gateway *g, struct str payload)
{
	struct net_cert m;

	return net_get_cert(payload, &m) && leaf_on_cert(g, &m);
}

static bool on_response(struct gateway *g, struct str payload, bool is_head)
{
	struct net_response m;
	struct wire_in fields;
	struct stream *s;

	if (!net_get_response(payload, &m, &fields))
		return false;
	s = broker_find_stream(g, m.stream);
	if (!s)
		return true;
	if (s->got_head || s->got_end)
		return false;
	s->got_head = is_head;
	(is_head ? s->ops->head : s->ops->interim)(s, &m, &fields);
	return true;
}

static bool broker_on_data(struct gateway *g, struct str payload)
{
	struct stream *s;
	struct str bytes;
	uint32_t id;

	if (!net_get_data(payload, &id, &bytes))
		return false;
	s = broker_find_stream(g, id);
	if (!s)
		return true;
	if (!s->got_head || s->got_end)
		return false;
	if (bytes.n > s->recv_window) {
		stream_close(s, NET_RESET_LIMIT);
		s->ops->reset(s, NET_RESET_LIMIT);
		return true;
	}
	s->recv_window -= (uint32_t)bytes.n;
	s->recv_uncredited += (uint32_t)bytes.n;
	s->ops->data(s, bytes);
	return true;
}

static bool broker_on_end(struct gateway *g, struct str payload)
{
	struct net_trailers m;
	struct wire_in fields;
	struct stream *s;

	if (!net_get_trailers(payload, &m, &fields))
		return false;
	s = broker_find_stream(g, m.stream);
	if (!s)
		return true;
	if (!s->got_head || s->got_end)
		return false;
	s->got_end = true;
	s->ops->end(s, m.fields_n, &fields);
	return true;
}

static bool broker_on_reset(struct gateway *g, struct str payload)
{
	struct net_end_of_stream m;
	struct stream *s;

	if (!net_get_end_of_stream(payload, &m))
		return false;
	s = broker_find_stream(g, m.stream);
	if (!s)
		return true;
	s->sent_end = s->got_end = true; /* so that stream_close() sends no reset */
	stream_close(s, m.why);
	s->ops->reset(s, m.why);
	return true;
}

static bool broker_on_credit(struct gateway *g, struct str payload)
{
	struct net_credit m;
	struct stream *s;

	if (!net_get_credit(payload, &m))
		return false;
	s = broker_find_stream(g, m.stream);
	if (!s || s->sent_end)
		return true;
	if (m.bytes > NET_REQUEST_WINDOW_MAX - s->send_window)
		return false;
	s->send_window += m.bytes;
	s->ops->credit(s, m.bytes);
	return true;
}

/* Return false if the frame breaks the protocol. */
static bool handle(struct gateway *g, const struct chan_frame *f)
{
	struct net_ports ports;

	switch (f->type) {
	case NET_DATA:
		return broker_on_data(g, f->payload);
	case NET_HEAD:
	case NET_INTERIM:
		return on_response(g, f->payload, f->type == NET_HEAD);
	case NET_END:
		return broker_on_end(g, f->payload);
	case NET_CREDIT:
		return broker_on_credit(g, f->payload);
	case NET_RESET:
		return broker_on_reset(g, f->payload);
	case NET_CERT:
		return on_cert(g, f->payload);
	case NET_PORTS:
		return net_get_ports(f->payload, &ports) && entry_take_ports(g, &ports);
	case NET_FORGET:
		leaf_cache_forget(g);
		return f->payload.n == 0;
	default:
		return false;
	}
}

void broker_read(struct gateway *g)
{
	struct chan_frame f;
	int r = 1;

	/* A limit, so that the output for the room is written in between. */
	for (int i = 0; r > 0 && i < FRAMES_A_TURN; i++) {
		r = chan_recv(&g->broker, &f);
		if (r > 0) {
			if (f.fds_n > 0 || !handle(g, &f))
				gateway_fail(g, E_PROTOCOL, malformed);
			chan_frame_done(&f);
		}
	}
	/* What is left in the buffer does not make the socket readable. */
	if (r > 0)
		gateway_more_frames(g);
	if (r == -EPROTO)
		gateway_fail(g, E_PROTOCOL, malformed);
	else if (r < 0)
		loop_stop(g->loop, 0); /* the broker is gone; the supervisor knows why */
}

static void on_broker(struct loop_io *io, uint32_t events)
{
	struct gateway *g = container_of(io, struct gateway, broker_io);

	if (events & EPOLLOUT)
		gateway_touch(g);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		broker_read(g);
}

int broker_start(struct gateway *g, struct cloche_err *err)
{
	struct net_hello hello = {.version = NET_VERSION};
	int r;

	hello.spki = tls_server_spki(g->tls);
	r = net_send_hello(&g->broker, &hello);
	if (r >= 0)
		r = loop_io_add(g->loop, &g->broker_io, g->broker.fd, EPOLLIN, on_broker);
	return r < 0 ? err_sys(err, -r, "open the channel to the broker") : 0;
}

void broker_flush(struct gateway *g)
{
	int r = chan_flush(&g->broker);

	if (r < 0) {
		loop_stop(g->loop, 0);
		return;
	}
	loop_io_set(&g->broker_io, EPOLLIN | (chan_pending(&g->broker) ? EPOLLOUT : 0));
	if (chan_pending(&g->broker) > g->limits->broker_low)
		return;
	while (g->held) {
		struct conn *c = g->held;

		DL_DELETE2(g->held, c, held_prev, held_next);
		c->held = false;
		/* Switch reading off and on again, so that it continues where it was. */
		if (c->want_read) {
			c->want_read = false;
			conn_want_read(c, true);
		}
	}
}
