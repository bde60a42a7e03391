/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-RAW-BYTES): this file is the protocol with the gateway and nothing
 * else. A table says which frames are permitted in which state. Any other frame ends the channel,
 * because a correct gateway never sends it. Frames for a number that was used before and is gone
 * are ignored, as the gateway may not have known.
 *
 * A stream lives until both directions have ended. If the answer ends first (a refusal, an origin
 * that answers early), the rest of the request is read and dropped up to a limit, so that the
 * answer is not lost to a reset. */
#include "broker/stream.h"
#include "broker/attribute.h"
#include "broker/bounds.h"
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/decide.h"
#include "broker/dial.h"
#include "broker/fetch.h"
#include "broker/log.h"
#include "broker/mint.h"
#include "broker/origin.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/response.h"
#include "broker/ssh.h"
#include "broker/upstream.h"
#include "broker/websocket.h"
#include "http/body.h"
#include "http/valid.h"
#include "ipc/netchan.h"
#include "loop/loop.h"
#include "netlog/netlog.h"
#include "policy/allowlist.h"
#include "secrets/replace.h"
#include "secrets/scrub.h"
#include "tls/ca.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { SPARE_MAX = 64, SPARE_BYTES = 32 * 1024 };

/* Frames that the gateway may send for a stream in this state (ipc/netchan.h). */
static const bool permitted[REQUEST_STATES][4] = {
	/* DATA, END, RESET, CREDIT */
	[REQUEST_OPEN] = {true, true, true, true},
	[REQUEST_DROPPED] = {true, true, true, true},
	[REQUEST_ENDED] = {false, false, true, true},
};

/* Return a cleared stream, with the memory of one that was used before if there is any. */
static struct stream *take_spare(struct broker *b)
{
	struct stream *s = b->streams.spare;
	struct http_head head;
	struct http_fields trailers;
	struct buf body;

	if (s) {
		b->streams.spare = s->next;
		b->streams.spare_n--;
	} else {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->head = HTTP_HEAD_INIT;
		s->trailers = HTTP_FIELDS_INIT;
	}
	head = s->head;
	trailers = s->trailers;
	body = s->body;
	body.max = REQUEST_HIGH;
	*s = (struct stream){.broker = b, .window = NET_REQUEST_WINDOW};
	s->head = head;
	s->trailers = trailers;
	s->body = body;
	s->started = s->active = loop_now(b->loop);
	b->rest_due = true;
	return s;
}

static void put_spare(struct broker *b, struct stream *s)
{
	s->next = b->streams.spare;
	b->streams.spare = s;
	b->streams.spare_n++;
}

struct stream *stream_internal(struct broker *b, const struct host *host, uint16_t port)
{
	struct stream *s = take_spare(b);

	if (!s)
		return NULL;
	s->request = REQUEST_ENDED;
	s->scheme = NET_HTTPS;
	s->host = *host;
	s->port = port;
	s->verdict.allow = true;
	return s;
}

static struct stream *stream_new(struct broker *b, const struct net_open *m)
{
	struct stream *s = take_spare(b);

	if (!s)
		return NULL;
	s->id = m->stream;
	s->client = m->client;
	s->window_in = s->window;
	s->window_out = NET_WINDOW;
	HASH_ADD(hh, b->streams.open, id, sizeof(s->id), s);
	if (!s->hh.tbl) {
		put_spare(b, s);
		return NULL;
	}
	return s;
}

static void stream_free(struct stream *s)
{
	http_head_done(&s->head);
	http_fields_done(&s->trailers);
	buf_done_wiped(&s->body);
	free(s);
}

