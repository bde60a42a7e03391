/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-BODY-JUDGED): filters of request bodies are chosen when policy has
 * allowed the request. Where there are any, the body is collected, judged before the request has
 * credentials or anything is dialled, and then goes on as it is or as they have made it. */
#include "broker/filters.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/stream.h"
#include "filter/filter.h"
#include "netlog/netlog.h"

#include <errno.h>

_Static_assert(
	(int)FILTERS == (int)NETLOG_TAGS, "each filter has its place in an event of the log");

static struct filter_request what(const struct stream *s, const struct policy_request *asked)
{
	return (struct filter_request){
		.policy = s->policy, .rule = s->verdict.rule, .asked = asked, .head = &s->head};
}

bool filters_choose(struct stream *s, size_t *ret_max)
{
	struct policy_request asked = decide_what(s);
	struct filter_request req = what(s, &asked);

	if (filter_select(&req, &s->filters) < 0) {
		refuse_body(s, "filter_error", "No memory to judge the request.", STR_NULL);
		return false;
	}
	*ret_max = s->filters ? filter_body_max(s->filters) : 0;
	return true;
}

/* Of the body that was. */
static const struct str checksums[] = {STR("Content-MD5"), STR("Digest"), STR("Content-Digest"),
	STR("Repr-Digest"), STR("Content-Encoding")};

static int replace_body(struct stream *s, struct filter_result *result)
{
	int r = request_body_replace(s, &result->body);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(checksums); i++)
		http_fields_remove(&s->head.fields, checksums[i]);
	http_fields_clear(&s->trailers);
	return 0;
}

static void keep_tags(struct stream *s, struct filter_result *result)
{
	for (unsigned i = 0; i < FILTERS; i++) {
		buf_done(&s->tags[i]);
		s->tags[i] = result->tag[i];
		result->tag[i] = BUF_INIT(0);
	}
}

static bool finish(struct stream *s, struct filter_result *result)
{
	keep_tags(s, result);
	if (!result->error && result->changed && replace_body(s, result) < 0) {
		refuse_upstream(s, 503, "out_of_memory", "too many large requests at once");
		return false;
	}
	if (result->error)
		refuse_body(s, result->error, result->message, buf_str(&result->detail));
	return !result->error;
}

bool filters_apply(struct stream *s)
{
	struct policy_request asked;
	struct filter_request req;
	struct filter_result result;
	bool ok;

	if (!s->filters)
		return true;
	asked = decide_what(s);
	req = what(s, &asked);
	filter_result_init(&result);
	filter_run(&req, s->filters, buf_str(&s->body), &result);
	s->broker->rest_due = true;
	ok = finish(s, &result);
	filter_result_done(&result);
	return ok;
}

void filters_refuse_large(struct stream *s)
{
	struct filter_result result;

	filter_result_init(&result);
	filter_too_large(s->filters, &result);
	(void)finish(s, &result);
	filter_result_done(&result);
}

void filters_tag(const struct stream *s, struct netlog_event *ev)
{
	for (unsigned i = 0; i < FILTERS; i++)
		ev->tags[i] = (struct netlog_tag){
			.name = str_from(filter_name(i)), .text = buf_str(&s->tags[i])};
}

void filters_forget(struct stream *s)
{
	for (unsigned i = 0; i < FILTERS; i++)
		buf_done(&s->tags[i]);
}
