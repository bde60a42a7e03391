/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): bytes of an origin go through the strict parser and
 * leave as frames; nothing is kept. What the parser does not accept ends the exchange: before the
 * head with a 502, after it with a reset, so that a cut or broken body never looks complete to the
 * room. Values of secrets are turned back into their surrogates in every header and in every body.
 * A body with a content coding cannot be looked into: where the request carried a secret, which
 * may be in it, such an answer is refused. It was not asked for (decide.c). */
#include "broker/state.h"
#include "http/valid.h"

#include <errno.h>
#include <stdio.h>

void response_begin(struct upstream *u)
{
	u->started = u->in_body = false;
	http_body_done(&u->body);
	h1_parser_response(&u->parser, &u->head, u->stream->is_head ? H1_TO_HEAD : 0);
}

/* In the head's own memory, which may be changed. */
static size_t scrub_part(struct stream *s, struct http_fields *f, uint32_t at, size_t n)
{
	return scrub_whole(s->broker->scrubber, f->text.mem + at, n);
}

/* A name, too, is whatever the origin likes. */
static void scrub_fields(struct stream *s, struct http_fields *f)
{
	if (!s->broker->scrubber)
		return;
	for (unsigned i = 0; i < f->n; i++) {
		const struct http_field *v = &f->v[i];

		s->scrubbed += (unsigned)(scrub_part(s, f, v->name, v->name_len) +
					  scrub_part(s, f, v->value, v->value_len));
	}
}

static int send_fields(struct net_fields_out *out, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->n; i++)
		net_add_field(out, http_fields_name(f, i), http_fields_value(f, i));
	return net_end_fields(out);
}

/* Ends here what is not for the room: what frames, and the offer of a protocol (HTTP/3) that cannot
 * get through. */
static void clean_head(struct stream *s, struct http_head *h)
{
	http_head_strip(h);
	http_fields_remove(&h->fields, STR("Alt-Svc"));
	scrub_fields(s, &h->fields);
}

static int send_interim(struct upstream *u)
{
	struct stream *s = u->stream;
	struct net_response m = {.stream = s->id, .status = u->head.status};
	struct net_fields_out f;

	if (u->head.status == 100) /* ours was sent when it was asked for */
		return 0;
	clean_head(s, &u->head);
	f = net_begin_response(&s->broker->net, NET_INTERIM, &m);
	return send_fields(&f, &u->head.fields);
}

static bool is_encoded(const struct http_head *h)
{
	const struct http_fields *f = &h->fields;
	struct str coding;

	for (int i = http_fields_find(f, STR("Content-Encoding"), 0); i >= 0;
		i = http_fields_find(f, STR("Content-Encoding"), (unsigned)i + 1)) {
		struct str list = http_fields_value(f, (unsigned)i);

		while (http_list_next(&list, &coding))
			if (!str_ieq(coding, STR("identity")))
				return true;
	}
	return false;
}

/* Whether the answer may hold a secret in a form that the scrubber does not see. */
static bool hides_secret(const struct stream *s, const struct http_head *h)
{
	return s->masked > 0 && h->body != HTTP_BODY_NONE && is_encoded(h);
}

/* RFC 9112 6.3, as the room's side is told. */
static void set_framing(const struct http_head *h, struct net_response *m)
{
	bool has_length = h->flags & HTTP_HAS_LENGTH && h->content_length > 0;

	m->body = NET_BODY_NONE;
	if (h->body == HTTP_BODY_CHUNKED || h->body == HTTP_BODY_CLOSE)
		m->body = NET_BODY_STREAM;
	else if (h->body == HTTP_BODY_LENGTH || has_length)
		m->body = NET_BODY_LENGTH; /* also for what only describes a body: HEAD, 304 */
	m->length = m->body == NET_BODY_LENGTH ? h->content_length : 0;
}

static int send_head(struct upstream *u)
{
	struct stream *s = u->stream;
	struct net_response m = {.stream = s->id, .status = u->head.status};
	struct net_fields_out f;

	/* Also what says that it is encoded: saying so costs an origin nothing. */
	if (s->broker->scrubber && u->head.body != HTTP_BODY_NONE) {
		s->scrub = scrub_new(s->broker->scrubber);
		if (!s->scrub)
			return -ENOMEM;
	}
	clean_head(s, &u->head);
	set_framing(&u->head, &m);
	s->status = u->head.status;
	s->head_sent = true;
	f = net_begin_response(&s->broker->net, NET_HEAD, &m);
	return send_fields(&f, &u->head.fields);
}

static int send_data(struct stream *s, struct str bytes)
{
	int r = 0;

	for (; r == 0 && bytes.n > 0; bytes = str_from_index(bytes, NET_MAX_DATA))
		r = net_send_data(&s->broker->net, s->id, str_prefix(bytes, NET_MAX_DATA));
	return r;
}