void stream_close(struct stream *s)
{
	struct broker *b = s->broker;

	if (s->state == STREAM_CLOSED)
		return;
	log_result(s, NETLOG_REQUEST, s->verdict.allow);
	tape_closed(s);
	stream_go(s, STREAM_CLOSED);
	bounds_answer(s);
	bounds_request(s);
	bounds_narrow(s);
	expect_done(s);
	dial_cancel(s);
	upstream_detach(s);
	if (s->hh.tbl)
		HASH_DEL(b->streams.open, s);
	if (s->fetch)
		fetch_closed(s->fetch);
	if (s->probe)
		origin_probe_closed(s);
	s->next = b->streams.dead;
	b->streams.dead = s;
	broker_flush_later(b);
}

static void wipe(struct buf *b)
{
	if (b->mem)
		explicit_bzero(b->mem, b->tail);
}

void streams_reap(struct broker *b)
{
	while (b->streams.dead) {
		struct stream *s = b->streams.dead;

		b->streams.dead = s->next;
		chain_free(s);
		s->policy = allowlist_free(s->policy);
		free(s->shown);
		s->shown = NULL;
		b->bounds.collected -= s->collected;
		if (s->secret) {
			wipe(&s->head.fields.text);
			wipe(&s->body);
		}
		if (b->streams.spare_n >= SPARE_MAX) {
			stream_free(s);
			continue;
		}
		http_head_clear(&s->head);
		http_fields_clear(&s->trailers);
		if (s->body.cap > SPARE_BYTES)
			buf_done(&s->body);
		else
			buf_clear(&s->body);
		put_spare(b, s);
	}
}

void streams_free(struct broker *b)
{
	struct stream *s, *tmp;

	requests_drop(b);
	HASH_ITER (hh, b->streams.open, s, tmp) {
		stream_note(s, "the network has ended");
		stream_close(s);
	}
	streams_reap(b);
	while (b->streams.spare) {
		s = b->streams.spare;
		b->streams.spare = s->next;
		stream_free(s);
	}
	b->streams.spare_n = 0;
}

struct str stream_target(const struct stream *s)
{
	return s->shown ? str_from(s->shown) : http_head_target(&s->head);
}

void stream_note(struct stream *s, const char *fmt, ...)
{
	va_list ap;

	if (s->note[0])
		return;
	va_start(ap, fmt);
	vsnprintf(s->note, sizeof(s->note), fmt, ap);
	va_end(ap);
	if (s->broker->lines.scrubber) /* it may name a URL */
		(void)scrub_whole(s->broker->lines.scrubber, s->note, strlen(s->note));
}

void stream_reset(struct stream *s, enum net_reset why)
{
	if (s->state == STREAM_CLOSED)
		return;
	if (s->id && net_send_reset(&s->broker->net, s->id, why) < 0)
		broker_fail(s->broker);
	stream_close(s);
}

/* Drop the rest of the request's body from here on. */
static void discard_rest(struct stream *s)
{
	if (s->request == REQUEST_OPEN)
		s->request = REQUEST_DROPPED;
	s->discarded += s->uncredited;
	if (s->uncredited > 0 && net_send_credit(&s->broker->net, s->id, s->uncredited) < 0)
		broker_fail(s->broker);
	s->window_in += s->uncredited;
	s->uncredited = 0;
}

void stream_finish(struct stream *s)
{
	if (chain_waiting(s))
		return; /* its end is still to be sent */
	broker_flush_later(s->broker);
	log_result(s, NETLOG_REQUEST, s->verdict.allow);
	stream_go(s, STREAM_ANSWERED);
	if (s->request == REQUEST_ENDED)
		stream_close(s);
	else
		discard_rest(s);
}

void stream_drained(struct stream *s)
{
	uint32_t n = s->uncredited;

	if (s->state == STREAM_CLOSED || s->request == REQUEST_ENDED || n < s->window / 4)
		return;
	s->taken += n;
	if (s->taken >= s->window && s->request == REQUEST_OPEN && !s->whole) {
		s->taken = 0;
		n += bounds_widen(s);
	}
	if (net_send_credit(&s->broker->net, s->id, n) < 0)
		broker_fail(s->broker);
	s->window_in += n;
	s->uncredited = 0;
	broker_flush_later(s->broker);
}

