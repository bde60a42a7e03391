/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the table of filters. Nothing here knows what a filter does. */
#include "broker/chain.h"
#include "broker/response.h"
#include "broker/stream.h"

static const struct filter *const chain[CHAIN_FILTERS] = {
	[CHAIN_WEBSOCKET] = &filter_websocket,
	[CHAIN_AWS] = &filter_aws,
	[CHAIN_BODIES] = &filter_bodies,
	[CHAIN_CODINGS] = &filter_codings,
	[CHAIN_SECRETS] = &filter_secrets,
	[CHAIN_GITHUB] = &filter_github,
	[CHAIN_RENEW] = &filter_renew,
	[CHAIN_SCRUB] = &filter_scrub,
};

int chain_judge_head(struct stream *s, size_t *ret_whole)
{
	size_t whole = SIZE_MAX;

	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (chain[i]->judge_head && chain[i]->judge_head(s, &whole) < 0)
			return -1;
	*ret_whole = whole;
	return 0;
}

bool chain_judge_large(struct stream *s)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++) {
		if (!s->filter[i] || !chain[i]->judge_large)
			continue;
		chain[i]->judge_large(s);
		return true;
	}
	return false;
}

int chain_judge_body(struct stream *s)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (chain[i]->judge_body && chain[i]->judge_body(s) < 0)
			return -1;
	return 0;
}

int chain_prepare(struct stream *s)
{
	int r = 0;

	for (unsigned i = 0; i < CHAIN_FILTERS && r == 0; i++)
		if (chain[i]->prepare)
			r = chain[i]->prepare(s);
	return r;
}

int chain_sign(struct stream *s)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (chain[i]->sign && chain[i]->sign(s) < 0)
			return -1;
	return 0;
}

int chain_request_data(struct stream *s, unsigned from, struct str bytes, struct cloche_err *err)
{
	for (unsigned i = from; i < CHAIN_FILTERS; i++)
		if (s->filter[i] && chain[i]->request_data)
			return chain[i]->request_data(s, bytes, err);
	return buf_add_str(&s->body, bytes);
}

int chain_request_end(struct stream *s, unsigned from, struct cloche_err *err)
{
	for (unsigned i = from; i < CHAIN_FILTERS; i++)
		if (s->filter[i] && chain[i]->request_end)
			return chain[i]->request_end(s, err);
	return 0;
}

bool chain_response_head(struct stream *s, struct http_head *h)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (chain[i]->response_head && !chain[i]->response_head(s, h))
			return false;
	return true;
}

void chain_response_fields(struct stream *s, struct http_fields *f)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (chain[i]->response_fields)
			chain[i]->response_fields(s, f);
}

bool chain_response_data(struct stream *s, unsigned from, struct str bytes)
{
	for (unsigned i = from; i < CHAIN_FILTERS; i++) {
		if (i == CHAIN_COUNTED)
			response_count(s, bytes.n);
		if (s->filter[i] && chain[i]->response_data)
			return chain[i]->response_data(s, bytes);
	}
	return response_send(s, bytes);
}

bool chain_response_end(struct stream *s, unsigned from, struct http_fields *trailers)
{
	for (unsigned i = from; i < CHAIN_FILTERS; i++)
		if (s->filter[i] && chain[i]->response_end)
			return chain[i]->response_end(s, trailers);
	return response_close(s, trailers);
}

bool chain_may_wait(const struct stream *s)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (s->filter[i] && chain[i]->response_waits)
			return true;
	return false;
}

const struct filter *chain_waiting(const struct stream *s)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (s->filter[i] && chain[i]->response_waits && chain[i]->response_waits(s))
			return chain[i];
	return NULL;
}

void chain_log(const struct stream *s, struct netlog_event *ev)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (s->filter[i] && chain[i]->log)
			chain[i]->log(s, ev);
}

bool chain_stands(const struct stream *s, const struct verdict *v)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++)
		if (chain[i]->stands && !chain[i]->stands(s, v))
			return false;
	return true;
}

void chain_free(struct stream *s)
{
	for (unsigned i = 0; i < CHAIN_FILTERS; i++) {
		if (!s->filter[i])
			continue;
		chain[i]->free(s);
		s->filter[i] = NULL;
	}
}
