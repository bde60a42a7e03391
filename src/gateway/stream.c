/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/stream.h"
#include "gateway/state.h"

#include <errno.h>

/* Credit is given in pieces that are worth a frame and a wake-up. */
enum { CREDIT_MIN = NET_WINDOW / 4 };

int stream_open(struct gateway *g, struct stream *s, const struct stream_ops *ops,
	struct net_open *m, struct net_fields_out *ret_fields)
{
	if (g->next_stream == 0)
		return -EOVERFLOW; /* numbers are never used again */
	if (HASH_COUNT(g->streams) >= NET_MAX_STREAMS)
		return -EBUSY;
	*s = (struct stream){.ops = ops, .id = g->next_stream};
	HASH_ADD(hh, g->streams, id, sizeof(s->id), s);
	if (!s->hh.tbl)
		return -ENOMEM;
	s->g = g;
	s->send_window = NET_REQUEST_WINDOW;
	s->recv_window = NET_WINDOW;
	m->stream = s->id;
	g->next_stream++;
	*ret_fields = net_begin_open(&g->broker, m);
	return 0;
}

int stream_open_end(struct stream *s, struct net_fields_out *fields, bool has_body)
{
	struct gateway *g = s->g;
	int r = net_end_fields(fields);

	s->sent_end = !has_body;
	gateway_touch(g);
	if (r < 0) {
		/* The broker never saw it. */
		HASH_DEL(g->streams, s);
		s->g = NULL;
	}
	return r;
}

void stream_send_data(struct stream *s, struct str bytes)
{
	s->send_window -= (uint32_t)bytes.n;
	gateway_sent(s->g, net_send_data(&s->g->broker, s->id, bytes));
	gateway_touch(s->g);
}

char *stream_begin_data(struct stream *s, size_t max, size_t *ret_mark)
{
	char *to = net_begin_data(&s->g->broker, s->id, max, ret_mark);

	if (!to)
		gateway_sent(s->g, -ENOBUFS);
	return to;
}

void stream_commit_data(struct stream *s, size_t mark, size_t n)
{
	s->send_window -= (uint32_t)n;
	gateway_sent(s->g, net_commit_data(&s->g->broker, mark, n));
	gateway_touch(s->g);
}

void stream_send_end(struct stream *s, const struct http_fields *trailers)
{
	struct net_fields_out f = net_begin_trailers(&s->g->broker, s->id);

	for (unsigned i = 0; trailers && i < trailers->n; i++)
		net_add_field(&f, http_fields_name(trailers, i), http_fields_value(trailers, i));
	gateway_sent(s->g, net_end_fields(&f));
	s->sent_end = true;
	gateway_touch(s->g);
	if (stream_is_over(s))
		stream_close(s, NET_RESET_CANCELLED);
}

void stream_passed_on(struct stream *s, size_t held)
{
	uint32_t n = s->recv_uncredited;

	if (!s->g || s->got_end || n <= held || n - held < CREDIT_MIN)
		return;
	n -= (uint32_t)held;
	s->recv_uncredited -= n;
	s->recv_window += n;
	gateway_sent(s->g, net_send_credit(&s->g->broker, s->id, n));
	gateway_touch(s->g);
}

int stream_move(struct stream *from, struct stream *to, const struct stream_ops *ops)
{
	struct gateway *g = from->g;

	HASH_DEL(g->streams, from);
	from->g = NULL;
	*to = *from;
	to->ops = ops;
	to->hh = (UT_hash_handle){0};
	HASH_ADD(hh, g->streams, id, sizeof(to->id), to);
	if (!to->hh.tbl) {
		gateway_sent(g, net_send_reset(&g->broker, to->id, NET_RESET_LIMIT));
		gateway_touch(g);
		return -ENOMEM;
	}
	to->g = g;
	return 0;
}

void stream_close(struct stream *s, enum net_reset why)
{
	struct gateway *g = s->g;

	if (!g)
		return;
	if (!stream_is_over(s)) {
		gateway_sent(g, net_send_reset(&g->broker, s->id, why));
		gateway_touch(g);
	}
	HASH_DEL(g->streams, s);
	s->g = NULL;
}
