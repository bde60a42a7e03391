/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/exchange.h"
#include "base/clock.h"
#include "gateway/conn.h"
#include "gateway/event.h"
#include "gateway/state.h"

#include <errno.h>

/* --- the request --- */

int exchange_open(struct exchange *x, const struct http_head *head, struct request *r)
{
	struct net_fields_out fields;
	int e;

	r->open.connection = x->c->number;
	r->open.client = x->c->client;
	r->open.owner = conn_owner(x->c);
	e = stream_open(x->c->g, &x->stream, x->ops->stream, &r->open, &fields);
	if (e < 0)
		return e;
	request_add_fields(head, &fields);
	return stream_open_end(&x->stream, &fields, r->open.body != NET_BODY_NONE);
}

struct answer exchange_refusal(
	struct exchange *x, const struct http_head *head, const struct request *r)
{
	bool connect = r->refusal.event == NET_EVENT_CONNECT;
	struct str host = http_head_host(head);

	event_refused(x->c, head, r);
	return (struct answer){
		.status = r->refusal.status,
		.code = r->refusal.code,
		.message = r->refusal.message,
		.detail = connect ? STR_NULL : host,
		.connect = connect ? host : STR_NULL,
		.port = head->port,
	};
}

uint64_t exchange_deadline(struct exchange *x, bool waits, uint64_t usec)
{
	const struct gateway *g = x->c->g;
	uint64_t now = loop_now(g->loop);

	if (!waits) {
		x->window_end = 0;
		return now + usec;
	}
	if (x->window_end == 0) {
		x->window_end = now + g->limits->body_window_usec;
		x->window_bytes = 0;
	}
	return x->window_end;
}

bool exchange_keeps_pace(struct exchange *x)
{
	if (x->window_bytes < x->c->g->limits->body_min_bytes)
		return false;
	x->window_end = 0;
	return true;
}

/* --- the response --- */

int exchange_fields(struct wire_in *in, unsigned n, struct http_fields *ret)
{
	struct str name, value;
	int r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++) {
		if (!net_next_field(in, &name, &value))
			return -EINVAL;
		r = http_fields_add(ret, name, value);
	}
	return r < 0 || !wire_ok(in) ? -EINVAL : 0;
}

int exchange_model(struct exchange *x, const struct net_response *m, struct wire_in *fields)
{
	struct http_head *head = &x->c->g->answer;

	if (http_head_set_response(head, m->status, STR_NULL) < 0)
		return -EINVAL;
	return exchange_fields(fields, m->fields_n, &head->fields);
}

bool exchange_take(struct exchange *x, size_t n)
{
	if (x->framing != HTTP_BODY_LENGTH)
		return true;
	if (n > x->left)
		return false;
	x->left -= n;
	return true;
}

bool exchange_is_short(const struct exchange *x)
{
	return x->framing == HTTP_BODY_LENGTH && x->left > 0;
}

void exchange_on_interim(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct exchange *x = exchange_of(s);

	if (m->status < 100 || m->status > 199 || m->status == 101 || x->answered)
		return;
	if (m->status == 100 && !x->wait_continue)
		return;
	if (exchange_model(x, m, fields) < 0 || !x->ops->interim(x, &x->c->g->answer))
		return;
	if (m->status == 100)
		x->wait_continue = false;
	x->ops->arm(x);
	conn_mark(x->c);
}

/* Choose how the body is framed for the room (RFC 9112 6.3). The answer to a HEAD has a length all
 * the same: that of the answer to a GET. */
static void exchange_frame_body(
	struct exchange *x, const struct net_response *m, struct http_head *head)
{
	static const enum http_framing framing[NET_BODY_END] = {
		[NET_BODY_NONE] = HTTP_BODY_NONE,
		[NET_BODY_LENGTH] = HTTP_BODY_LENGTH,
		[NET_BODY_STREAM] = HTTP_BODY_CHUNKED,
	};
	bool known = m->body == NET_BODY_LENGTH;

	x->left = known ? m->length : 0;
	http_head_set_body(
		head, m->body < NET_BODY_END ? framing[m->body] : HTTP_BODY_NONE, x->left);
	if (x->to_head || m->status == 204 || m->status == 304) {
		head->body = HTTP_BODY_NONE;
		head->flags |= HTTP_TO_HEAD;
	}
	x->framing = head->body;
}

void exchange_on_head(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct exchange *x = exchange_of(s);
	struct http_head *head = &x->c->g->answer;

	if (x->ops->upgrade && x->ops->upgrade(x, m, fields))
		return;
	conn_mark(x->c);
	if (m->status < 200 || exchange_model(x, m, fields) < 0) {
		x->ops->fail(x, &answer_bad_response);
		return;
	}
	exchange_frame_body(x, m, head);
	if (!x->ops->head(x, m, head)) {
		x->ops->fail(x, &answer_bad_response);
		return;
	}
	x->answered = true;
	x->ops->arm(x);
}

void exchange_on_reset(struct stream *s, enum net_reset why)
{
	struct exchange *x = exchange_of(s);

	x->ops->broken(x, why == NET_RESET_LIMIT ? &answer_limit : &answer_failed);
}
