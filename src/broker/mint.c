/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a leaf costs one signature, so a room that asks for names without end could
 * keep a processor busy; the rate is limited. Names that some rule lists have a bucket of their
 * own, so that a flood of others never delays them.
 *
 * The answer also says which protocol to speak with the client: the one that the origin speaks, so
 * that neither side gets what the other cannot carry. If the origin has to be asked, the answer
 * comes later. A client that offers only HTTP/2, or does not offer it, gets the answer at once. */
#include "broker/mint.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/origin.h"
#include "http/msg.h"
#include "ipc/netchan.h"
#include "loop/loop.h"
#include "policy/allowlist.h"
#include "policy/decide.h"
#include "tls/ca.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

/* Questions that may wait at once; further ones get HTTP/1.1. */
enum { WAITING_MAX = 64 };
enum { UNLISTED_BURST = 50, UNLISTED_RATE = 10, LISTED_BURST = 2000, LISTED_RATE = 500 };

/* Take a token from a bucket that starts full. */
static bool rate_take(struct rate *r, uint64_t now, double per_sec, double burst)
{
	r->tokens = r->at ? r->tokens + (double)(now - r->at) / USEC_PER_SEC * per_sec : burst;
	r->tokens = MIN(r->tokens, burst);
	r->at = now;
	if (r->tokens < 1)
		return false;
	r->tokens -= 1;
	return true;
}

static bool is_listed(const struct broker *b, const struct host *host)
{
	for (size_t i = 0; i < allowlist_count(b->policy); i++)
		if (host_pattern_matches(str_from(allowlist_rule(b->policy, i)->host), host))
			return true;
	return false;
}

/* Return false if s is not a canonical host. An IPv6 address may come without brackets, as
 * destinations are written. */
static bool get_host(struct str s, struct host *ret)
{
	char bracketed[64];
	struct str text = s;

	if (str_chr(s, ':') < s.n && s.p[0] != '[') {
		int n = snprintf(
			bracketed, sizeof(bracketed), "[%.*s]", STR_FMT(str_prefix(s, 60)));

		text = str_make(bracketed, (size_t)n);
	}
	return host_parse(text, ret) == 0 && str_eq(host_str(ret), text);
}

static bool get_subject(const struct host *host, struct tls_subject *ret)
{
	struct cidr c;

	*ret = (struct tls_subject){.name = host_str(host)};
	if (host->kind == HOST_NAME)
		return true;
	if (cidr_parse(host_bare(host), &c) < 0)
		return false;
	ret->name = STR_NULL;
	ret->address_len = host->kind == HOST_IPV4 ? 4 : sizeof(c.addr);
	memcpy(ret->address, c.addr + sizeof(c.addr) - ret->address_len, ret->address_len);
	return true;
}

/* A question that waits for an origin. */
struct mint {
	struct mint *prev, *next;
	struct broker *broker;
	struct origin_query query;
	uint32_t request;
	struct host host;
};

static int mint_answer(
	struct broker *b, uint32_t request, const struct host *host, enum net_mode mode)
{
	_cleanup_(buf_donep) struct buf leaf = BUF_INIT(TLS_CERT_MAX);
	struct net_cert m = {.request = request, .mode = mode};
	struct tls_subject subject;

	m.ok = host && mode == NET_MODE_TUNNEL;
	if (host && !m.ok)
		m.ok = get_subject(host, &subject) &&
		       tls_ca_mint(b->ca, str_make(b->minting.spki, sizeof(b->minting.spki)),
			       &subject, clock_real_usec(), &leaf, NULL) == 0;
	m.leaf = buf_str(&leaf);
	return net_send_cert(&b->net, &m) < 0 ? -EPROTO : 0;
}

static void mint_free(struct mint *w)
{
	DL_DELETE(w->broker->minting.waiting, w);
	w->broker->minting.n--;
	free(w);
}

static void on_protocol(struct origin_query *q, bool h2)
{
	struct mint *w = container_of(q, struct mint, query);
	struct broker *b = w->broker;

	if (mint_answer(b, w->request, &w->host, h2 ? NET_MODE_H2 : NET_MODE_HTTP1) < 0)
		broker_fail(b);
	broker_flush_later(b);
	mint_free(w);
}

void mints_settle(struct broker *b)
{
	while (b->minting.waiting) {
		struct mint *w = b->minting.waiting;

		origin_forget(&w->query);
		on_protocol(&w->query, false);
	}
}

void mints_free(struct broker *b)
{
	while (b->minting.waiting) {
		origin_forget(&b->minting.waiting->query);
		mint_free(b->minting.waiting);
	}
}

/* Ask the origin. Return 1 and the mode if it is known already, else 0; on_protocol() then
 * answers. */
static int mint_ask(
	struct broker *b, const struct net_mint *m, const struct host *host, enum net_mode *ret)
{
	struct mint *w = b->minting.n < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
	bool h2 = false;
	int r = 1;

	if (w) {
		w->broker = b;
		w->request = m->request;
		w->host = *host;
		w->query.done = on_protocol;
		DL_APPEND(b->minting.waiting, w);
		b->minting.n++;
		r = origin_protocol(b, host, m->port, &w->query, &h2);
		if (r != 0)
			mint_free(w);
	}
	*ret = h2 ? NET_MODE_H2 : NET_MODE_HTTP1;
	return r;
}

static bool may_mint(struct broker *b, const struct host *host)
{
	if (b->offline || is_listed(b, host))
		return rate_take(&b->minting.listed, loop_now(b->loop), LISTED_RATE, LISTED_BURST);
	return rate_take(&b->minting.unlisted, loop_now(b->loop), UNLISTED_RATE, UNLISTED_BURST);
}

/* Return whether policy lets TLS to this host pass undecrypted. Policy is asked again when the
 * tunnel opens. */
static bool is_tunnel(const struct broker *b, const struct host *host, uint16_t port)
{
	struct policy_request req = {
		.scheme = POLICY_HTTPS, .host = host_str(host), .port = port, .tunnel = true};
	struct verdict v;

	return host->kind == HOST_NAME && policy_decide(b->policy, &req, &v) == 0 && v.allow;
}

int mint_request(struct broker *b, const struct net_mint *m)
{
	enum net_mode mode = m->h2 && !m->http1 ? NET_MODE_H2 : NET_MODE_HTTP1;
	struct host host;

	if (!get_host(m->host, &host) || !may_mint(b, &host))
		return mint_answer(b, m->request, NULL, mode);
	if (is_tunnel(b, &host, m->port))
		return mint_answer(b, m->request, &host, NET_MODE_TUNNEL);
	if (b->offline) /* a client that offers HTTP/2 can read any recording */
		mode = m->h2 ? NET_MODE_H2 : NET_MODE_HTTP1;
	else if (m->h2 && m->http1 && mint_ask(b, m, &host, &mode) == 0)
		return 0;
	return mint_answer(b, m->request, &host, mode);
}
