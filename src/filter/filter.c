/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a set of filters is chosen by the head, before the body has come. The body
 * is decoded once for all of them. If it was coded, the decoded body goes on, so that the origin
 * reads what was judged, whatever its decoder makes of bytes after the end of the coded data. */
#include "filter/filter.h"

#include "filter/filter_internal.h"
#include "filter/tools.h"
#include "http/coding.h"

#include <errno.h>
#include <stdio.h>

enum { DECODE_STEP = 64 * 1024 };

static const struct body_filter *const filters[FILTERS] = {
	[FILTER_PLACE_GRAPHQL] = &filter_graphql,
	[FILTER_PLACE_TOOLS] = &filter_tools,
};

const char *filter_name(enum filter_place place)
{
	return filters[place]->name;
}

void filter_result_init(struct filter_result *r)
{
	*r = (struct filter_result){
		.detail = {.max = FILTER_DETAIL_MAX}, .body = {.max = TOOLS_BODY_MAX * 2}};
	r->relies.list = BUF_INIT(TOOLS_RELIES_MAX);
	for (unsigned i = 0; i < FILTERS; i++)
		r->tag[i] = BUF_INIT(FILTER_TAG_MAX + 32);
}

void filter_result_done(struct filter_result *r)
{
	buf_done(&r->detail);
	buf_done(&r->body);
	buf_done(&r->relies.list);
	for (unsigned i = 0; i < FILTERS; i++)
		buf_done(&r->tag[i]);
}

int filter_refuse(
	struct filter_result *res, const char *error, const char *message, struct str detail)
{
	res->error = error;
	res->message = message;
	buf_clear(&res->detail);
	return buf_add_str(&res->detail, str_prefix(detail, FILTER_DETAIL_MAX));
}

int filter_tag(struct buf *tag, struct str text)
{
	size_t room = FILTER_TAG_MAX - MIN(buf_len(tag), (size_t)FILTER_TAG_MAX);
	int r;

	if (buf_len(tag) > FILTER_TAG_MAX)
		return 0; /* cut before */
	r = buf_add_str(tag, str_prefix(text, room));
	return r == 0 && text.n > room ? buf_add_str(tag, STR("... (truncated)")) : r;
}

int filter_select(const struct filter_request *req, unsigned *ret_set)
{
	unsigned set = 0;

	for (unsigned i = 0; i < FILTERS; i++) {
		int r = filters[i]->selects(req);

		if (r < 0)
			return r;
		set |= r > 0 ? 1U << i : 0;
	}
	*ret_set = set;
	return 0;
}

size_t filter_body_max(unsigned set)
{
	size_t max = SIZE_MAX;

	for (unsigned i = 0; i < FILTERS; i++)
		if (set & 1U << i)
			max = MIN(max, filters[i]->body_max);
	return max;
}

static unsigned first_of(unsigned set)
{
	unsigned i = 0;

	while (i + 1 < FILTERS && !(set & 1U << i))
		i++;
	return i;
}

/* Refuse the request because a filter failed. */
static void fail(struct filter_result *res, unsigned place)
{
	char detail[64];
	int n = snprintf(detail, sizeof(detail), "<%s: out of memory>", filters[place]->name);

	/* The refusal stands even if its detail has no memory. */
	(void)!filter_refuse(res, "filter_error",
		"A filter of request bodies failed, so the request is refused.",
		str_make(detail, (size_t)n));
}

/* Let the first filter refuse a body that cannot be read. */
static void refuse_unread(struct filter_result *res, unsigned set, struct str detail)
{
	unsigned place = first_of(set);

	if (filters[place]->unreadable(res, detail) < 0)
		fail(res, place);
}

void filter_too_large(unsigned set, struct filter_result *ret)
{
	refuse_unread(ret, set, STR("<too-large>"));
}

/* Decode the body. Return 0; 1 if it is refused, with *detail set; -ENOMEM. */
static int decode(const struct coding_list *list, struct str in, size_t max, struct buf *out,
	struct str *detail)
{
	_cleanup_(coding_decoder_freep) struct coding_decoder *d = NULL;
	int r = coding_decoder_new(list, NULL, &d);

	out->max = max;
	while (r == 0) {
		size_t size = MIN(buf_room(out), (size_t)DECODE_STEP), n = 0;
		enum coding_result got;
		char spare, *at = &spare;

		/* A byte that comes when there is no room means that the body is too large. */
		if (size > 0 && buf_reserve(out, size, &at) < 0)
			return -ENOMEM;
		got = coding_read(d, &in, true, at, MAX(size, (size_t)1), &n);
		if (got == CODING_DONE)
			return 0;
		*detail = got == CODING_DATA ? STR("<too-large>") : STR("<content-encoding>");
		if (got != CODING_DATA || size == 0)
			return 1;
		buf_commit(out, n);
	}
	return r;
}

static int decode_body(const struct filter_request *req, unsigned set, struct str *body,
	struct filter_result *res, struct str *detail)
{
	struct coding_list list;
	int r = coding_list_read(&req->head->fields, &list);

	if (r < 0) {
		*detail = STR("<content-encoding>");
		return 1;
	}
	if (list.n == 0)
		return 0;
	r = decode(&list, *body, filter_body_max(set), &res->body, detail);
	if (r == 0) {
		res->changed = true;
		*body = buf_str(&res->body);
	}
	return r;
}

void filter_run(
	const struct filter_request *req, unsigned set, struct str body, struct filter_result *ret)
{
	struct str detail = STR_NULL;
	int r;

	if (body.n > filter_body_max(set)) {
		filter_too_large(set, ret);
		return;
	}
	r = decode_body(req, set, &body, ret, &detail);
	if (r > 0)
		refuse_unread(ret, set, detail);
	if (r < 0)
		fail(ret, first_of(set));
	for (unsigned i = 0; i < FILTERS && !ret->error; i++) {
		if (!(set & 1U << i))
			continue;
		if (filters[i]->run(req, body, ret) < 0)
			fail(ret, i);
		else if (ret->changed)
			body = buf_str(&ret->body);
	}
}

int filter_stands(const struct filter_request *was, const struct filter_request *now, unsigned set,
	const struct filter_relies *relies)
{
	int r = 1;

	for (unsigned i = 0; i < FILTERS && r > 0; i++)
		if (set & 1U << i)
			r = filters[i]->stands(was, now, relies);
	return r;
}
