/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: an allowed request is logged twice. The decision is written before anything
 * is dialled (JSON Lines only); the decisions of requests that came together are written together,
 * and then all of these requests go. The line that people read is written when the request has
 * ended, with status, bytes and time. It is written at the end of the loop's iteration, together
 * with the other lines of that iteration and before the gateway hears that the request has ended. A
 * log that cannot be written stops new requests: those under way end as usual, but the next one is
 * refused because its decision cannot be written. */
#include "broker/log.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/decide.h"
#include "broker/ssh.h"
#include "broker/stream.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "ipc/sshleg.h"
#include "netlog/netlog.h"
#include "policy/decide.h"
#include "secrets/scrub.h"

#include <stdio.h>

/* scheme://[user@]host[:port]target, valid until the next call. */
static struct str log_url(struct broker *b, enum net_scheme scheme, struct str user,
	struct str host, uint16_t port, struct str target)
{
	uint16_t usual = policy_scheme_port(decide_scheme(scheme));
	size_t at;
	int r;

	buf_clear(&b->lines.url);
	r = buf_add_str(&b->lines.url, str_from(policy_scheme_word(decide_scheme(scheme))));
	if (r == 0)
		r = buf_add_str(&b->lines.url, STR("://"));
	if (r == 0 && user.n > 0)
		r = buf_add_str(&b->lines.url, user);
	if (r == 0 && user.n > 0)
		r = buf_add_char(&b->lines.url, '@');
	if (r == 0)
		r = buf_add_str(&b->lines.url, host);
	if (r == 0 && port && port != usual)
		r = buf_printf(&b->lines.url, ":%u", port);
	/* A malformed target must not look like a part of the host. */
	if (r == 0 && target.n > 0 && target.p[0] != '/')
		r = buf_add_char(&b->lines.url, ' ');
	at = buf_len(&b->lines.url);
	if (r == 0)
		r = buf_add_str(&b->lines.url, target);
	if (r < 0)
		return STR("-");
	/* The log must show the host, so only the target after it is scrubbed. */
	if (b->lines.scrubber)
		(void)scrub_whole(b->lines.scrubber, buf_data(&b->lines.url) + at,
			buf_len(&b->lines.url) - at);
	return buf_str(&b->lines.url);
}

static struct str tunnel_url(struct stream *s)
{
	struct buf *url = &s->broker->lines.url;

	buf_clear(url);
	return buf_printf(url, "%s:%u", s->host.text, s->port) < 0 ? STR("-") : buf_str(url);
}

static void add_owner(const struct broker *b, struct netlog_event *ev)
{
	if (!b->lines.owner)
		return;
	ev->pid = b->lines.owner->pid;
	ev->process = b->lines.owner->name;
	ev->program = b->lines.owner->program;
}

/* A tunnel of which nobody knows what is in it. */
static bool is_opaque(const struct stream *s)
{
	return s->kind == NET_KIND_TUNNEL && s->scheme != NET_SSH;
}

static struct netlog_event request_event(struct stream *s, enum netlog_kind kind)
{
	struct str user = s->scheme == NET_SSH ? ssh_field(s, STR(SSHLEG_FIELD_USER)) : STR_NULL;
	struct netlog_event ev = {
		.kind = kind,
		.method = http_head_method(&s->head),
		.url = is_opaque(s) ? tunnel_url(s)
				    : log_url(s->broker, s->scheme, user, host_str(&s->host),
					      s->port, stream_target(s)),
		.host = host_str(&s->host),
		.port = s->port,
		.rule = s->verdict.rule ? str_from(s->verdict.rule->label) : STR_NULL,
	};

	if (!s->verdict.allow)
		add_owner(s->broker, &ev);
	return ev;
}

int log_intent(struct stream *s)
{
	struct broker *b = s->broker;
	struct netlog_event ev;
	char text[64];
	int n, r;

	b->lines.unlogged += netlog_take_lost(b->lines.log);
	if (b->lines.unlogged > 0) {
		n = snprintf(
			text, sizeof(text), "%u events could not be logged", b->lines.unlogged);
		r = log_warning(b, str_make(text, (size_t)n));
		if (r < 0)
			return r;
		b->lines.unlogged = 0;
	}
	ev = request_event(s, NETLOG_INTENT);
	return netlog_write_later(b->lines.log, &ev);
}

