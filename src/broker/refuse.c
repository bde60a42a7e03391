/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: answers that an agent can act on. The first five members of a refusal by
 * policy are those that existing tools look for; the others say which rule came nearest and what a
 * person would add to the allowlist. Everything in it is ASCII: hosts, methods and targets were
 * checked before, and the rest is our own text.
 *
 * A gRPC client reads no body. It gets only a status (its "Trailers-Only"), with the same text as
 * its message.
 *
 * As many answers at once as there can be streams (a policy is replaced, a host does not resolve)
 * might not fit into the channel. If it is more than half full, the gateway is told to send a short
 * answer of its own. */
#include "broker/refuse.h"
#include "base/json.h"
#include "broker/broker_internal.h"
#include "broker/dial.h"
#include "broker/log.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/body.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "netlog/netlog.h"
#include "policy/decide.h"
#include "policy/yaml-text.h"

#include <stdio.h>

enum { BODY_MAX = 64 * 1024, SMALL_BODY = 64 * 1024, ANSWERS_MAX = OUT_MAX / 2 };
/* Clients accept about 8 KiB of trailers. */
enum { GRPC_MESSAGE_MAX = 4096 };
enum { GRPC_PERMISSION_DENIED = 7, GRPC_RESOURCE_EXHAUSTED = 8, GRPC_UNAVAILABLE = 14 };

static json_t *text(struct str s)
{
	json_t *v = json_stringn(s.p ? s.p : "", s.n);

	return v ? v : json_string("");
}

/* Return whether the room's connection has to be closed after the answer, because the rest
 * of the request is too long to wait for. */
static bool must_close(const struct stream *s)
{
	return s->request != REQUEST_ENDED && s->kind == NET_KIND_HTTP &&
	       (s->expect.asked || s->framing != NET_BODY_LENGTH || s->length > SMALL_BODY);
}

/* Every gRPC client says that it reads trailers. */
static bool is_grpc_call(const struct stream *s)
{
	return s->te_trailers && http_is_grpc(&s->head.fields);
}

static unsigned grpc_status(unsigned status)
{
	return status == 403   ? GRPC_PERMISSION_DENIED
	       : status == 413 ? GRPC_RESOURCE_EXHAUSTED
			       : GRPC_UNAVAILABLE;
}

/* Add text percent-encoded, as gRPC requires. What does not fit is left out. */
static void add_grpc_message(struct buf *b, const char *text)
{
	int r = 0;

	for (; *text && r == 0; text++) {
		unsigned char c = (unsigned char)*text;

		r = c >= ' ' && c <= '~' && c != '%' ? buf_add_char(b, *text)
						     : buf_printf(b, "%%%02X", c);
	}
}

struct answer_field {
	struct str name, value;
};

static void refuse_get_field(
	const void *of, unsigned i, struct str *ret_name, struct str *ret_value)
{
	const struct answer_field *v = of;

	*ret_name = v[i].name;
	*ret_value = v[i].value;
}

static int refuse_send_head(
	struct stream *s, const struct net_response *m, const struct answer_field *v, unsigned n)
{
	const struct cassette_headers headers = {n, refuse_get_field, v};
	struct net_fields_out f;

	tape_response(s, m, &headers);
	f = net_begin_response(&s->broker->net, NET_HEAD, m);
	for (unsigned i = 0; i < n; i++)
		net_add_field(&f, v[i].name, v[i].value);
	return net_end_fields(&f);
}

static int send_end(struct stream *s)
{
	tape_end(s, NULL);
	return net_send_end(&s->broker->net, s->id);
}

static int send_grpc_status(struct stream *s, unsigned status, const json_t *object)
{
	_cleanup_(buf_donep) struct buf message = BUF_INIT(GRPC_MESSAGE_MAX);
	const char *text = json_string_value(json_object_get(object, "message"));
	const char *how = json_string_value(json_object_get(object, "how_to_allow"));
	struct net_response m = {.stream = s->id, .status = 200, .body = NET_BODY_NONE};
	struct answer_field fields[] = {{STR("Content-Type"), STR("application/grpc")},
		{STR("Grpc-Status"), STR_NULL}, {STR("Grpc-Message"), STR_NULL}};
	char number[4];
	int r;

	snprintf(number, sizeof(number), "%u", grpc_status(status));
	add_grpc_message(&message, text ? text : "");
	if (how) {
		add_grpc_message(&message, "\n");
		add_grpc_message(&message, how);
	}
	fields[1].value = str_from(number);
	fields[2].value = str_trim(buf_str(&message));
	r = refuse_send_head(s, &m, fields, ARRAY_SIZE(fields));
	return r < 0 ? r : send_end(s);
}