/* --- what the gateway sends --- */

/* Only end-to-end fields may come; the others are written from the model. */
static bool stream_take_fields(struct http_fields *to, struct wire_in *fields, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct str name, value;

		if (!net_next_field(fields, &name, &value) ||
			http_fields_add(to, name, value) < 0 || !http_fields_is_end_to_end(to, i))
			return false;
	}
	return wire_ok(fields);
}

/* The default port is not written: an origin compares Host as text. */
static uint16_t written_port(const struct net_open *m)
{
	return m->port == (m->scheme == NET_HTTPS ? 443 : 80) ? 0 : m->port;
}

static bool valid_tunnel(const struct net_open *m)
{
	if (m->scheme == NET_SSH)
		return ssh_is_open(m);
	return m->scheme != NET_HTTP && m->method.n == 0 && m->target.n == 0 && m->fields_n == 0 &&
	       m->body == NET_BODY_STREAM && m->length == 0;
}

/* Whatever the room can make a correct gateway send must pass here. Otherwise the room could end
 * its own network with one odd request. */
static bool valid_open(struct broker *b, const struct net_open *m, struct host *ret_host)
{
	if (m->stream <= b->streams.last || m->port == 0 || host_parse(m->host, ret_host) < 0 ||
		!str_eq(host_str(ret_host), m->host))
		return false;
	if (m->kind == NET_KIND_TUNNEL)
		return valid_tunnel(m);
	if (m->scheme == NET_TCP || m->scheme == NET_SSH)
		return false;
	if (m->kind == NET_KIND_WEBSOCKET &&
		(!str_eq(m->method, STR("GET")) || m->body != NET_BODY_STREAM ||
			m->expect_continue))
		return false;
	return http_is_method(m->method) && !str_eq(m->method, STR("CONNECT")) &&
	       !str_eq(m->method, STR("TRACE")) && http_is_target(m->target) &&
	       (m->body == NET_BODY_LENGTH) == (m->length > 0) && m->length <= INT64_MAX;
}

static bool is_idempotent(struct str method)
{
	return str_eq(method, STR("GET")) || str_eq(method, STR("HEAD")) ||
	       str_eq(method, STR("PUT")) || str_eq(method, STR("DELETE")) ||
	       str_eq(method, STR("OPTIONS"));
}

/* RFC 9110 8.6: servers may refuse these methods if there is no length (411). */
static bool means_content(struct str method)
{
	return str_eq(method, STR("PUT")) || str_eq(method, STR("POST")) ||
	       str_eq(method, STR("PATCH"));
}

/* Fill s->head. */
static int take_head(struct stream *s, const struct net_open *m, struct wire_in *fields)
{
	static const enum http_framing framing[NET_BODY_END] = {
		HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED};
	bool tunnel = m->kind == NET_KIND_TUNNEL, http = m->kind == NET_KIND_HTTP;
	bool opaque = tunnel && m->scheme != NET_SSH;
	int r = http_head_set_request(&s->head, opaque ? STR("CONNECT") : m->method,
		m->scheme == NET_HTTPS ? STR("https") : STR("http"), m->host, written_port(m),
		opaque ? STR("*") : m->target);

	if (r < 0 || !stream_take_fields(&s->head.fields, fields, m->fields_n))
		return -EPROTO;
	if (m->scheme == NET_SSH && !ssh_has_fields(s))
		return -EPROTO;
	http_head_set_body(&s->head, http ? framing[m->body] : HTTP_BODY_NONE, m->length);
	if (m->body == NET_BODY_NONE && means_content(m->method))
		http_head_set_body(&s->head, HTTP_BODY_LENGTH, 0);
	return 0;
}

/* Every HTTP/1.1 server understands or skips announced trailers (RFC 9110 6.6.2). Over HTTP/2 some
 * servers (nginx) end the connection because of them, with all its other streams. A gRPC call needs
 * HTTP/2 in any case. */
