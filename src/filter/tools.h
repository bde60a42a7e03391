/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What Anthropic's servers may fetch for a request to the Messages API: no more than the room might
 * itself. Works on the parsed body and changes it in place.
 *
 *	tools[], anywhere (batches nest them): of entries whose type begins with web_fetch_,
 *		web_search_, computer_, bash_ or code_execution_, allowed_domains is cut down to
 * hosts that are open for GET with every path; a web_fetch_ entry without it, or of an unknown
 *		version of the last three, gets an empty one. Blocklists and wildcards are refused.
 *	objects {type: "url", url}: GET of that URL must be allowed
 *	mcp_servers[].url: GET and POST of that URL must be allowed
 *
 * A tool_use block's input, which no server reads, is not looked at. Known limit: what web_search_
 * finds without allowed_domains comes from Anthropic's index, not from the room's hosts. */

#include "base/json.h"
#include "policy/decide.h"

#define TOOLS_BODY_MAX (32U << 20)
#define TOOLS_VALUES_MAX 250000  /* in a body; a value takes up to 250 bytes of memory */
#define TOOLS_STEPS_MAX 10000000 /* hosts and URLs that are asked for, times rules */

struct tools_result {
	const char *error, *message; /* static; NULL: nothing is refused */
	struct buf detail, tag;      /* text of the request; the caller makes and frees them */
	bool changed;
};

/* Returns 0 or a negative errno. */
_warn_unused_ int tools_trim(
	json_t *body, const struct allowlist *policy, struct tools_result *res);

/* Whether text has more values than TOOLS_VALUES_MAX; a look at its bytes, whether JSON or not. */
bool tools_is_too_complex(struct str text);

/* Whether a host (as a tool's configuration has it: a name, perhaps with a path behind it) is open
 * for GET by https with every path. Returns 0 or 1, or -ENOMEM. */
_warn_unused_ int tools_host_is_open(const struct allowlist *policy, struct str host);

/* Whether a method is allowed on a URL. http and https alone, without user information, in ASCII.
 * Returns 0 or 1, or -ENOMEM. */
_warn_unused_ int tools_url_is_open(
	const struct allowlist *policy, struct str method, struct str url);
