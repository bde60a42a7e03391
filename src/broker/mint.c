/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a leaf costs one signature, so a room that asks for names without end could
 * keep a processor busy. Names that some rule lists have a bucket of their own, so that a flood of
 * others never delays them. */
#include "broker/state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum { UNLISTED_BURST = 50, UNLISTED_RATE = 10, LISTED_BURST = 2000, LISTED_RATE = 500 };

/* Takes a token of a bucket that starts full. */
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

/* What the leaf is for; false where it is no canonical host. An IPv6 address may come without its
 * brackets, as a destination is written. */
static bool get_subject(struct str s, struct host *ret_host, struct tls_subject *ret)
{
	char bracketed[64];
	struct str text = s;

	if (str_chr(s, ':') < s.n && s.p[0] != '[') {
		int n = snprintf(
			bracketed, sizeof(bracketed), "[%.*s]", STR_FMT(str_prefix(s, 60)));

		text = str_make(bracketed, (size_t)n);
	}
	if (host_parse(text, ret_host) < 0 || !str_eq(host_str(ret_host), text))
		return false;
	*ret = (struct tls_subject){.name = host_str(ret_host)};
	if (ret_host->kind == HOST_NAME)
		return true;
	ret->name = STR_NULL;
	if (ret_host->kind == HOST_IPV4) {
		ret->address_len = 4;
		return inet_pton(AF_INET, ret_host->text, ret->address) == 1;
	}
	ret->address_len = 16;
	snprintf(bracketed, sizeof(bracketed), "%.*s", (int)(ret_host->n - 2), ret_host->text + 1);
	return inet_pton(AF_INET6, bracketed, ret->address) == 1;
}

int mint_request(struct broker *b, const struct net_mint *m)
{
	_cleanup_(buf_donep) struct buf leaf = BUF_INIT(TLS_CERT_MAX);
	struct net_cert answer = {.request = m->request};
	struct tls_subject subject;
	struct host host;
	bool ok = get_subject(m->host, &host, &subject);

	if (ok && is_listed(b, &host))
		ok = rate_take(&b->mint_listed, loop_now(b->loop), LISTED_RATE, LISTED_BURST);
	else if (ok)
		ok = rate_take(&b->mint_unlisted, loop_now(b->loop), UNLISTED_RATE, UNLISTED_BURST);
	if (ok)
		ok = tls_ca_mint(b->ca, str_make(b->spki, sizeof(b->spki)), &subject,
			     clock_real_usec(), &leaf, NULL) == 0;
	answer.ok = ok;
	answer.leaf = buf_str(&leaf);
	return net_send_cert(&b->net, &answer) < 0 ? -EPROTO : 0;
}
