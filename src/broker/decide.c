/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-JUDGED-FIRST): the order in which a request is judged. Policy comes
 * first, on what was asked for and before any name is resolved; then the filters (chain.h); then
 * the log. Requests that came together become ready together. Their lines are written first,
 * because nothing may happen that is not on record; only then is anything dialled (requests_go). If
 * a filter needs the body, the request waits for all of it in between (request_whole).
 *
 * The head may hold real secrets before there is a connection. It is written only to an upstream of
 * the stream's own scheme (upstream.c), and one for https exists only after its certificate was
 * verified, so secrets always leave over verified TLS. */
#include "broker/decide.h"
#include "broker/attribute.h"
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/dial.h"
#include "broker/log.h"
#include "broker/offline.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/ssh.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "broker/watch.h"
#include "ipc/netchan.h"
#include "ipc/sshleg.h"
#include "netlog/netlog.h"
#include "policy/allowlist.h"

void request_go(struct stream *s, bool fresh)
{
	struct upstream *u = fresh || s->kind != NET_KIND_HTTP ? NULL : pool_take(s);

	stream_go(s, STREAM_GOING);
	if (s->broker->offline)
		offline_go(s);
	else if (u)
		upstream_attach(u, s);
	else if (!pool_wait(s))
		dial_start(s);
}

/* Return the name of a field that some server could read as a framing, routing or credential field,
 * because it takes '_' for '-'; or a null view (INV-UNDECIDABLE). */
static struct str find_lookalike(const struct http_fields *f)
{
	char plain[HTTP_NAME_MAX];

	for (unsigned i = 0; i < f->n; i++) {
		struct str name = http_fields_name(f, i);

		if (f->v[i].id != HTTP_F_OTHER || str_chr(name, '_') == name.n)
			continue;
		for (size_t k = 0; k < name.n; k++)
			plain[k] = name.p[k] == '_' ? '-' : name.p[k];
		if (http_field_id(str_make(plain, name.n)) != HTTP_F_OTHER)
			return name;
	}
	return STR_NULL;
}

static bool is_unmistakable(struct stream *s)
{
	struct str name = find_lookalike(&s->head.fields);

	if (name.n > 0)
		refuse_body(s, "ambiguous_header",
			"Some servers take this header for another one, as they read _ as -. Leave "
			"it out, or write it with -.",
			name);
	return name.n == 0;
}

/* Fields that some origins believe instead of the request line. */
static void find_overrides(const struct http_fields *f, struct policy_request *req)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct str value = http_fields_value(f, i);
		enum http_override what = http_field_overrides(http_fields_name(f, i));

		if (what == HTTP_OVERRIDES_METHOD && value.n > 0) /* two are ambiguous */
			req->other_method = req->other_method.n ? STR("*") : value;
		req->other_path |= what == HTTP_OVERRIDES_PATH;
	}
}

static void refuse_unlogged(struct stream *s)
{
	refuse_upstream(s, 502, "log_unavailable",
		"the network log cannot be written, so no request is made");
}

void request_ready(struct stream *s)
{
	struct broker *b = s->broker;

	if (chain_sign(s) < 0)
		return;
	if (log_intent(s) < 0) {
		refuse_unlogged(s);
		return;
	}
	stream_go(s, STREAM_READY);
	s->next_ready = NULL;
	*(b->streams.ready ? b->streams.ready_tail : &b->streams.ready) = s;
	b->streams.ready_tail = &s->next_ready;
	broker_flush_later(b);
}

void request_prepare(struct stream *s)
{
	if (chain_prepare(s) == 0)
		request_ready(s);
}

void request_wait(struct stream *s, const void *token)
{
	stream_go(s, STREAM_WAITING);
	s->token = token;
}

void requests_wake(
	struct broker *b, const void *token, void (*refuse)(struct stream *s, const void *token))
{
	struct stream *s, *tmp;

	HASH_ITER (hh, b->streams.open, s, tmp) {
		/* It may have been refused meanwhile. */
		if (s->state != STREAM_WAITING || s->token != token)
			continue;
		if (refuse)
			refuse(s, token);
		else
			request_prepare(s);
	}
	broker_flush_later(b);
}

enum policy_scheme decide_scheme(enum net_scheme scheme)
{
	static const enum policy_scheme schemes[NET_SCHEME_END] = {[NET_HTTP] = POLICY_HTTP,
		[NET_HTTPS] = POLICY_HTTPS,
		[NET_TCP] = POLICY_TCP,
		[NET_SSH] = POLICY_SSH};

	return schemes[scheme];
}

