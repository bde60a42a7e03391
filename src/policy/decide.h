/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The decision about one request. `domains` are tried first, then `url_prefixes` in order; the
 * first rule that matches in full wins, so a later entry may allow what an earlier one did not.
 * Whatever cannot be decided is refused. A denial closes what rules that came before it have
 * opened; a rule that came later opens it again.
 *
 * An entry with a `graphql` block needs a body filter. Without one (policy_request.body_filtered is
 * false), a request that only such an entry matches is refused with POLICY_BODY. If the entry names
 * its path without wildcards, it also covers every other spelling and method of that path: a later
 * entry without a `graphql` block cannot allow what this one refuses. */

#include "base/buf.h"
#include "policy/allowlist.h"
#include "policy/path.h"

enum policy_reason {
	POLICY_ALLOWED,
	/* All of these refuse. The later in the list, the nearer a rule came to allowing the
	 * request. */
	POLICY_BAD_HOST,     /* not a host at all */
	POLICY_BAD_TARGET,   /* no rule can allow the target: verdict.path_problem */
	POLICY_HOST,         /* no rule names the host */
	POLICY_HOST_ADDRESS, /* an address literal that no rule writes out */
	POLICY_SCHEME,       /* the host is listed, but not for this scheme */
	POLICY_PORT,         /* the host is listed, but not for this port */
	POLICY_USER,         /* the host is listed, but not for this user of ssh */
	POLICY_TUNNEL, /* the rule is only for a tunnel, or the request is for a tunnel and no rule
			  allows one */
	POLICY_PATH,   /* the host is listed, but not this path */
	POLICY_PATH_UNDECIDABLE, /* the host is listed, and the path is ambiguous:
				    verdict.path_problem */
	POLICY_QUERY,            /* path listed, but not with this query */
	POLICY_METHOD,           /* path listed, but not for this method */
	POLICY_WEBSOCKET,        /* path and method listed, but not for a WebSocket */
	POLICY_OVERRIDE,         /* a header asks for another method or path: see below */
	POLICY_GRAPHQL,          /* a path with a graphql block, or below it, in other ways */
	POLICY_BODY,             /* the rule has a body filter that has not passed the request */
	POLICY_DENIED,           /* a denial came after every rule that allows the request */
	POLICY_REASONS
};

/* Everything is borrowed. */
struct policy_request {
	enum policy_scheme scheme;
	struct str host; /* without port; any spelling, canonicalised here */
	uint16_t port;
	struct str user; /* of SSH */
	struct str method;
	struct str target; /* origin form, as received: path and query */
	/* Some origins take the method or the path from a header instead (X-HTTP-Method-Override,
	 * X-Original-URL and such). other_method: the method in such a header, or empty.
	 * other_path: whether there is a path in one. A header must not get around what a rule
	 * limits. */
	struct str other_method;
	bool other_path;
	bool tunnel; /* ask whether TLS may pass undecrypted; method and target are ignored, as for
			TCP */
	/* The request asks for a WebSocket (RFC 6455, RFC 8441); method is GET in either form. A
	 * body filter cannot see what passes in it, so a graphql entry never allows one. */
	bool websocket;
	bool body_filtered; /* the body filter of a graphql entry is in place and will judge the
			       body */
};

/* Return whether it is no request, but a connection whose bytes nobody looks at. */
static inline bool policy_request_is_opaque(const struct policy_request *req)
{
	return req->tunnel || req->scheme == POLICY_TCP;
}

/* Return whether the port is the one that the scheme stands for. */
static inline bool policy_request_has_usual_port(const struct policy_request *req)
{
	uint16_t usual = policy_scheme_port(req->scheme);

	return usual && req->port == usual;
}

struct verdict {
	bool allow;
	enum policy_reason reason;
	enum path_problem path_problem; /* PATH_OK unless the reason is about the target */
	/* The rule that allowed it, or the one that came nearest; NULL if none did. Borrowed
	 * from the allowlist. */
	const struct allow_rule *rule;
};

/* Decide. Return 0, or -ENOMEM with *ret a refusal. */
_warn_unused_ int policy_decide(
	const struct allowlist *list, const struct policy_request *req, struct verdict *ret);

/* Short word of a reason for logs and error bodies: "allowed", "host", "path", ...; never NULL. */
const char *policy_reason_word(enum policy_reason reason);

/* Add one sentence in plain English about the verdict: "api.x.com is listed, but not POST on this
 * path (nearest rule: ...)". Printable ASCII only, whatever the request holds. 0 or negative errno.
 */
_warn_unused_ int policy_explain(
	const struct policy_request *req, const struct verdict *v, struct buf *out);

/* Add a YAML snippet that, added to the list, would allow exactly the refused request. Add
 * nothing if no allowlist can allow it (bad host or target), if only an entry for every path
 * could, if it would go around a filter of the body, or if an entry of the list would win
 * over it. 0 or negative errno. */
_warn_unused_ int policy_suggest(const struct allowlist *list, const struct policy_request *req,
	const struct verdict *v, struct buf *out);
