/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-SECRET-INSIDE): values of secrets are replaced by their surrogates in
 * every header and in every body, even in a body that says that it is encoded, because any origin
 * can say so. Answers that policy exempts (scrub: false) stay as they are.
 *
 * Only bytes that may be the beginning of a value are held back, and nothing at the end of a
 * message: the client may have to answer it before the next one comes, and no value continues into
 * the next message. */
#include "broker/scrubbing.h"
#include "broker/broker_internal.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "http/body.h"
#include "secrets/scrub.h"

#include <stdlib.h>

struct scrubbing {
	struct scrub *scrub;
	struct http_messages messages;
};

static struct scrubbing *scrubbing_of(const struct stream *s)
{
	return s->filter[CHAIN_SCRUB];
}

bool scrubbing_applies(const struct stream *s)
{
	return s->broker->scrubber && (!s->verdict.rule || s->verdict.rule->scrub);
}

static bool scrubbing_response_head(struct stream *s, struct http_head *h)
{
	struct scrubbing *c;

	if (!scrubbing_applies(s) || h->body == HTTP_BODY_NONE)
		return true;
	c = calloc(1, sizeof(*c));
	s->filter[CHAIN_SCRUB] = c;
	if (c)
		c->scrub = scrub_new(s->broker->scrubber);
	if (!c || !c->scrub) {
		broker_fail(s->broker);
		return false;
	}
	c->messages = http_messages(&h->fields);
	return true;
}

int scrubbing_follow(struct stream *s, struct scrubber *to)
{
	struct scrubbing *c = scrubbing_of(s);

	return c && c->scrub ? scrub_follow(c->scrub, to) : 0;
}

/* Scrub names as well, because the origin chooses them freely. */
size_t scrubbing_fields(const struct broker *b, struct http_fields *f)
{
	size_t found = 0;

	for (unsigned i = 0; i < f->n; i++) {
		const struct http_field *v = &f->v[i];

		found += scrub_whole(b->scrubber, f->text.mem + v->name, v->name_len);
		found += scrub_whole(b->scrubber, f->text.mem + v->value, v->value_len);
	}
	return found;
}

static void scrubbing_response_fields(struct stream *s, struct http_fields *f)
{
	if (scrubbing_applies(s))
		s->scrubbed += (unsigned)scrubbing_fields(s->broker, f);
}

static bool scrubbing_response_data(struct stream *s, struct str bytes)
{
	struct scrubbing *c = scrubbing_of(s);
	bool whole = http_messages_end(&c->messages, bytes);
	struct str first, second;

	scrubbing_feed(s, bytes, &first, &second);
	return chain_response_data(s, CHAIN_SCRUB + 1, first) &&
	       chain_response_data(s, CHAIN_SCRUB + 1, second) &&
	       (!whole || chain_response_data(s, CHAIN_SCRUB + 1, scrub_end(c->scrub)));
}

static bool scrubbing_response_end(struct stream *s, struct http_fields *trailers)
{
	return chain_response_data(s, CHAIN_SCRUB + 1, scrub_end(scrubbing_of(s)->scrub)) &&
	       chain_response_end(s, CHAIN_SCRUB + 1, trailers);
}

void scrubbing_whole(struct stream *s, char *text, size_t n)
{
	if (scrubbing_of(s))
		s->scrubbed += (unsigned)scrub_whole(s->broker->scrubber, text, n);
}

void scrubbing_feed(
	struct stream *s, struct str piece, struct str *ret_first, struct str *ret_second)
{
	struct scrubbing *c = scrubbing_of(s);

	*ret_first = piece;
	*ret_second = STR_NULL;
	if (c)
		scrub_feed(c->scrub, (char *)(uintptr_t)piece.p, piece.n, ret_first, ret_second);
}

struct str scrubbing_end(struct stream *s)
{
	struct scrubbing *c = scrubbing_of(s);

	return c ? scrub_end(c->scrub) : STR_NULL;
}

static bool scrubbing_stands(const struct stream *s, const struct verdict *v)
{
	return !s->broker->scrubber || s->verdict.rule->scrub || !v->rule->scrub;
}

static void scrubbing_log(const struct stream *s, struct netlog_event *ev)
{
	const struct scrubbing *c = scrubbing_of(s);

	if (c->scrub)
		ev->scrubbed += (unsigned)scrub_hits(c->scrub);
}

static void scrubbing_free(struct stream *s)
{
	struct scrubbing *c = scrubbing_of(s);

	scrub_free(c->scrub);
	free(c);
}

const struct filter filter_scrub = {
	.response_head = scrubbing_response_head,
	.response_fields = scrubbing_response_fields,
	.response_data = scrubbing_response_data,
	.response_end = scrubbing_response_end,
	.stands = scrubbing_stands,
	.log = scrubbing_log,
	.free = scrubbing_free,
};