struct policy_request decide_what(const struct stream *s)
{
	struct policy_request req = {
		.scheme = decide_scheme(s->scheme),
		.host = host_str(&s->host),
		.port = s->port,
		.method = http_head_method(&s->head),
		.target = stream_target(s),
		.tunnel = s->kind == NET_KIND_TUNNEL && s->scheme == NET_HTTPS,
		.websocket = s->kind == NET_KIND_WEBSOCKET,
		.body_filtered = true,
	};

	if (s->scheme == NET_SSH)
		req.user = ssh_field(s, STR(SSHLEG_FIELD_USER));
	else
		find_overrides(&s->head.fields, &req);
	return req;
}

/* Collect the body, which is judged before anything is sent. */
static void decide_collect(struct stream *s, size_t max)
{
	stream_go(s, STREAM_COLLECTING);
	request_body_collect(s, max);
	expect_continue(s);
}

/* The policy allows it: let the filters judge it. */
static void decide_allowed(struct stream *s)
{
	size_t whole;

	if (s->kind == NET_KIND_TUNNEL) {
		request_ready(s);
		return;
	}
	if (!is_unmistakable(s) || chain_judge_head(s, &whole) < 0)
		return;
	/* Bytes after a WebSocket's handshake are not a body. */
	if (whole < SIZE_MAX && s->request == REQUEST_OPEN && s->kind == NET_KIND_HTTP)
		decide_collect(s, whole);
	else if (chain_judge_body(s) == 0)
		request_prepare(s);
}

/* No rule for plain TCP names it. That is no refusal yet: the gateway looks what it is instead. */
static void decide_unlisted(struct stream *s)
{
	s->logged = true;
	stream_reset(s, NET_RESET_UNLISTED);
}

void decide_request(struct stream *s)
{
	struct broker *b = s->broker;
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct policy_request req = decide_what(s);

	s->policy = allowlist_ref(b->policy);
	s->policy_number = b->policy_number;
	if (b->offline) {
		offline_decide(s);
		return;
	}
	if (policy_decide(b->policy, &req, &s->verdict) < 0) {
		s->verdict.allow = false;
		err_nomem(&err);
		refuse_upstream(s, 502, "request_not_sent", err.message);
		return;
	}
	if (s->verdict.allow)
		decide_allowed(s);
	else if (s->scheme == NET_TCP && s->verdict.reason != POLICY_DENIED)
		decide_unlisted(s);
	else if (attribute_request(s))
		stream_go(s, STREAM_ASKING);
	else if (!watch_hold(s))
		refuse_policy(s, &req);
}

/* As if what came meanwhile came now. */
static void decide_catch_up(struct stream *s, struct str body, bool ended)
{
	bool dropped = s->request == REQUEST_DROPPED;

	if (body.n > 0 && !dropped && s->state != STREAM_CLOSED)
		request_body_add(s, body);
	if (!ended || s->state == STREAM_CLOSED)
		return;
	dropped = s->request == REQUEST_DROPPED;
	s->request = REQUEST_ENDED;
	if (s->state == STREAM_ANSWERED)
		stream_close(s);
	else if (!dropped)
		request_body_end(s);
}

void decide_held(struct stream *s)
{
	struct buf body = s->body;
	bool ended = s->request == REQUEST_ENDED && s->framing != NET_BODY_NONE;

	s->body = BUF_INIT(body.max);
	if (ended)
		s->request = REQUEST_OPEN;
	decide_allowed(s);
	decide_catch_up(s, buf_str(&body), ended);
	buf_done_wiped(&body);
}

void request_whole(struct stream *s)
{
	if (chain_judge_body(s) < 0)
		return;
	if (buf_len(&s->body) > 0)
		http_head_set_body(&s->head, HTTP_BODY_LENGTH, buf_len(&s->body));
	else
		http_head_set_body(&s->head, HTTP_BODY_NONE, 0);
	request_prepare(s);
}

void requests_drop(struct broker *b)
{
	b->streams.ready = NULL;
}

void requests_go(struct broker *b)
{
	struct stream *s = b->streams.ready;
	bool recorded;

	if (!s)
		return;
	b->streams.ready = NULL;
	recorded = netlog_flush(b->lines.log) == 0;
	for (; s; s = s->next_ready) {
		if (s->state != STREAM_READY)
			continue; /* a later frame has ended it */
		if (!recorded) {
			refuse_unlogged(s);
			continue;
		}
		if (b->offline && !offline_is_early(s))
			expect_continue(s);
		request_go(s, false);
	}
}
