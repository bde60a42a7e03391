/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: this file writes the messages for a refused client and its user. Requests
 * are hostile text, so everything is escaped: for sentences by base/escape.h, for the YAML
 * suggestion as a double-quoted scalar of printable ASCII, which cannot end early or carry a second
 * rule. */
#include "policy/decide.h"

#include "base/account.h"
#include "base/escape.h"
#include "policy/proposal.h"
#include "policy/rule.h"
#include "policy/yaml-text.h"

/* Enough to recognise a path. No entry is suggested for a longer one. */
#define SHOWN_MAX 512

const char *policy_reason_word(enum policy_reason reason)
{
	static const char *const words[] = {
		[POLICY_ALLOWED] = "allowed",
		[POLICY_BAD_HOST] = "bad_host",
		[POLICY_BAD_TARGET] = "bad_target",
		[POLICY_HOST] = "host",
		[POLICY_HOST_ADDRESS] = "host_address",
		[POLICY_SCHEME] = "scheme",
		[POLICY_PORT] = "port",
		[POLICY_USER] = "user",
		[POLICY_TUNNEL] = "tunnel",
		[POLICY_PATH] = "path",
		[POLICY_PATH_UNDECIDABLE] = "path_undecidable",
		[POLICY_QUERY] = "query",
		[POLICY_METHOD] = "method",
		[POLICY_WEBSOCKET] = "websocket",
		[POLICY_OVERRIDE] = "override",
		[POLICY_GRAPHQL] = "graphql",
		[POLICY_BODY] = "body_filter",
		[POLICY_DENIED] = "denied",
	};

	_Static_assert(ARRAY_SIZE(words) == POLICY_REASONS, "each reason has a word");
	return words[reason];
}

static struct str request_path(const struct policy_request *req)
{
	return str_prefix(req->target, str_chr(req->target, '?'));
}

/* The path needs no escaping: path_parse() has accepted it, so it is printable ASCII. */
static int explain_path(struct str path, struct buf *out)
{
	return buf_printf(out, " is listed, but not the path %.*s%s",
		STR_FMT(str_prefix(path, SHOWN_MAX)), path.n > SHOWN_MAX ? "..." : "");
}

static int explain_undecidable(const struct verdict *v, struct buf *out)
{
	return buf_printf(out, " is listed for some paths only, and %s: %s",
		path_problem_text(v->path_problem),
		v->path_problem == PATH_ENCODED_SLASH
			? "an entry with encoded_slash: true takes it as a slash"
			: "only an entry without a path can allow it");
}

static int explain_allowed(
	const struct policy_request *req, const struct verdict *v, struct buf *out)
{
	if (req->tunnel)
		return buf_add_str(out, STR(" is allowed: its TLS passes undecrypted (tunnel: "
					    "true), whatever is in it"));
	if (req->scheme == POLICY_TCP)
		return buf_printf(
			out, " is allowed on port %u, whatever is in it (tcp)", req->port);
	return buf_add_str(out, v->rule->has_graphql
					? STR(" is allowed if its body asks for what the "
					      "graphql block of the rule lists")
					: STR(" is allowed"));
}

static int explain_body(const struct policy_request *req, struct buf *out)
{
	if (!str_eq(req->method, STR("POST")) || str_chr(req->target, '?') < req->target.n)
		return buf_add_str(out,
			STR(" is listed with a graphql block, which lets requests through by POST "
			    "alone, and none with a query in the URL"));
	return buf_add_str(out, STR(" is listed, but what the body asks for is not in the graphql "
				    "block of the rule"));
}

static int explain_override(const struct policy_request *req, struct buf *out)
{
	int r;

	if (req->other_path)
		return buf_add_str(out,
			STR(" is listed for some paths only, and a header of the request (such as "
			    "X-Original-URL) asks for another: only an entry without a path can "
			    "allow it"));
	r = buf_add_str(
		out, STR(" is listed for some methods only, and a header of the request (such as "
			 "X-HTTP-Method-Override) asks for "));
	return r < 0 ? r : escape_log(out, req->other_method, 32);
}