static bool needs_http1(const struct stream *s)
{
	if (s->kind != NET_KIND_HTTP)
		return true;
	return s->framing == NET_BODY_STREAM && !http_is_grpc(&s->head.fields) &&
	       http_fields_find_id(&s->head.fields, HTTP_F_TRAILER, 0) >= 0;
}

static int on_open(struct broker *b, struct str payload)
{
	struct net_open m;
	struct wire_in fields;
	struct host host;
	struct stream *s;

	if (!net_get_open(payload, &m, &fields) || !valid_open(b, &m, &host))
		return -EPROTO;
	b->streams.last = m.stream;
	/* The broker may have more streams than the gateway: those whose last bytes wait for an
	 * origin. */
	s = HASH_COUNT(b->streams.open) < NET_MAX_STREAMS ? stream_new(b, &m) : NULL;
	if (!s)
		return net_send_reset(&b->net, m.stream, NET_RESET_LIMIT) < 0 ? -EPROTO : 0;
	s->kind = m.kind;
	s->scheme = m.scheme;
	s->host = host;
	s->port = m.port;
	s->framing = m.body;
	s->te_trailers = m.te_trailers;
	s->length = m.length;
	s->expect.asked = m.expect_continue && m.body != NET_BODY_NONE;
	s->request = m.body == NET_BODY_NONE ? REQUEST_ENDED : REQUEST_OPEN;
	s->is_head = str_eq(m.method, STR("HEAD"));
	s->idempotent = is_idempotent(m.method);
	if (take_head(s, &m, &fields) < 0) {
		s->logged = true; /* no log line: the network ends */
		stream_close(s);
		return -EPROTO;
	}
	s->http1 = m.http1 || needs_http1(s);
	s->keep_alive = m.keep_alive;
	if (s->scheme != NET_TCP && s->scheme != NET_SSH)
		tape_request(s);
	b->lines.owner = m.owner.pid ? &m.owner : NULL;
	decide_request(s);
	b->lines.owner = NULL;
	return 0;
}

static int drop_data(struct stream *s, uint32_t n)
{
	s->discarded += n;
	if (s->discarded > 2 * s->window && s->state == STREAM_ANSWERED) {
		stream_reset(s, NET_RESET_LIMIT);
		return 0;
	}
	if (net_send_credit(&s->broker->net, s->id, n) < 0)
		return -EPROTO;
	s->window_in += n;
	return 0;
}

static int stream_on_data(struct stream *s, struct str payload)
{
	struct str bytes;
	uint32_t id;

	if (!net_get_data(payload, &id, &bytes) || bytes.n > s->window_in ||
		(s->framing == NET_BODY_LENGTH && bytes.n > s->length))
		return -EPROTO;
	s->window_in -= (uint32_t)bytes.n;
	s->active = loop_now(s->broker->loop);
	if (s->framing == NET_BODY_LENGTH)
		s->length -= bytes.n;
	if (s->request == REQUEST_DROPPED)
		return drop_data(s, (uint32_t)bytes.n);
	s->uncredited += (uint32_t)bytes.n;
	s->bytes_out += bytes.n;
	s->broker->bytes_out += bytes.n;
	tape_sent(s, bytes);
	expect_body(s);
	request_body_add(s, bytes);
	return 0;
}

/* Credentials are removed from trailers, because some servers add trailers to the headers. Return
 * 0, 1 if that could not be logged, or -EPROTO. */
static int take_trailers(struct stream *s, struct wire_in *fields, unsigned n)
{
	struct http_fields *f = &s->trailers;
	int r = 0;

	if (!stream_take_fields(f, fields, n))
		return -EPROTO;
	for (unsigned i = f->n; i-- > 0;) {
		struct str name = http_fields_name(f, i);

		if (s->state == STREAM_ANSWERED ||
			!replace_strips(s->broker->secrets, &s->host, name))
			continue;
		if (log_stripped(s, name) < 0)
			r = 1;
		http_fields_remove_at(f, i);
	}
	return r;
}

