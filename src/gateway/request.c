/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-ONE-HOST): everything that says where a request goes must agree: the
 * name in the TLS handshake, the Host field, an absolute target (the parser has compared that with
 * Host), the scheme and the port. If they disagree, the client is fronting, and the request is
 * refused (RFC 9110 7.4) and never repaired. Whether the request is allowed is not decided here. */
#include "gateway/request.h"
#include "http/valid.h"
#include "http/ws.h"

/* They are checked in this order; the first that applies counts. */
static const struct request_refusal refuse_connect = {
	.status = 403,
	.event = NET_EVENT_CONNECT,
	.code = "blocked_by_network_allowlist",
	.message = "CONNECT is refused: there is no proxy here, and none is needed. Connect to the "
		   "host directly (unset http_proxy and https_proxy).",
	.why = "CONNECT",
};
static const struct request_refusal refuse_trace = {
	.status = 405,
	.event = NET_EVENT_METHOD,
	.code = "method_refused",
	.message = "TRACE is refused.",
	.why = "TRACE",
};
static const struct request_refusal refuse_expect = {
	.status = 417,
	.event = NET_EVENT_MALFORMED,
	.code = "expectation_refused",
	.message = "The only expectation that is understood is 100-continue.",
	.why = "unknown expectation",
};
static const struct request_refusal refuse_host = {
	.status = 400,
	.event = NET_EVENT_MALFORMED,
	.code = "bad_host",
	.message = "The Host is not a canonical host name or address.",
	.why = "Host is not canonical",
};
static const struct request_refusal refuse_scheme = {
	.status = 421,
	.event = NET_EVENT_MISMATCH,
	.code = "scheme_mismatch",
	.message =
		"The scheme of the target is not the one of this connection. Connect to the host "
		"directly instead of using it as a proxy.",
	.why = "scheme",
};
static const struct request_refusal refuse_mismatch = {
	.status = 421,
	.event = NET_EVENT_MISMATCH,
	.code = "host_mismatch",
	.message = "The Host is not the name that this TLS connection was made for. Make a new "
		   "connection for each host, with its name in the handshake (SNI).",
	.why = "host",
};
static const struct request_refusal refuse_port = {
	.status = 421,
	.event = NET_EVENT_MISMATCH,
	.code = "port_mismatch",
	.message = "The port in the Host is not the one that was connected to.",
	.why = "port",
};
static const struct request_refusal refuse_upgrade = {
	.status = 501,
	.event = NET_EVENT_UPGRADE,
	.code = "upgrade_unsupported",
	.message = "Changing the protocol of a connection is not supported by this gateway, but "
		   "for WebSocket. Use plain HTTP requests.",
	.why = "upgrade",
};
static const struct request_refusal refuse_handshake = {
	.status = 400,
	.event = NET_EVENT_MALFORMED,
	.code = "bad_websocket_handshake",
	.message = "A WebSocket is asked for with GET, without a body, with Sec-WebSocket-Version: "
		   "13 and with one Sec-WebSocket-Key of 16 bytes in base64.",
	.why = "malformed WebSocket handshake",
};

/* "Upgrade: h2c" alone is an offer that a server may ignore (RFC 9110 7.8); clients send it
 * unasked. Clients depend on any other upgrade. */
static bool is_mere_offer(const struct http_head *h)
{
	return str_ieq(str_trim(http_fields_get(&h->fields, STR("Upgrade"))), STR("h2c"));
}

/* RFC 6455 4.1, as far as the parser has not checked it. */
static bool is_handshake(const struct http_head *h)
{
	static const struct str key = {"sec-websocket-key", 17},
				version = {"sec-websocket-version", 21};
	const struct http_fields *f = &h->fields;

	return str_eq(http_head_method(h), STR("GET")) && h->body == HTTP_BODY_NONE &&
	       http_fields_count(f, key) == 1 && ws_is_key(http_fields_get(f, key)) &&
	       http_fields_count(f, version) == 1 && str_eq(http_fields_get(f, version), STR("13"));
}

static bool scheme_fits(struct str scheme, bool tls)
{
	return scheme.n == 0 || str_ieq(scheme, tls ? STR("https") : STR("http"));
}

/* An HTTP/1.0 request need not name a host. */
static bool request_find_host(
	const struct http_head *h, const struct request_via *via, struct host *ret)
{
	struct str host = http_head_host(h);

	if (host.n > 0)
		return host_parse(host, ret) == 0;
	*ret = via->tls ? via->host : via->dest;
	return true;
}

static const struct request_refusal *refusal_of(
	const struct http_head *h, const struct request_via *via, struct request *ret)
{
	if (h->flags & HTTP_CONNECT)
		return &refuse_connect;
	if (h->flags & HTTP_TRACE)
		return &refuse_trace;
	if (h->flags & HTTP_EXPECT_OTHER)
		return &refuse_expect;
	if (!request_find_host(h, via, &ret->host))
		return &refuse_host;
	if (!scheme_fits(http_head_scheme(h), via->tls))
		return &refuse_scheme;
	if (via->tls && !str_eq(host_str(&ret->host), host_str(&via->host)))
		return &refuse_mismatch;
	if (h->port != 0 && h->port != via->port)
		return &refuse_port;
	if (h->flags & HTTP_UPGRADE_WS)
		return is_handshake(h) ? NULL : &refuse_handshake;
	if ((h->flags & HTTP_UPGRADE) && !is_mere_offer(h))
		return &refuse_upgrade;
	return NULL;
}

void request_judge(const struct http_head *h, const struct request_via *via, struct request *ret)
{
	const struct request_refusal *refusal;
	struct net_open *m = &ret->open;

	ret->host.n = 0;
	ret->host.text[0] = '\0';
	ret->refusal.status = 0;
	refusal = refusal_of(h, via, ret);
	*m = (struct net_open){.scheme = via->tls ? NET_HTTPS : NET_HTTP, .port = via->port};
	m->host = host_str(&ret->host);
	m->method = http_head_method(h);
	m->target = http_head_target(h);
	m->expect_continue = h->flags & HTTP_EXPECT_CONTINUE;
	m->te_trailers = h->flags & HTTP_TE_TRAILERS;
	m->http1 = h->version != HTTP_2;
	m->keep_alive =
		http_list_has(http_fields_get(&h->fields, STR("Connection")), STR("keep-alive"));
	if (h->flags & HTTP_UPGRADE_WS) {
		m->kind = NET_KIND_WEBSOCKET;
		m->body = NET_BODY_STREAM; /* the frames, when the answer is 101 */
	} else if (h->body == HTTP_BODY_LENGTH) {
		m->body = NET_BODY_LENGTH;
		m->length = h->content_length;
	} else if (h->body == HTTP_BODY_CHUNKED) {
		m->body = NET_BODY_STREAM;
	}
	if (refusal)
		ret->refusal = *refusal;
}

void request_add_fields(const struct http_head *h, struct net_fields_out *out)
{
	for (unsigned i = 0; i < h->fields.n; i++)
		if (http_fields_is_end_to_end(&h->fields, i))
			net_add_field(out, http_fields_name(&h->fields, i),
				http_fields_value(&h->fields, i));
}