/* The sentence up to the rule; the host is added by the caller. */
static int explain_reason(
	const struct policy_request *req, const struct verdict *v, struct buf *out)
{
	int r;

	switch (v->reason) {
	case POLICY_ALLOWED:
		return explain_allowed(req, v, out);
	case POLICY_BAD_HOST:
		return buf_add_str(out, STR(" is not a host name, so no rule can allow it"));
	case POLICY_BAD_TARGET:
		return buf_printf(out, " was not asked: %s, which no rule can allow",
			path_problem_text(v->path_problem));
	case POLICY_HOST:
		return buf_add_str(out, STR(" is not in the network allowlist"));
	case POLICY_HOST_ADDRESS:
		return buf_add_str(out,
			STR(" is an address, and no rule of the network allowlist writes it out"));
	case POLICY_SCHEME:
		return buf_printf(
			out, " is listed, but not for %s", policy_scheme_word(req->scheme));
	case POLICY_PORT:
		return buf_printf(out, " is listed, but not for %s on port %u",
			policy_scheme_word(req->scheme), req->port);
	case POLICY_USER:
		r = buf_add_str(out, STR(" is listed for ssh, but not for the user "));
		return r == 0 ? escape_log(out, req->user, ACCOUNT_MAX_NAME) : r;
	case POLICY_TUNNEL:
		return buf_add_str(out,
			req->tunnel ? STR(" is listed, but not for TLS that passes undecrypted "
					  "(tunnel: true)")
				    : STR(" is listed only for TLS that passes undecrypted "
					  "(tunnel: true)"));
	case POLICY_PATH_UNDECIDABLE:
		return explain_undecidable(v, out);
	case POLICY_PATH:
		return explain_path(request_path(req), out);
	case POLICY_QUERY:
		return buf_add_str(
			out, v->rule->no_query
				     ? STR(" is listed, but this path only without a query (query: "
					   "none)")
				     : STR(" is listed, but this path only with certain queries"));
	case POLICY_METHOD:
		r = buf_add_str(out, STR(" is listed, but this path not for the method "));
		if (r == 0)
			r = escape_log(out, req->method, 32);
		return r == 0 && v->rule->has_graphql
			       ? buf_add_str(out, STR(", only for what its graphql block judges"))
			       : r;
	case POLICY_WEBSOCKET:
		return buf_add_str(out,
			v->rule->has_graphql
				? STR(" is listed with a graphql block, and a WebSocket cannot be "
				      "looked into")
				: STR(" is listed, but not for a WebSocket (websocket: false)"));
	case POLICY_OVERRIDE:
		return explain_override(req, out);
	case POLICY_GRAPHQL:
		return buf_add_str(
			out, STR(" is listed, but this may be another spelling or method of a path "
				 "whose requests a graphql block judges, or lie below it, and no "
				 "other entry goes around that: ask for the path as it is written "
				 "there"));
	case POLICY_BODY:
		return explain_body(req, out);
	case POLICY_DENIED:
		return buf_add_str(out, STR(" was denied while the sandbox ran"));
	case POLICY_REASONS:
		break;
	}
	return buf_add_str(out, STR(" is refused"));
}

int policy_explain(const struct policy_request *req, const struct verdict *v, struct buf *out)
{
	struct host host;
	/* The brackets of an address do no harm here, and "host" of the answer has them, too. */
	int r = host_parse(req->host, &host) == 0 ? buf_add_str(out, req->host)
						  : escape_log(out, req->host, HOST_MAX + 2);

	if (r == 0)
		r = explain_reason(req, v, out);
	if (r == 0 && v->rule)
		r = buf_add_str(out, v->allow || v->reason == POLICY_DENIED
					     ? STR(" (rule: ")
					     : STR(" (nearest rule: "));
	if (r == 0 && v->rule)
		r = yaml_add_comment(out, str_from(v->rule->label_inside));
	if (r == 0 && v->rule)
		r = buf_add_char(out, ')');
	return r;
}

static bool path_is_writable(const struct path *path)
{
	return path->unsure == PATH_OK && path->decoded.n <= SHOWN_MAX;
}

/* Whether yaml_add_path_query() can write a pattern that is for this query alone. */
static bool query_is_writable(const struct path *path)
{
	for (size_t i = 0; i < path->query.n; i++)
		if (path->query.p[i] == '%' || path->query.p[i] == '\\')
			return false;
	return path->query.n > 0 && path->decoded.n + path->query.n <= SHOWN_MAX &&
	       str_chr(path->decoded, '?') == path->decoded.n;
}