static int stream_on_end(struct stream *s, struct str payload)
{
	struct net_trailers m;
	struct wire_in fields;
	bool dropped;
	int r;

	if (!net_get_trailers(payload, &m, &fields) ||
		(s->framing == NET_BODY_LENGTH && s->length > 0) ||
		(m.fields_n > 0 && s->framing != NET_BODY_STREAM))
		return -EPROTO;
	r = take_trailers(s, &fields, m.fields_n);
	if (r < 0)
		return r;
	dropped = s->request == REQUEST_DROPPED;
	s->request = REQUEST_ENDED;
	bounds_narrow(s);
	expect_body(s);
	if (!dropped)
		tape_sent_end(s);
	if (r > 0)
		refuse_upstream(s, 502, "log_unavailable", "the network log cannot be written");
	else if (s->state == STREAM_ANSWERED)
		stream_close(s);
	else if (!dropped)
		request_body_end(s);
	return 0;
}

static int on_credit(struct stream *s, struct str payload)
{
	struct net_credit m;

	if (!net_get_credit(payload, &m) || m.bytes > NET_WINDOW - s->window_out)
		return -EPROTO;
	s->window_out += m.bytes;
	bounds_answer(s);
	s->active = loop_now(s->broker->loop);
	response_resume(s);
	return 0;
}

static int on_reset(struct stream *s, struct str payload)
{
	struct net_end_of_stream m;

	if (!net_get_end_of_stream(payload, &m))
		return -EPROTO;
	if (!websocket_has_closed(s, true) && !websocket_has_closed(s, false))
		stream_note(s, m.why == NET_RESET_CANCELLED ? "cancelled by the client"
							    : "broken off by the client");
	stream_close(s);
	return 0;
}

static int on_stream_frame(struct broker *b, const struct chan_frame *f)
{
	struct wire_in r = wire_in(f->payload);
	uint32_t id = wire_get_u32(&r);
	struct stream *s;

	if (r.bad || id > b->streams.last)
		return -EPROTO;
	HASH_FIND(hh, b->streams.open, &id, sizeof(id), s);
	if (!s)
		return 0;
	if (!permitted[s->request][f->type - NET_DATA])
		return -EPROTO;
	switch (f->type) {
	case NET_DATA:
		return stream_on_data(s, f->payload);
	case NET_END:
		return stream_on_end(s, f->payload);
	case NET_RESET:
		return on_reset(s, f->payload);
	default:
		return on_credit(s, f->payload);
	}
}

static int on_hello(struct broker *b, struct str payload)
{
	struct net_hello m;

	if (b->hello || !net_get_hello(payload, &m) || m.version != NET_VERSION ||
		!tls_spki_is_p256(m.spki))
		return -EPROTO;
	memcpy(b->minting.spki, m.spki.p, sizeof(b->minting.spki));
	b->hello = true;
	broker_flush_later(b);
	return broker_tell_ports(b, true) < 0 ? -EPROTO : 0;
}

int stream_frame(struct broker *b, const struct chan_frame *f)
{
	struct net_mint mint;
	struct net_event event;

	if (f->type == NET_HELLO)
		return on_hello(b, f->payload);
	if (!b->hello)
		return -EPROTO;
	switch (f->type) {
	case NET_OPEN:
		return on_open(b, f->payload);
	case NET_DATA:
	case NET_END:
	case NET_RESET:
	case NET_CREDIT:
		return on_stream_frame(b, f);
	case NET_MINT:
		return net_get_mint(f->payload, &mint) ? mint_request(b, &mint) : -EPROTO;
	case NET_EVENT:
		if (!net_get_event(f->payload, &event))
			return -EPROTO;
		if (!attribute_event(b, &event, f->payload))
			log_gateway_event(b, &event);
		return 0;
	default:
		return -EPROTO;
	}
}
