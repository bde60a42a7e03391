/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-JUDGED-FIRST): the order in which a request is judged. Policy first, on
 * what was asked for and before any name is resolved; then the log; then secrets; then the bytes
 * that will go out. Requests that came together are ready together: their lines are written,
 * because what is not on record must not happen, and only then is anything dialled (requests_go).
 * A request whose body is looked into waits for the whole of it in between (request_whole).
 *
 * The head may hold real secrets before there is a connection. It is written to an upstream of
 * the stream's own scheme alone (upstream.c), and one for https exists only after its certificate
 * was verified, so "over verified TLS" is true whenever they leave.
 *
 * An origin that could send a secret back is offered no coding of its content that could not be
 * decoded (decode.c), so that the scrubber sees what it looks for. */
#include "broker/decide.h"
#include "broker/attribute.h"
#include "broker/aws.h"
#include "broker/broker_internal.h"
#include "broker/config.h"
#include "broker/dial.h"
#include "broker/filters.h"
#include "broker/github.h"
#include "broker/log.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/coding.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "netlog/netlog.h"
#include "policy/allowlist.h"
#include "policy/decide.h"
#include "secrets/replace.h"
#include "secrets/secret_set.h"

#include <errno.h>

/* One request in this state has no owner yet for what goes wrong: says so to the room. */
static void fail(struct stream *s, const struct cloche_err *err)
{
	refuse_upstream(s, 502, "request_not_sent", err->message);
}

static bool is_in_scope(const struct stream *s)
{
	const struct secret_set *set = s->broker->secrets;

	for (size_t i = 0; s->scheme == NET_HTTPS && i < secret_set_count(set); i++)
		if (masked_secret_covers(secret_set_get(set, i), &s->host))
			return true;
	return false;
}

/* Notes are views into the result: written before the edits are applied. */
static int log_notes(struct stream *s, const struct replace_result *result)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	int r = 0;

	for (size_t i = 0; r == 0 && i < result->n_notes; i++) {
		const struct replace_note *n = &result->notes[i];

		switch (n->kind) {
		case REPLACE_NOTE_STRIPPED:
			r = log_stripped(s, n->header);
			break;
		case REPLACE_NOTE_COLLAPSED:
			r = log_collapsed(s, n->header, n->count);
			break;
		case REPLACE_NOTE_WITHHELD:
			buf_clear(&text);
			r = buf_printf(&text, "%s not put into header '%.*s' for %s: %s",
				n->secret_name, STR_FMT(str_prefix(n->header, 64)), s->host.text,
				n->why);
			if (r == 0)
				r = log_warning(s->broker, buf_str(&text));
			break;
		}
	}
	return r;
}

/* From the last field to the first, so that removals do not move what is still to come. */
static int apply_edits(struct stream *s, const struct replace_result *result)
{
	for (size_t i = result->n_edits; i-- > 0;) {
		const struct replace_edit *e = &result->edits[i];
		int r = 0;

		if (e->action == REPLACE_DROP)
			http_fields_remove_at(&s->head.fields, (unsigned)i);
		else if (e->action == REPLACE_SET)
			r = http_fields_set_at(&s->head.fields, (unsigned)i, buf_str(&e->value));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Of what the room accepts, an origin that could send a secret back is offered what can be decoded.
 * A part of something coded cannot, nor messages that are compressed one by one. Before anything is
 * signed. */
static int offer_codings(struct stream *s, struct cloche_err *err)
{
	static const struct str of_messages[] = {
		STR("Grpc-Accept-Encoding"), STR("Connect-Accept-Encoding")};
	struct http_fields *f = &s->head.fields;
	char accept[CODING_ACCEPT_MAX] = "identity";

	if (!is_in_scope(s) || !s->verdict.rule->scrub)
		return 0;
	if (http_fields_find(f, STR("Range"), 0) < 0)
		coding_accept(f, accept);
	if (http_fields_set(f, STR("Accept-Encoding"), str_from(accept)) < 0)
		return err_set(err, E_LIMIT, "too many header fields");
	for (size_t i = 0; i < ARRAY_SIZE(of_messages); i++)
		http_fields_remove(f, of_messages[i]);
	return 0;
}

static bool waits_for_token(struct stream *s, const struct replace_result *result)
{
	const struct masked_secret *live = result->unknown ? result->unknown : result->live;

	if (!live || !github_must_wait(s, live))
		return false;
	github_wait(s, live);
	return true;
}

static int put_secrets(struct stream *s, struct cloche_err *err)
{
	const struct http_fields *f = &s->head.fields;
	struct header_view headers[HTTP_FIELDS_MAX];
	struct replace_result result = {0};
	struct replace_request req = {.verified_tls = s->scheme == NET_HTTPS,
		.host = &s->host,
		.headers = headers,
		.n_headers = f->n};
	int r;

	for (unsigned i = 0; i < f->n; i++)
		headers[i] = (struct header_view){
			.name = http_fields_name(f, i), .value = http_fields_value(f, i)};
	r = replace_headers(s->broker->secrets, &req, &result);
	if (r < 0) {
		r = err_set(err, E_LIMIT, "the request's headers could not be judged");
	} else if (waits_for_token(s, &result)) {
		; /* it is judged again then */
	} else if (log_notes(s, &result) < 0) {
		r = err_set(err, E_SYSTEM, "the network log cannot be written");
	} else {
		s->secret |= result.masked > 0; /* or signed for AWS */
		s->masked = result.masked;
		s->dropped = result.dropped;
		s->collapsed = result.collapsed;
		s->live = result.live;
		s->several_live = result.several_live;
		if (apply_edits(s, &result) < 0)
			r = err_set(err, E_PROTOCOL, "a secret cannot be sent in a header");
	}
	replace_result_done(&result);
	return r;
}

void request_go(struct stream *s, bool fresh)
{
	struct upstream *u = fresh || s->kind != NET_KIND_HTTP ? NULL : pool_take(s);

	if (u)
		upstream_attach(u, s);
	else if (!pool_wait(s))
		dial_start(s);
}

/* RFC 9110 10.1.1: the room's side waits, and what it sends will be taken. */
static int say_continue(struct stream *s)
{
	struct net_response m = {.stream = s->id, .status = 100};
	struct net_fields_out f = net_begin_response(&s->broker->net, NET_INTERIM, &m);

	return net_end_fields(&f);
}

/* As it is read by those who map field names to variables: '-' and '_' are the same. */
static bool is_named(struct str name, struct str want)
{
	if (name.n != want.n)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i] == '_' ? '-' : name.p[i];

		if (!str_ieq(str_make(&c, 1), str_make(want.p + i, 1)))
			return false;
	}
	return true;
}