/* narrow: with the query of the request, and no other. */
static int suggest_entry(const struct policy_request *req, const struct host *host,
	const struct path *path, bool narrow, struct buf *out)
{
	char method[RULE_METHOD_MAX + 1], other[RULE_METHOD_MAX + 1];
	const char *const methods[] = {method, req->other_method.n > 0 ? other : NULL, NULL};
	const char *const none[] = {NULL};
	bool opaque = policy_request_is_opaque(req);
	const struct proposal_entry e = {.host = host->text,
		.kind = req->tunnel ? PROPOSAL_TUNNEL
			: opaque    ? PROPOSAL_TCP
				    : PROPOSAL_PATH,
		.path = req->scheme == POLICY_SSH ? rule_repository(path->decoded) : path->decoded,
		.user = req->user,
		.query = narrow && path->has_query ? path->query : STR_NULL,
		.no_query = narrow && !path->has_query,
		.methods = opaque ? none : methods,
		.schemes = (unsigned)req->scheme,
		.port = proposal_port(req, host),
		.encoded_slash = path->encoded_slash};
	int r = buf_add_str(out, STR("url_prefixes:\n"));

	str_copy(method, sizeof(method), req->method);
	str_copy(other, sizeof(other), req->other_method);
	return r < 0 ? r : proposal_write_entry(&e, out);
}

/* Suggest nothing if only removing a restriction that a person wrote would help, or if a tunnel
 * lets the request pass anyway. */
static bool may_suggest(const struct policy_request *req, const struct verdict *v)
{
	if (v->allow || v->reason == POLICY_BODY || v->reason == POLICY_GRAPHQL ||
		v->reason == POLICY_DENIED)
		return false;
	if (v->reason == POLICY_TUNNEL && !req->tunnel)
		return false;
	return policy_request_is_opaque(req) ||
	       (!req->other_path && rule_is_method(req->method) &&
		       (req->other_method.n == 0 || rule_is_method(req->other_method)));
}

/* Whether the rule's body filter covers the request. Another entry would bypass the filter or be of
 * no use. */
static bool is_filtered(
	const struct allow_rule *rule, const struct policy_request *req, const struct path *path)
{
	if (policy_request_is_opaque(req) || (!rule->path && !rule->path_prefix))
		return true;
	if (rule->path && path_pattern_matches(str_from(rule->path), path))
		return true;
	if (rule->path_prefix && path_prefix_matches(str_from(rule->path_prefix), path))
		return true;
	return rule_guards(rule, path, req->other_path);
}

static bool is_filtered_by_any(const struct allowlist *list, const struct policy_request *req,
	const struct host *host, const struct path *path)
{
	for (size_t i = 0; i < allowlist_count(list); i++) {
		const struct allow_rule *rule = allowlist_rule(list, i);

		if (rule->has_graphql && host_pattern_matches(str_from(rule->host), host) &&
			is_filtered(rule, req, path))
			return true;
	}
	return false;
}

/* Whether somebody has listed this path with certain queries only. An entry that takes every query
 * would undo that. */
static bool is_query_limited(
	const struct allowlist *list, const struct host *host, const struct path *path)
{
	for (size_t i = 0; i < allowlist_count(list); i++) {
		const struct allow_rule *rule = allowlist_rule(list, i);

		if (rule->path && host_pattern_matches(str_from(rule->host), host) &&
			path_pattern_has_query(str_from(rule->path), path))
			return true;
	}
	return false;
}

int policy_suggest(const struct allowlist *list, const struct policy_request *req,
	const struct verdict *v, struct buf *out)
{
	_cleanup_(path_done) struct path path = {0};
	bool narrow, opaque = policy_request_is_opaque(req);
	struct host host;
	int r = 0;

	if (!may_suggest(req, v) || host_parse(req->host, &host) < 0 ||
		(opaque && host.kind != HOST_NAME))
		return 0;
	if (!opaque)
		r = path_parse(req->target, &path);
	if (r < 0)
		return r;
	if (!opaque && (path.problem != PATH_OK || !path_is_writable(&path)))
		return 0;
	if (is_filtered_by_any(list, req, &host, &path))
		return 0;
	narrow = !opaque && is_query_limited(list, &host, &path);
	if (narrow && path.has_query && !query_is_writable(&path))
		return 0;
	return suggest_entry(req, &host, &path, narrow, out);
}