/* Bytes count against the window when they are read, so what the scrubber holds back is covered. */
static int pass_on(struct stream *s, struct str bytes)
{
	struct str first = bytes, second = STR_NULL;
	int r;

	s->window_out -= (uint32_t)bytes.n;
	s->bytes_in += bytes.n;
	s->broker->bytes_in += bytes.n;
	if (s->scrub)
		scrub_feed(s->scrub, (char *)(uintptr_t)bytes.p, bytes.n, &first, &second);
	r = send_data(s, first);
	return r < 0 ? r : send_data(s, second);
}

static int send_end(struct stream *s, struct http_fields *trailers)
{
	struct net_fields_out f;
	int r = 0;

	if (s->scrub)
		r = send_data(s, scrub_end(s->scrub));
	if (r < 0)
		return r;
	scrub_fields(s, trailers);
	f = net_begin_trailers(&s->broker->net, s->id);
	return send_fields(&f, trailers);
}

static void complete(struct upstream *u, size_t left_over)
{
	struct stream *s = u->stream;
	bool reusable = (u->head.flags & HTTP_KEEP_ALIVE) && u->head.body != HTTP_BODY_CLOSE &&
			left_over == 0 && upstream_request_sent(u);

	if (send_end(s, &u->trailers) < 0) {
		broker_fail(u->broker);
		return;
	}
	if (reusable)
		upstream_release(u);
	else
		upstream_close(u);
	stream_finish(s);
}

static void malformed(struct upstream *u, const char *why)
{
	struct stream *s = u->stream;
	char message[NOTE_MAX];

	snprintf(
		message, sizeof(message), "the response of %s is malformed: %s", s->host.text, why);
	refuse_upstream(s, 502, "upstream_malformed", message);
}

/* 1: the head is complete; 0: more is needed, or the exchange has ended. */
static int feed_head(struct upstream *u, struct str *bytes)
{
	for (;;) {
		size_t used = 0;
		enum h1_result r = h1_parse(&u->parser, *bytes, &used);

		*bytes = str_from_index(*bytes, used);
		if (r == H1_MORE)
			return 0;
		if (r == H1_ERROR) {
			malformed(u, h1_error_text(u->parser.error));
			return 0;
		}
		if (u->head.status >= 200)
			return 1;
		if (send_interim(u) < 0) {
			broker_fail(u->broker);
			return 0;
		}
		h1_parser_next(&u->parser);
	}
}

/* Whether the body is waited for. */
static bool begin_body(struct upstream *u)
{
	char message[NOTE_MAX];

	if (hides_secret(u->stream, &u->head)) {
		snprintf(message, sizeof(message),
			"%s compressed its answer to a request with a secret, so the secret could "
			"not be looked for in it",
			u->stream->host.text);
		refuse_upstream(u->stream, 502, "upstream_encoded", message);
		return false;
	}
	u->in_body = true;
	http_body_init(&u->body, &u->head, &u->trailers);
	if (send_head(u) < 0)
		broker_fail(u->broker);
	return true;
}

static void feed_body(struct upstream *u, struct str *bytes)
{
	for (;;) {
		struct str data = STR_NULL;

		switch (http_body_read(&u->body, bytes, &data)) {
		case HTTP_BODY_MORE:
			return;
		case HTTP_BODY_DATA:
			if (pass_on(u->stream, data) < 0) {
				broker_fail(u->broker);
				return;
			}
			if (!http_body_is_done(&u->body))
				break;
			complete(u, bytes->n);
			return;
		case HTTP_BODY_DONE:
			complete(u, bytes->n);
			return;
		case HTTP_BODY_BAD:
			malformed(u, http_body_error(&u->body));
			return;
		}
	}
}

void response_feed(struct upstream *u, struct str bytes)
{
	struct stream *s = u->stream;

	s->active = loop_now(u->broker->loop);
	broker_flush_later(u->broker);
	if (!u->started) {
		/* The origin has seen the request: it is never sent again. */
		u->started = true;
		s->keep = false;
		buf_consume(&s->out, s->out_done);
		s->out_done = 0;
	}
	if (!u->in_body) {
		if (feed_head(u, &bytes) == 0)
			return;
		if (!begin_body(u))
			return;
	}
	feed_body(u, &bytes);
}

void response_eof(struct upstream *u, bool clean, const char *why)
{
	struct stream *s = u->stream;
	char message[NOTE_MAX];

	if (u->dead)
		return;
	broker_flush_later(u->broker);
	if (!u->started && u->used && s->keep) {
		s->retried = true;
		upstream_close(u);
		request_go(s, true);
		return;
	}
	if (u->in_body && http_body_eof(&u->body) == 0 &&
		(clean || u->head.body != HTTP_BODY_CLOSE)) {
		complete(u, 0);
		return;
	}
	snprintf(message, sizeof(message), "%s %s: %s", s->host.text,
		u->in_body ? "ended in the middle of the body" : "closed without an answer",
		*why ? why : "connection closed");
	refuse_upstream(s, 502, "upstream_closed", message);
}
