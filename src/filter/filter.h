/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Filters of request bodies: a chain over one message. Each filter handles some requests. It lets
 * the body pass, changes it, or refuses the request; it refuses whatever it cannot read.
 *
 *	graphql  requests that an allowlist entry with a `graphql` block has allowed
 *	tools    Anthropic's Messages API: what its server-side tools, sources and MCP servers may
 *		fetch is limited to what the room itself may fetch
 *
 * The host and the folded path decide which filters apply (case, repeated slashes, parameters of
 * segments and a slash at the end do not matter), so no spelling evades them. A path that cannot be
 * decided counts as theirs. */

#include "base/buf.h"
#include "http/msg.h"
#include "policy/decide.h"

#define FILTER_TAG_MAX 1000    /* bytes of a tag; a longer one ends in "... (truncated)" */
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

/* What a request that goes on may reach only because policy opens it. */
struct filter_relies {
	struct buf list; /* as tools.h says */
	unsigned n;
	bool more; /* than is in the list */
};

struct filter_result {
	/* NULL: the request may go on. Else the error word and the message of the answer (403);
	 * both are static. */
	const char *error, *message;
	struct buf detail; /* text that came from the request: escape it */
	/* What each filter adds to the log, by its place in the order; empty: nothing. It may hold
	 * text from the request: escape it. */
	struct buf tag[FILTERS];
	/* If true, `body` replaces the body: the request has its length, no content coding, and no
	 * checksums of the old body. */
	bool changed;
	struct buf body;
	struct filter_relies relies;
};

void filter_result_init(struct filter_result *r);
void filter_result_done(struct filter_result *r);

/* Find the filters that handle this request: bits 1 << place. Allocates nothing for most requests.
 * Return 0 or -ENOMEM. */
_warn_unused_ int filter_select(const struct filter_request *req, unsigned *ret_set);

/* Return the largest body, as received, that a set of filters reads. */
size_t filter_body_max(unsigned set);

/* Run a set over a whole body (as received, with its content coding). This never fails: on an error
 * the request is refused as filter_error. */
void filter_run(
	const struct filter_request *req, unsigned set, struct str body, struct filter_result *ret);

/* Return 1 if a request that a set of filters let pass as `was` may also go on as `now`, with
 * another policy and rule; 0 if not, or if that is not known; or -ENOMEM. The body is not needed.
 */
_warn_unused_ int filter_stands(const struct filter_request *was, const struct filter_request *now,
	unsigned set, const struct filter_relies *relies);

/* Fill ret with the refusal of a body that is longer than filter_body_max. */
void filter_too_large(unsigned set, struct filter_result *ret);

/* Return the name of a filter in the log, such as "graphql". */
const char *filter_name(enum filter_place place);