static void write_later(struct stream *s, const struct netlog_event *ev)
{
	/* It has already happened, so only count a failure. The next request finds the log
	 * unwritable before it starts. */
	if (netlog_write_later(s->broker->lines.log, ev) < 0)
		s->broker->lines.unlogged++;
	broker_flush_later(s->broker);
}

/* Policy is not asked if a recording answers. */
static struct str reason_of(const struct stream *s)
{
	return str_from(s->broker->offline ? "recording" : policy_reason_word(s->verdict.reason));
}

void log_websocket(struct stream *s)
{
	struct netlog_event ev = request_event(s, NETLOG_REQUEST);

	ev.allowed = true;
	ev.status = s->status;
	ev.reason = reason_of(s);
	ev.masked = s->masked;
	ev.dropped = s->dropped;
	ev.collapsed = s->collapsed;
	ev.scrubbed = s->scrubbed;
	chain_log(s, &ev);
	s->masked = s->dropped = s->collapsed = s->scrubbed = 0; /* already logged */
	write_later(s, &ev);
}

/* Return the kind of line for s, if the kind of stream decides that. */
static enum netlog_kind kind_of(const struct stream *s, enum netlog_kind kind, bool allowed)
{
	if (s->state == STREAM_SWITCHED)
		return NETLOG_WEBSOCKET;
	if (is_opaque(s) && kind == NETLOG_REQUEST) {
		if (!allowed || !stream_has_answer(s))
			return NETLOG_CONNECT;
		return s->scheme == NET_TCP ? NETLOG_TCP : NETLOG_TUNNEL;
	}
	return kind;
}

void log_result(struct stream *s, enum netlog_kind kind, bool allowed)
{
	struct netlog_event ev;

	if (s->logged)
		return;
	s->logged = true;
	ev = request_event(s, kind_of(s, kind, allowed));
	ev.allowed = allowed;
	ev.status = s->status;
	ev.reason = reason_of(s);
	ev.note = str_from(s->note);
	ev.has_transfer = true;
	ev.duration_usec = clock_mono_usec() - s->started;
	ev.bytes_in = s->bytes_in;
	ev.bytes_out = s->bytes_out;
	ev.masked = s->went_out ? s->masked : 0;
	ev.dropped = s->dropped;
	ev.collapsed = s->collapsed;
	ev.scrubbed = s->scrubbed;
	chain_log(s, &ev);
	write_later(s, &ev);
}

int log_stripped(struct stream *s, struct str header)
{
	struct netlog_event ev = request_event(s, NETLOG_STRIPPED);

	ev.name = header;
	return netlog_write(s->broker->lines.log, &ev);
}

int log_collapsed(struct stream *s, struct str header, unsigned count)
{
	struct netlog_event ev = request_event(s, NETLOG_COLLAPSED);

	ev.name = header;
	ev.count = count;
	return netlog_write(s->broker->lines.log, &ev);
}

int log_warning(struct broker *b, struct str text)
{
	struct netlog_event ev = {.kind = NETLOG_WARNING, .note = text};

	return netlog_write(b->lines.log, &ev);
}

int log_withheld(struct broker *b, struct str text)
{
	struct netlog_event ev = {.kind = NETLOG_WARNING, .reason = STR("secret"), .note = text};

	return netlog_write(b->lines.log, &ev);
}

static int write_text(struct broker *b, struct netlog_event *ev, const char *before, struct str a,
	const char *between, struct str c)
{
	char note[512];
	int n = snprintf(note, sizeof(note), "%s%.*s%s%.*s", before, STR_FMT(str_prefix(a, 160)),
		between, STR_FMT(str_prefix(c, 160)));

	ev->note = str_make(note, MIN((size_t)MAX(n, 0), sizeof(note) - 1));
	add_owner(b, ev);
	return netlog_write(b->lines.log, ev);
}

