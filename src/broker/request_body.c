/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a request's body on its way to the origin, as plain bytes; the code for each
 * protocol frames them. Usually little waits here: the gateway has a window, and gets credit as the
 * origin takes bytes. A body that has to be known as a whole (whole) is collected first, with
 * credit at once; the total of all such bodies is limited.
 *
 * Bytes that go out on a connection that was used before are kept until the first byte of the
 * answer, so that the request can be sent again (RFC 9112 9.3.1: only for idempotent methods). */
#include "broker/request_body.h"
#include "broker/bounds.h"
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/decide.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/body.h"
#include "ipc/chan.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>

void request_body_collect(struct stream *s, size_t max)
{
	s->whole = true;
	s->whole_max = max;
	s->body.max = max;
}

static void too_large(struct stream *s)
{
	char message[NOTE_MAX];

	if (chain_judge_large(s))
		return;
	snprintf(message, sizeof(message),
		"a request to %s can have a body of at most %zu bytes here, because it is looked "
		"into before it goes on",
		s->host.text, s->whole_max);
	refuse_upstream(s, 413, "body_too_large", message);
}

static void request_body_keep(struct stream *s, struct str bytes)
{
	struct broker *b = s->broker;

	if (bytes.n > buf_room(&s->body)) {
		too_large(s);
		return;
	}
	/* The chunks of a request that was refused for that may have gone above the maximum. */
	if (b->bounds.collected + bytes.n > REQUEST_COLLECTED_MAX ||
		buf_add_str(&s->body, bytes) < 0) {
		refuse_upstream(s, 503, "out_of_memory", "too many large requests at once");
		return;
	}
	b->bounds.collected += bytes.n;
	s->collected += bytes.n;
	stream_drained(s);
}

int request_body_replace(struct stream *s, struct buf *body)
{
	struct broker *b = s->broker;
	size_t n = buf_len(body);

	if (n > s->collected && b->bounds.collected - s->collected + n > REQUEST_COLLECTED_MAX)
		return -ENOMEM;
	b->bounds.collected += n - s->collected;
	s->collected = n;
	buf_done(&s->body);
	s->body = *body;
	*body = BUF_INIT(0);
	return 0;
}

/* An error without a code means that there was no memory. */
static void broken(struct stream *s, const struct cloche_err *err)
{
	if (err->code == 0 || err->code == E_NO_MEMORY)
		refuse_upstream(s, 503, "out_of_memory", "no memory for the request's body");
	else
		refuse_upstream(s, 502, "request_not_sent", err->message);
}

void request_body_add(struct stream *s, struct str bytes)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (s->whole) {
		request_body_keep(s, bytes);
		return;
	}
	r = chain_request_data(s, 0, bytes, &err);
	if (r < 0) {
		broken(s, &err);
		return;
	}
	if (buf_len(&s->body) == s->body_done) /* all of it was taken, and nothing came of it */
		stream_drained(s);
	upstream_send(s);
	if (bounds_request(s) || s->request == REQUEST_DROPPED)
		return;
	refuse_upstream(s, 503, "out_of_memory", "too much waits to be sent to origins");
	buf_done_wiped(&s->body);
	s->body_done = 0;
	bounds_request(s);
}

void request_body_end(struct stream *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (chain_request_end(s, 0, &err) < 0)
		broken(s, &err);
	else if (s->whole)
		request_whole(s);
	else
		upstream_send(s);
}

struct str request_body(const struct stream *s)
{
	return str_from_index(buf_str(&s->body), s->body_done);
}

bool request_body_complete(const struct stream *s)
{
	return s->request == REQUEST_ENDED;
}

void request_body_taken(struct stream *s, size_t n)
{
	s->body_done += n;
	s->active = loop_now(s->broker->loop);
	if (s->body_done > REPLAY_MAX)
		s->keep = false;
	if (!s->keep)
		request_body_commit(s);
	if (buf_len(&s->body) - s->body_done <= REQUEST_LOW)
		stream_drained(s);
}

void request_body_commit(struct stream *s)
{
	s->keep = false;
	buf_consume(&s->body, s->body_done);
	s->body_done = 0;
	bounds_request(s);
}

void request_body_rewind(struct stream *s)
{
	s->body_done = 0;
}

/* A body without a length is not whole before its end is known. */
static bool request_body_is_cut(const struct stream *s)
{
	if (request_body(s).n > 0 || s->request == REQUEST_DROPPED)
		return true;
	return s->request == REQUEST_OPEN && (s->framing != NET_BODY_LENGTH || s->length > 0);
}

/* The status of a gRPC call ends it, whatever its client still sends. */
void request_body_answered(struct stream *s, bool sent)
{
	if (s->kind == NET_KIND_HTTP && (!sent || request_body_is_cut(s)) &&
		!http_is_grpc(&s->head.fields))
		stream_note(s, "answered before the whole body was sent, and the rest was not");
}

void request_body_drop(struct stream *s)
{
	buf_clear(&s->body);
	s->body_done = 0;
	bounds_request(s);
	if (s->request == REQUEST_OPEN)
		s->request = REQUEST_DROPPED;
	stream_drained(s);
}
