/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Filters of request bodies: a chain over one message. Each looks at some requests and lets a body
 * pass, changes it, or refuses the request; whatever it cannot read, it refuses.
 *
 *	graphql  requests that an allowlist entry with a `graphql` block has allowed
 *	tools    Anthropic's Messages API: what its server-side tools, sources and MCP servers may
 *		fetch is cut down to what the room itself may
 *
 * Which filters apply follows from the host and the folded path (case, repeated slashes, parameters
 * of segments and a slash at the end do not matter), so no spelling gets round them; a path that
 * cannot be decided counts as theirs. */

#include "base/buf.h"
#include "http/msg.h"
#include "policy/decide.h"

#define FILTER_TAG_MAX 1000    /* bytes of a tag; behind that "... (truncated)" */
#define FILTER_DETAIL_MAX 1000 /* bytes of a detail */

/* The request, already allowed by `rule`. Everything is borrowed. */
struct filter_request {
	const struct allowlist *policy;
	const struct allow_rule *rule;
	const struct policy_request *asked;
	const struct http_head *head;
};

/* In the order in which they run. */
enum filter_place { FILTER_PLACE_GRAPHQL, FILTER_PLACE_TOOLS, FILTERS };
/* Bits of a set of filters. */
enum {
	FILTER_GRAPHQL = 1 << FILTER_PLACE_GRAPHQL,
	FILTER_TOOLS = 1 << FILTER_PLACE_TOOLS,
};

struct filter_result {
	/* NULL: it may go on. Else the word and the sentence of the answer (403); both static. */
	const char *error, *message;
	struct buf detail; /* text that came from the request: escape it */
	/* What each filter wants said in the log, by its place in the order; empty: nothing. Text
	 * from the request is in it: escape it. */
	struct buf tag[FILTERS];
	/* The body is another one: of this length, without content coding, and without checksums of
	 * the old one. */
	bool changed;
	struct buf body;
};

void filter_result_init(struct filter_result *r);
void filter_result_done(struct filter_result *r);

/* The filters that look at this request; 0: none does. Allocates nothing for most requests. Returns
 * 0 or -ENOMEM. */
_warn_unused_ int filter_select(const struct filter_request *req, unsigned *ret_set);

/* The largest body, as received, that a set of filters reads. */
size_t filter_body_max(unsigned set);

/* Runs a set over a whole body (as received, with its content coding). Never fails: what goes wrong
 * refuses the request as filter_error. */
void filter_run(
	const struct filter_request *req, unsigned set, struct str body, struct filter_result *ret);

/* Fills ret with the refusal of a body that is longer than filter_body_max. */
void filter_too_large(unsigned set, struct filter_result *ret);

/* What a filter is called in the log: "graphql". */
const char *filter_name(enum filter_place place);
