/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-BODY-JUDGED): filters of request bodies are chosen after policy has
 * allowed the request. If there are any, the body is collected, and it is judged before
 * credentials are added or anything is dialled. Then it goes on unchanged, or as the filters
 * have changed it. */
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/decide.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/stream.h"
#include "filter/filter.h"
#include "netlog/netlog.h"

_Static_assert(
	(int)FILTERS == (int)NETLOG_TAGS, "each filter has its place in an event of the log");

struct bodies {
	unsigned set; /* filters that judge the body, see filter/filter.h */
	struct buf tags[FILTERS];
	struct filter_relies relies;
};

static struct bodies *bodies_of(const struct stream *s)
{
	return s->filter[CHAIN_BODIES];
}

static struct filter_request bodies_what(const struct stream *s, const struct policy_request *asked)
{
	return (struct filter_request){
		.policy = s->policy, .rule = s->verdict.rule, .asked = asked, .head = &s->head};
}

static int bodies_judge_head(struct stream *s, size_t *whole)
{
	struct policy_request asked = decide_what(s);
	struct filter_request req = bodies_what(s, &asked);
	struct bodies *c;
	unsigned set = 0;
	int r = filter_select(&req, &set);

	if (r == 0 && set == 0)
		return 0;
	c = r == 0 ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		refuse_body(s, "filter_error", "No memory to judge the request.", STR_NULL);
		return -1;
	}
	c->set = set;
	s->filter[CHAIN_BODIES] = c;
	*whole = MIN(*whole, filter_body_max(set));
	return 0;
}

/* Fields that describe the old body. */
static const struct str checksums[] = {STR("Content-MD5"), STR("Digest"), STR("Content-Digest"),
	STR("Repr-Digest"), STR("Content-Encoding")};

static int bodies_replace(struct stream *s, struct filter_result *result)
{
	int r = request_body_replace(s, &result->body);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(checksums); i++)
		http_fields_remove(&s->head.fields, checksums[i]);
	http_fields_clear(&s->trailers);
	return 0;
}

static void bodies_keep(struct bodies *c, struct filter_result *result)
{
	for (unsigned i = 0; i < FILTERS; i++) {
		buf_done(&c->tags[i]);
		c->tags[i] = result->tag[i];
		result->tag[i] = BUF_INIT(0);
	}
	buf_done(&c->relies.list);
	c->relies = result->relies;
	result->relies.list = BUF_INIT(0);
}

/* Apply the result of the filters. Return 0, or -1 if s was refused. */
static int bodies_finish(struct stream *s, struct filter_result *result)
{
	bodies_keep(bodies_of(s), result);
	if (!result->error && result->changed && bodies_replace(s, result) < 0) {
		refuse_upstream(s, 503, "out_of_memory", "too many large requests at once");
		return -1;
	}
	if (result->error)
		refuse_body(s, result->error, result->message, buf_str(&result->detail));
	return result->error ? -1 : 0;
}

static int bodies_judge_body(struct stream *s)
{
	struct policy_request asked;
	struct filter_request req;
	struct filter_result result;
	int r;

	if (!bodies_of(s))
		return 0;
	asked = decide_what(s);
	req = bodies_what(s, &asked);
	filter_result_init(&result);
	filter_run(&req, bodies_of(s)->set, buf_str(&s->body), &result);
	s->broker->rest_due = true;
	r = bodies_finish(s, &result);
	filter_result_done(&result);
	return r;
}

static void bodies_judge_large(struct stream *s)
{
	struct filter_result result;

	filter_result_init(&result);
	filter_too_large(bodies_of(s)->set, &result);
	(void)bodies_finish(s, &result);
	filter_result_done(&result);
}

/* A body that is still collected will be judged by the new policy, if by the same filters. */
static bool bodies_stands(const struct stream *s, const struct verdict *v)
{
	const struct bodies *c = bodies_of(s);
	struct policy_request asked = decide_what(s);
	struct filter_request was = bodies_what(s, &asked), now = was;
	unsigned set = 0;

	now.policy = s->broker->policy;
	now.rule = v->rule;
	if (filter_select(&now, &set) < 0 || set != (c ? c->set : 0))
		return false;
	return !c || s->state == STREAM_COLLECTING ||
	       filter_stands(&was, &now, set, &c->relies) > 0;
}

static void bodies_log(const struct stream *s, struct netlog_event *ev)
{
	for (unsigned i = 0; i < FILTERS; i++)
		ev->tags[i] = (struct netlog_tag){
			.name = str_from(filter_name(i)), .text = buf_str(&bodies_of(s)->tags[i])};
}

static void bodies_free(struct stream *s)
{
	for (unsigned i = 0; i < FILTERS; i++)
		buf_done(&bodies_of(s)->tags[i]);
	buf_done(&bodies_of(s)->relies.list);
	free(bodies_of(s));
}

const struct filter filter_bodies = {
	.judge_head = bodies_judge_head,
	.judge_large = bodies_judge_large,
	.judge_body = bodies_judge_body,
	.stands = bodies_stands,
	.log = bodies_log,
	.free = bodies_free,
};
