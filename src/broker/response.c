/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the parts of a response, whatever its protocol, go through the filters
 * (chain.h) and leave as frames; nothing is kept here. A response that its parser does not accept
 * ends the exchange: before the head with a 502, after it with a reset, so that a cut or broken
 * body never looks complete to the room. */
#include "broker/response.h"
#include "broker/bounds.h"
#include "broker/broker_internal.h"
#include "broker/fetch.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/body.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "loop/loop.h"

#include <stdio.h>

static int send_fields(struct net_fields_out *out, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->n; i++)
		net_add_field(out, http_fields_name(f, i), http_fields_value(f, i));
	return net_end_fields(out);
}

/* Remove what is not for the room: framing, and the offer of a protocol (HTTP/3) that cannot get
 * through. */
static void clean_head(struct stream *s, struct http_head *h)
{
	http_head_strip(h);
	http_fields_remove(&h->fields, STR("Alt-Svc"));
	chain_response_fields(s, &h->fields);
}

/* Not every answer comes from a parser with limits: a recording has none. */
static bool response_fits(struct stream *s, const struct http_fields *f, size_t max)
{
	if (http_fields_fit(f, max))
		return true;
	response_malformed(s, "its fields are too large");
	return false;
}

size_t response_takes(const struct stream *s)
{
	struct broker *b = s->broker;

	if (chan_pending(&b->net) > OUT_HIGH) {
		b->bounds.full = true;
		return 0;
	}
	return bounds_answer_room(s);
}

size_t response_room(const struct stream *s)
{
	size_t takes;

	if (s->fetch)
		return SCRATCH;
	if (chain_waiting(s))
		return 0;
	takes = response_takes(s);
	return takes > 0 && chain_may_wait(s) ? SCRATCH : MIN((size_t)SCRATCH, takes);
}

/* Check the result r of sending a frame to the gateway. Return false if it failed. */
static bool sent(struct stream *s, int r)
{
	if (r < 0)
		broker_fail(s->broker);
	broker_flush_later(s->broker);
	return r >= 0;
}

bool response_interim(struct stream *s, struct http_head *h)
{
	struct net_response m = {.stream = s->id, .status = h->status};
	struct net_fields_out f;

	if (h->status == 100)
		expect_interim(s);
	if (h->status == 100 || s->fetch)
		return true;
	clean_head(s, h);
	if (!response_fits(s, &h->fields, HTTP_HEAD_MAX))
		return false;
	f = net_begin_response(&s->broker->net, NET_INTERIM, &m);
	return sent(s, send_fields(&f, &h->fields));
}

/* RFC 9112 6.3, as the gateway is told. */
static void response_set_framing(const struct http_head *h, struct net_response *m)
{
	bool has_length = h->flags & HTTP_HAS_LENGTH; /* also 0, for HEAD */

	m->body = NET_BODY_NONE;
	if (h->body == HTTP_BODY_CHUNKED || h->body == HTTP_BODY_CLOSE)
		m->body = NET_BODY_STREAM;
	else if (h->body == HTTP_BODY_LENGTH || has_length)
		m->body = NET_BODY_LENGTH; /* also for what only describes a body: HEAD, 304 */
	m->length = m->body == NET_BODY_LENGTH ? h->content_length : 0;
}

/* The status of a gRPC call comes in trailers. If an answer cannot have any, the client would only
 * see that it breaks off. */
static bool lacks_status(const struct stream *s, const struct http_head *h)
{
	return h->version != HTTP_2 && h->body != HTTP_BODY_CHUNKED &&
	       http_is_grpc(&s->head.fields) && http_is_grpc(&h->fields) &&
	       http_fields_find(&h->fields, STR("grpc-status"), 0) < 0;
}

bool response_head(struct stream *s, struct http_head *h)
{
	struct net_response m = {.stream = s->id, .status = h->status};
	struct cassette_headers headers;
	struct net_fields_out f;

	if (s->fetch) {
		s->status = h->status;
		s->fetch->status = h->status;
		return true;
	}
	expect_answered(s, h);
	if (lacks_status(s, h)) {
		refuse_upstream(s, 502, "grpc_needs_trailers",
			"the host speaks HTTP/1.1 and sends no trailers, without which gRPC has no "
			"status: it has to speak HTTP/2");
		return false;
	}
	if (!chain_response_head(s, h))
		return false;
	clean_head(s, h);
	if (!response_fits(s, &h->fields, HTTP_HEAD_MAX))
		return false;
	response_set_framing(h, &m);
	s->status = h->status;
	stream_go(s, STREAM_ANSWERING);
	headers = tape_headers(&h->fields);
	tape_response(s, &m, &headers);
	f = net_begin_response(&s->broker->net, NET_HEAD, &m);
	return sent(s, send_fields(&f, &h->fields));
}

void response_count(struct stream *s, size_t n)
{
	s->window_out -= (uint32_t)n;
	bounds_answer(s);
	s->bytes_in += n;
	s->broker->bytes_in += n;
}

bool response_send(struct stream *s, struct str bytes)
{
	int r = 0;

	tape_data(s, bytes);
	for (; r == 0 && bytes.n > 0; bytes = str_from_index(bytes, NET_MAX_DATA))
		r = net_send_data(&s->broker->net, s->id, str_prefix(bytes, NET_MAX_DATA));
	return sent(s, r);
}

bool response_data(struct stream *s, struct str bytes)
{
	s->active = loop_now(s->broker->loop);
	if (s->fetch)
		return fetch_data(s->fetch, bytes);
	return chain_response_data(s, 0, bytes);
}

bool response_close(struct stream *s, struct http_fields *trailers)
{
	struct net_fields_out f;

	if (!response_fits(s, trailers, HTTP_TRAILERS_MAX))
		return false;
	chain_response_fields(s, trailers);
	tape_end(s, trailers);
	f = net_begin_trailers(&s->broker->net, s->id);
	return sent(s, send_fields(&f, trailers));
}

bool response_end(struct stream *s, struct http_fields *trailers)
{
	if (s->fetch) {
		s->fetch->complete = true;
		return true;
	}
	return chain_response_end(s, 0, trailers);
}

void response_resume(struct stream *s)
{
	const struct filter *f = chain_waiting(s);

	if (f)
		f->response_resume(s);
	else
		upstream_resume(s);
}

void response_malformed(struct stream *s, const char *why)
{
	char message[NOTE_MAX];

	snprintf(
		message, sizeof(message), "the response of %s is malformed: %s", s->host.text, why);
	refuse_upstream(s, 502, "upstream_malformed", message);
}

void response_lost(struct stream *s, const char *why)
{
	char message[NOTE_MAX];

	snprintf(message, sizeof(message), "%s %s: %s", s->host.text,
		stream_has_answer(s) ? "ended in the middle of the body"
				     : "closed without an answer",
		*why ? why : "connection closed");
	refuse_upstream(s, 502, "upstream_closed", message);
}