/* A field that such a one may take for what frames, routes or says who asks, though nobody else
 * does (INV-UNDECIDABLE). Null where there is none. */
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
	static const struct str methods[] = {
		STR("x-http-method-override"), STR("x-http-method"), STR("x-method-override")};
	static const struct str paths[] = {STR("x-original-url"), STR("x-rewrite-url")};

	for (unsigned i = 0; i < f->n; i++) {
		struct str name = http_fields_name(f, i), value = http_fields_value(f, i);

		if ((name.p[0] | 0x20) != 'x')
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(methods); k++)
			if (is_named(name, methods[k]) && value.n > 0) /* of two, nobody knows */
				req->other_method = req->other_method.n ? STR("*") : value;
		for (size_t k = 0; k < ARRAY_SIZE(paths); k++)
			req->other_path |= is_named(name, paths[k]);
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

	if (aws_finish(s) < 0)
		return;
	if (log_intent(s) < 0) {
		refuse_unlogged(s);
		return;
	}
	s->next_ready = NULL;
	*(b->ready ? b->ready_tail : &b->ready) = s;
	b->ready_tail = &s->next_ready;
}

void request_prepare(struct stream *s)
{
	struct broker *b = s->broker;
	struct cloche_err err = CLOCHE_ERR_INIT;

	github_expire(b);
	if (secret_set_count(b->secrets) > 0 &&
		(offer_codings(s, &err) < 0 || put_secrets(s, &err) < 0))
		fail(s, &err);
	else if (!s->closed && !s->answered && !s->waits_for && github_check(s))
		request_ready(s);
}

struct policy_request decide_what(const struct stream *s)
{
	struct policy_request req = {
		.scheme = s->scheme == NET_HTTPS ? POLICY_HTTPS : POLICY_HTTP,
		.host = host_str(&s->host),
		.port = s->port,
		.method = http_head_method(&s->head),
		.target = stream_target(s),
		.tunnel = s->kind == NET_KIND_TUNNEL,
		.websocket = s->kind == NET_KIND_WEBSOCKET,
		.body_filtered = true,
	};

	find_overrides(&s->head.fields, &req);
	return req;
}

/* The body is looked into before anything is sent. */
static void collect(struct stream *s, size_t max)
{
	request_body_collect(s, max);
	if (s->expects && say_continue(s) < 0)
		broker_fail(s->broker);
}

void decide_request(struct stream *s)
{
	struct broker *b = s->broker;
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct policy_request req = decide_what(s);
	size_t whole, signature, other;

	s->policy = allowlist_ref(b->policy);
	s->policy_number = b->policy_number;
	if (policy_decide(b->policy, &req, &s->verdict) < 0) {
		s->verdict.allow = false;
		err_nomem(&err);
		fail(s, &err);
		return;
	}
	if (!s->verdict.allow) {
		if (!attribute_request(s))
			refuse_policy(s, &req);
		return;
	}
	if (s->kind == NET_KIND_TUNNEL) {
		request_ready(s);
		return;
	}
	if (!is_unmistakable(s) || !filters_choose(s, &whole) || aws_open(s, &signature) < 0)
		return;
	other = MAX(github_needs_body(s), signature);
	if (whole == 0 || (other > 0 && other < whole))
		whole = other;
	/* What follows a WebSocket's handshake is no body. */
	if (whole > 0 && s->state == STREAM_OPEN && s->kind == NET_KIND_HTTP)
		collect(s, whole);
	else if (filters_apply(s))
		request_prepare(s);
}

void request_whole(struct stream *s)
{
	if (aws_whole(s) < 0 || !filters_apply(s))
		return;
	if (buf_len(&s->body) > 0)
		http_head_set_body(&s->head, HTTP_BODY_LENGTH, buf_len(&s->body));
	else
		http_head_set_body(&s->head, HTTP_BODY_NONE, 0);
	request_prepare(s);
}

void requests_drop(struct broker *b)
{
	b->ready = NULL;
}

void requests_go(struct broker *b)
{
	struct stream *s = b->ready;
	bool recorded;

	if (!s)
		return;
	b->ready = NULL;
	recorded = netlog_flush(b->log) == 0;
	for (; s; s = s->next_ready) {
		if (s->closed || s->answered)
			continue; /* what came behind it has ended it */
		if (!recorded) {
			refuse_unlogged(s);
			continue;
		}
		if (s->expects && !s->whole && say_continue(s) < 0)
			broker_fail(b);
		request_go(s, false);
	}
}
