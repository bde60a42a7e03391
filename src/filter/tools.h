/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What Anthropic's servers may fetch for a request to the Messages API: no more than the room
 * itself may. This works on the parsed body and changes it in place.
 *
 *	tools[], anywhere (batches nest them): in entries whose type begins with web_fetch_,
 *		web_search_, computer_, bash_ or code_execution_, allowed_domains is cut down
 *		to hosts that are open for GET with every path. If a web_fetch_ entry, or
 *		one of an unknown version of the last three, has no such list, it gets
 *		an empty one. Blocklists and wildcards are refused.
 *	objects {type: "url", url}: GET of that URL must be allowed
 *	mcp_servers[].url: GET and POST of that URL must be allowed
 *
 * The input of a tool_use block is not checked, because no server reads it. Known limit: what
 * web_search_ finds without allowed_domains comes from Anthropic's index, not from the room's
 * hosts. */

#include "base/json.h"
#include "filter/filter.h"

#define TOOLS_BODY_MAX (32U << 20)
#define TOOLS_VALUES_MAX 250000  /* in a body; a value takes up to 250 bytes of memory */
#define TOOLS_STEPS_MAX 10000000 /* hosts and URLs that are judged, times rules */
/* Of hosts and URLs that are asked for again when the policy is replaced. */
#define TOOLS_RELIES_MAX 4096
#define TOOLS_RELIES_N 64

/* A question about the policy. */
enum tools_what { TOOLS_HOST, TOOLS_GET, TOOLS_GET_AND_POST };

/* Refuse the request or trim the body; res also gets the tag. *ret_changed is set if the body was
 * changed. Return 0 or a negative errno. */
_warn_unused_ int tools_trim(
	json_t *body, const struct allowlist *policy, struct filter_result *res, bool *ret_changed);

/* Return whether text has more values than TOOLS_VALUES_MAX. This only counts in its bytes, whether
 * they are JSON or not. */
bool tools_is_too_complex(struct str text);

/* Return 1 if a host (as in a tool's configuration: a name, perhaps followed by a path) is open for
 * GET by https with every path, else 0, or -ENOMEM. */
_warn_unused_ int tools_host_is_open(const struct allowlist *policy, struct str host);

/* Return 1 if text, a host or a URL, is open in this way, else 0, or -ENOMEM. */
_warn_unused_ int tools_is_open(
	const struct allowlist *policy, enum tools_what what, struct str text);
/* Write down that a request relies on this. */
void tools_rely(struct filter_relies *relies, enum tools_what what, struct str text);
/* Return 1 if all that was written down is open, else 0, or -ENOMEM. */
_warn_unused_ int tools_are_open(const struct allowlist *policy, struct str list);

/* Return 1 if a method is allowed on a URL, else 0, or -ENOMEM. Only http and https URLs in ASCII
 * without user information can be allowed. */
_warn_unused_ int tools_url_is_open(
	const struct allowlist *policy, struct str method, struct str url);