static int send_answer(struct stream *s, unsigned status, struct str body)
{
	struct net_response m = {.stream = s->id,
		.status = (uint16_t)status,
		.body = NET_BODY_LENGTH,
		.length = body.n,
		.close = must_close(s)};
	static const struct answer_field fields[] = {{STR("Content-Type"), STR("application/json")},
		{STR("Cache-Control"), STR("no-store")}};
	int r = refuse_send_head(s, &m, fields, ARRAY_SIZE(fields));

	if (s->is_head)
		body = STR_NULL;
	tape_data(s, body);
	for (; r == 0 && body.n > 0; body = str_from_index(body, NET_MAX_DATA))
		r = net_send_data(&s->broker->net, s->id, str_prefix(body, NET_MAX_DATA));
	return r < 0 ? r : send_end(s);
}

static int send_object(struct stream *s, unsigned status, const json_t *object)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(BODY_MAX);

	if (!object || json_text_write(&body, object, 0) < 0 || buf_add_char(&body, '\n') < 0)
		buf_clear(&body);
	if (!s->is_head) {
		s->bytes_in = buf_len(&body);
		s->window_out -= (uint32_t)buf_len(&body); /* nothing was sent before */
	}
	return send_answer(s, status, buf_str(&body));
}

/* ssh shows it as it is. */
static int send_text(struct stream *s, unsigned status, const json_t *object)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(BODY_MAX);
	const char *text = json_string_value(json_object_get(object, "message"));
	const char *how = json_string_value(json_object_get(object, "how_to_allow"));

	if (!text || buf_add_str(&body, str_from(text)) < 0 ||
		(how && buf_printf(&body, "\nwhat would allow it:\n%s", how) < 0))
		buf_clear(&body);
	s->bytes_in = buf_len(&body);
	s->window_out -= (uint32_t)buf_len(&body); /* nothing was sent before */
	return send_answer(s, status, buf_str(&body));
}

static void refuse_answer(struct stream *s, unsigned status, const json_t *object)
{
	int r;

	s->status = (uint16_t)status;
	stream_go(s, STREAM_ANSWERING);
	if (s->scheme == NET_SSH)
		r = send_text(s, status, object);
	else
		r = is_grpc_call(s) ? send_grpc_status(s, status, object)
				    : send_object(s, status, object);
	if (r < 0)
		broker_fail(s->broker);
}

/* Takes the object. */
static void refuse(
	struct stream *s, unsigned status, json_t *object, enum netlog_kind kind, bool allowed)
{
	bool fits = chan_pending(&s->broker->net) <= ANSWERS_MAX;

	if (!allowed || kind == NETLOG_REQUEST)
		tape_refused(s, status);
	if (fits)
		refuse_answer(s, status, object);
	json_decref(object);
	log_result(s, kind, allowed);
	if (fits)
		stream_finish(s);
	else
		stream_reset(s, NET_RESET_LIMIT);
}

static int set(json_t *object, const char *key, struct str value)
{
	return json_object_set_new(object, key, text(value));
}

/* Return what an answer says in any case. */
static json_t *describe(const struct stream *s, const char *error, struct str message)
{
	json_t *o = json_object();

	set(o, "error", str_from(error));
	set(o, "host", host_str(&s->host));
	set(o, "path", stream_target(s));
	set(o, "method", http_head_method(&s->head));
	set(o, "message", message);
	return o;
}

void refuse_policy(struct stream *s, const struct policy_request *req)
{
	_cleanup_(buf_donep) struct buf why = BUF_INIT(4096), how = BUF_INIT(8192);
	const struct verdict *v = &s->verdict;
	json_t *o;
	int r = policy_explain(req, v, &why);

	if (r == 0)
		r = policy_suggest(s->policy, req, v, &how);
	if (r < 0)
		stream_note(s, "no memory for an explanation");
	o = describe(s, "blocked_by_network_allowlist", buf_str(&why));
	set(o, "reason", str_from(policy_reason_word(v->reason)));
	if (v->rule)
		set(o, "rule", str_from(v->rule->label_inside));
	if (buf_len(&how) > 0)
		set(o, "how_to_allow", buf_str(&how));
	refuse(s, 403, o, NETLOG_REQUEST, false);
}

