/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the room has a surrogate of the access token of a person's login; the
 * refresh token is never in the room. The first request that comes when the access token is at its
 * end waits, and others that come meanwhile wait with it. First the
 * person's file is read: if another program has renewed the login, its token is taken. Else the
 * login is renewed at its token endpoint, the requests go on, and the new tokens are written into
 * the file, since the old refresh token is often not valid any more. Both files come from the
 * supervisor (ipc/helper.h), which lets only one sandbox have them at a time.
 *
 * If an origin refuses a token (401) before its time, the same is done, but not again for a while:
 * the room can ask for such answers. What failed is tried again if a request needs it, but not at
 * once; a refresh token that was refused is never sent again. */
#include "broker/renew.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/decide.h"
#include "broker/fetch.h"
#include "broker/refuse.h"
#include "broker/renewal.h"
#include "broker/stream.h"
#include "secrets/secret_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#define RETRY_USEC (5 * USEC_PER_SEC)
#define DOUBT_USEC (600 * USEC_PER_SEC)

struct renew_stream {
	struct renewal *put;  /* whose token the request has */
	struct secret *value; /* that token */
};

static struct renew_stream *renew_of(const struct stream *s)
{
	return s->filter[CHAIN_RENEW];
}

static struct renewal *renew_find(const struct broker *b, const struct masked_secret *secret)
{
	struct renewal *g;

	LL_FOREACH (b->renewals, g)
		if (renewal_secret(g) == secret)
			break;
	return g;
}

/* --- what waits --- */

static void renew_refuse(struct stream *s, const void *token)
{
	const struct renewal *g = token;

	/* Clients try again after a 502, and a person has to act first. */
	refuse_upstream(s, g->hopeless ? 403 : 502, "login_renewal_failed", g->error);
}

void renew_wake(struct renewal *g, bool have)
{
	requests_wake(g->broker, g, have ? NULL : renew_refuse);
}

/* --- what the others call --- */

int renew_add(struct broker *b, struct login *login, size_t member, unsigned number,
	uint64_t expires_msec)
{
	struct renewal *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	*g = (struct renewal){.broker = b,
		.login = login,
		.member = member,
		.number = number,
		.expires_msec = expires_msec,
		.fresh = -1,
		.fetch.done = renewal_fetched};
	secret_set_may_renew(b->secrets, member);
	LL_PREPEND(b->renewals, g);
	return 0;
}

void renew_free(struct broker *b)
{
	while (b->renewals) {
		struct renewal *g = b->renewals;

		b->renewals = g->next;
		fetch_done(&g->fetch);
		loop_timer_clear(&g->again);
		renewal_close(g);
		login_free(g->login);
		secret_free(g->doubted);
		secret_free(g->seen);
		secret_free(g->last);
		free(g);
	}
}

void renew_judge_again(struct broker *b)
{
	struct renewal *g;

	LL_FOREACH (b->renewals, g)
		fetch_judge_again(&g->fetch);
}

void renew_expire(struct broker *b)
{
	struct renewal *g;

	LL_FOREACH (b->renewals, g)
		if (renewal_secret(g)->known && renewal_is_over(g->expires_msec))
			(void)!secret_set_renew(b->secrets, g->member, NULL, NULL);
}

bool renew_holds(struct broker *b)
{
	b->leaving = renewals_are_busy(b);
	return b->leaving;
}

static void renew_wait(struct stream *s, struct renewal *g)
{
	request_wait(s, g);
	if (g->state == RENEW_IDLE && g->failed_at &&
		clock_mono_usec() - g->failed_at < RETRY_USEC) {
		renew_refuse(s, g);
		return;
	}
	renewal_start(g);
}

int renew_take(
	struct stream *s, const struct masked_secret *unknown, const struct masked_secret *put)
{
	struct renewal *wanted = unknown ? renew_find(s->broker, unknown) : NULL;

	if (!wanted && !put)
		return 0;
	if (wanted) {
		renew_wait(s, wanted);
		return 1;
	}
	if (!renew_of(s))
		s->filter[CHAIN_RENEW] = calloc(1, sizeof(struct renew_stream));
	if (!renew_of(s))
		return -ENOMEM;
	secret_free(renew_of(s)->value);
	renew_of(s)->put = renew_find(s->broker, put);
	renew_of(s)->value = renewal_copy(put->value);
	return renew_of(s)->value ? 0 : -ENOMEM;
}

/* Doubt a token that its origin refuses; the next request that has it finds out. */
static bool renew_response_head(struct stream *s, struct http_head *h)
{
	const struct renew_stream *c = renew_of(s);
	struct renewal *g = c && h->status == 401 ? c->put : NULL;
	const struct masked_secret *secret = g ? renewal_secret(g) : NULL;
	uint64_t now = clock_mono_usec();

	if (!g || !secret->known || !renewal_is_same(secret->value, c->value) ||
		(g->doubted_at && now - g->doubted_at < DOUBT_USEC))
		return true;
	g->doubted_at = now;
	secret_free(g->doubted);
	g->doubted = renewal_copy(secret->value);
	(void)!secret_set_renew(s->broker->secrets, g->member, NULL, NULL);
	return true;
}

static void renew_stream_free(struct stream *s)
{
	secret_free(renew_of(s)->value);
	free(renew_of(s));
}

const struct filter filter_renew = {
	.response_head = renew_response_head,
	.free = renew_stream_free,
};