/* The destination is "name (address:port)" or "address:port"; the line adds the port. */
static struct str destination_host(const struct net_event *e)
{
	struct str host = str_prefix(e->a, str_chr(e->a, ' '));
	char port[8];
	int n = snprintf(port, sizeof(port), ":%u", e->port);

	if (host.n == e->a.n && str_ends(host, str_make(port, (size_t)n)))
		host.n -= (size_t)n;
	return host;
}

/* A connection that never became a request. */
static int connection_event(struct broker *b, const struct net_event *e, const char *what)
{
	struct netlog_event ev = {.kind = NETLOG_CONNECT,
		.host = destination_host(e),
		.port = e->port,
		.reason = e->kind == NET_EVENT_TCP ? STR("tcp") : STR_NULL,
		.status = e->status};

	return write_text(b, &ev, what, e->b, "", STR_NULL);
}

/* A request that the gateway refused by itself. */
static int refused_event(struct broker *b, const struct net_event *e, struct str host,
	const char *before, struct str a, const char *between, struct str c)
{
	struct netlog_event ev = {.kind = NETLOG_REQUEST,
		.method = e->method.n ? e->method : STR("-"),
		.url = log_url(
			b, e->scheme, STR_NULL, host.n ? host : STR("-"), e->port, e->target),
		.host = host,
		.port = e->port,
		.status = e->status};

	return write_text(b, &ev, before, a, between, c);
}

/* A request for another host, port or scheme than those of its connection. */
static int mismatch_event(struct broker *b, const struct net_event *e)
{
	const char *before = "host mismatch: header=";
	struct str url = e->a;
	char text[NET_MAX_HOST + 8];
	int n;

	if (str_eq(e->c, STR("scheme"))) {
		before = "scheme mismatch: target=";
		url = e->scheme == NET_HTTPS ? STR("https") : STR("http");
	} else if (str_eq(e->c, STR("port"))) {
		before = "port mismatch: header=";
		n = snprintf(text, sizeof(text), "%.*s:%u", STR_FMT(str_prefix(url, NET_MAX_HOST)),
			e->port);
		url = str_make(text, (size_t)n);
	}
	return refused_event(b, e, e->a, before, e->b, ", url=", url);
}

static int write_event(struct broker *b, const struct net_event *e)
{
	struct netlog_event ev = {.kind = NETLOG_DNS, .name = e->a, .type = e->b, .answer = e->c};

	switch (e->kind) {
	case NET_EVENT_DNS:
		return netlog_write(b->lines.log, &ev);
	case NET_EVENT_MALFORMED:
		return refused_event(b, e, e->a, "malformed: ", e->b, "", STR_NULL);
	case NET_EVENT_MISMATCH:
		return mismatch_event(b, e);
	case NET_EVENT_METHOD:
		return refused_event(b, e, e->a, "method not allowed: ", e->b, "", STR_NULL);
	case NET_EVENT_UPGRADE:
		return refused_event(
			b, e, e->a, "upgrade to ", e->b, " is not supported", STR_NULL);
	case NET_EVENT_CONNECT:
		ev = (struct netlog_event){
			.kind = NETLOG_CONNECT, .host = e->b, .port = e->port, .status = e->status};
		return write_text(b, &ev, "tunneling not allowed: ", e->a, "", STR_NULL);
	case NET_EVENT_NOT_HTTP:
	case NET_EVENT_TCP:
		return connection_event(b, e, "not HTTP: ");
	case NET_EVENT_TLS:
		return connection_event(b, e, "TLS: ");
	case NET_EVENT_LIMIT:
	case NET_EVENT_KIND_END:
		break;
	}
	ev = (struct netlog_event){.kind = NETLOG_WARNING};
	return write_text(b, &ev, "limit reached: ", e->a, " ", e->b);
}

void log_gateway_event(struct broker *b, const struct net_event *e)
{
	if (write_event(b, e) < 0)
		b->lines.unlogged++;
}