void refuse_body(struct stream *s, const char *error, const char *message, struct str detail)
{
	json_t *o = json_object();

	stream_note(s, "%s: %.*s", error, STR_FMT(str_prefix(detail, 256)));
	set(o, "error", str_from(error));
	set(o, "message", str_from(message));
	if (detail.n > 0)
		json_object_set_new(o, "detail", json_utf8(detail));
	s->verdict.allow = false;
	s->verdict.reason = POLICY_BODY;
	refuse(s, 403, o, NETLOG_REQUEST, false);
}

void refuse_offline(struct stream *s, const char *message)
{
	stream_note(s, "not recorded: %s", message);
	refuse(s, 403, describe(s, "not_recorded", str_from(message)), NETLOG_REQUEST, false);
}

/* End what is under way. Return the object of the answer, or NULL if none can be sent any
 * more. */
static json_t *begin_answer(struct stream *s, const char *error, const char *message)
{
	if (stream_is_over(s))
		return NULL;
	dial_cancel(s);
	upstream_detach(s);
	stream_note(s, "%s", message);
	if (stream_has_answer(s) || s->fetch || s->probe) {
		stream_reset(s, NET_RESET_UPSTREAM);
		return NULL;
	}
	return describe(s, error, str_from(message));
}

void refuse_upstream(struct stream *s, unsigned status, const char *error, const char *message)
{
	json_t *o = begin_answer(s, error, message);

	if (o)
		refuse(s, status, o, NETLOG_ERROR, s->verdict.allow);
}

static int add_text(struct buf *out, const char *key, const char *value)
{
	int r;

	if (!value)
		return 0;
	r = buf_printf(out, "    %s: ", key);
	if (r == 0)
		r = yaml_add_quoted(out, str_from(value));
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int add_words(const struct allow_rule *rule, struct buf *out)
{
	const struct {
		bool has;
		const char *line;
	} words[] = {
		{rule->no_query, "query: none"},
		{rule->schemes == POLICY_HTTPS, "schemes: [https]"},
		{rule->schemes == POLICY_HTTP, "schemes: [http]"},
		{rule->schemes == POLICY_TCP, "schemes: [tcp]"},
		{rule->schemes == POLICY_SSH, "schemes: [ssh]"},
		{rule->encoded_slash, "encoded_slash: true"},
		{!rule->websocket, "websocket: false"},
		{!rule->scrub, "scrub: false"},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++)
		if (words[i].has)
			r = buf_printf(out, "    %s\n", words[i].line);
	return r;
}

static int add_ranges(const struct allow_rule *rule, const char *address, struct buf *out)
{
	char text[CIDR_TEXT_MAX];
	int r = buf_add_str(out, STR("    allow_private: ["));

	for (size_t i = 0; r == 0 && i < rule->n_private_ranges; i++) {
		cidr_format(&rule->private_ranges[i], text);
		r = buf_printf(out, "\"%s\", ", text);
	}
	return r < 0 ? r : buf_printf(out, "\"%s\"]\n", address);
}

/* Write the entry that allows the request, with that address added. The caller knows that the entry
 * is no tunnel and has neither methods nor a graphql block. */
static int suggest_address(const struct allow_rule *rule, const char *address, struct buf *out)
{
	int r = buf_printf(out,
		"# in place of the entry that allows %s now:\nurl_prefixes:\n  - host: \"%s\"\n",
		rule->host, rule->host);

	if (r == 0)
		r = add_text(out, "path", rule->path);
	if (r == 0)
		r = add_text(out, "path_prefix", rule->path_prefix);
	if (r == 0)
		r = add_words(rule, out);
	for (size_t i = 0; r == 0 && i < rule->n_ports; i++)
		r = buf_printf(out, "%s%u%s", i ? ", " : "    ports: [", rule->ports[i],
			i + 1 == rule->n_ports ? "]\n" : "");
	return r < 0 ? r : add_ranges(rule, address, out);
}

void refuse_address(struct stream *s, const char *message, const char *address)
{
	_cleanup_(buf_donep) struct buf how = BUF_INIT(8192);
	const struct allow_rule *rule = s->verdict.rule;
	bool is_simple = rule && !rule->tunnel && !rule->has_graphql && !rule->methods;
	json_t *o = begin_answer(s, "address_refused", message);

	if (!o)
		return;
	if (address && is_simple && suggest_address(rule, address, &how) == 0)
		set(o, "how_to_allow", buf_str(&how));
	refuse(s, 403, o, NETLOG_REQUEST, false);
}
