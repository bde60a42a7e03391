/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-UNDECIDABLE): the request is brought into its canonical form once; each
 * rule then either allows it or says at which step it did not. The steps are in the order of enum
 * policy_reason, so the rule that got furthest is the one that a person would have to change. */
#include "policy/decide.h"

#include "policy/rule.h"

static bool ports_have(const struct allow_rule *rule, const struct policy_request *req)
{
	if (rule->n_ports == 0)
		return policy_request_has_usual_port(req);
	for (size_t i = 0; i < rule->n_ports; i++)
		if (rule->ports[i] == req->port)
			return true;
	return false;
}

static bool methods_have(const struct allow_rule *rule, struct str method)
{
	for (char **m = rule->methods; m && *m; m++)
		if (str_ieq(str_from(*m), method))
			return true;
	return !rule->methods;
}

/* Whether a header may lead the origin to what the rule does not allow. */
static bool is_overridden(const struct allow_rule *rule, const struct policy_request *req)
{
	if (req->other_path && (rule->path || rule->path_prefix))
		return true;
	return req->other_method.n > 0 && !methods_have(rule, req->other_method);
}

/* Return how far the request gets with this rule's path; POLICY_ALLOWED if all the way. */
static enum policy_reason judge_path(const struct allow_rule *rule, const struct path *path)
{
	if (rule->path || rule->path_prefix) {
		if (path_problem_for_rule(path, rule->encoded_slash) != PATH_OK)
			return POLICY_PATH_UNDECIDABLE;
		if (rule->path && !path_pattern_matches(str_from(rule->path), path))
			return path_pattern_has_query(str_from(rule->path), path) ? POLICY_QUERY
										  : POLICY_PATH;
		if (rule->path_prefix && !path_prefix_matches(str_from(rule->path_prefix), path))
			return POLICY_PATH;
	}
	return rule->no_query && path->has_query ? POLICY_QUERY : POLICY_ALLOWED;
}

static enum policy_reason judge(const struct allow_rule *rule, const struct policy_request *req,
	const struct host *host, const struct path *path)
{
	enum policy_reason reason;

	if (!host_pattern_matches(str_from(rule->host), host) ||
		(policy_host_is_machine(host) && !allow_rule_names_machine(rule)))
		return POLICY_HOST;
	if (!(rule->schemes & (unsigned)req->scheme))
		return POLICY_SCHEME;
	if (!ports_have(rule, req))
		return POLICY_PORT;
	if (req->scheme == POLICY_SSH && !str_eq(str_from(rule->user), req->user))
		return POLICY_USER;
	if (rule->tunnel != req->tunnel)
		return POLICY_TUNNEL;
	if (policy_request_is_opaque(req))
		return POLICY_ALLOWED;
	reason = judge_path(rule, path);
	if (reason != POLICY_ALLOWED)
		return reason;
	if (!methods_have(rule, req->method))
		return POLICY_METHOD;
	if (req->websocket && (!rule->websocket || rule->has_graphql))
		return POLICY_WEBSOCKET;
	if (is_overridden(rule, req))
		return POLICY_OVERRIDE;
	if (rule->has_graphql && !req->body_filtered)
		return POLICY_BODY;
	return POLICY_ALLOWED;
}

/* Whether a rule that has not allowed the request keeps later rules from allowing it. */
static bool is_guard(const struct allow_rule *rule, enum policy_reason reason,
	const struct policy_request *req, const struct path *path)
{
	return reason > POLICY_HOST && !policy_request_is_opaque(req) &&
	       rule_guards(rule, path, req->other_path);
}

/* Return the last denial that is for the request, or NULL. */
static const struct allow_rule *last_denial(const struct allowlist *list,
	const struct policy_request *req, const struct host *host, const struct path *path)
{
	const struct allow_rule *last = NULL;

	for (size_t i = 0; i < allowlist_denials(list); i++) {
		const struct allow_rule *rule = allowlist_denial(list, i);

		if ((!last || rule->number > last->number) &&
			host_pattern_matches(str_from(rule->host), host) &&
			(rule->schemes & (unsigned)req->scheme) &&
			(rule->n_ports == 0 || ports_have(rule, req)) &&
			rule_denies(rule, path, policy_request_is_opaque(req) || req->other_path))
			last = rule;
	}
	return last;
}

/* Whether another entry that allows the same may say more: it could open addresses. */
static bool is_worth_more(const struct allowlist *list, const struct allow_rule *rule)
{
	return allowlist_opens_addresses(list) && !allow_rule_opens_addresses(rule) &&
	       !rule->has_graphql;
}

/* Whether a later entry that allows the same is taken instead of the first. Each entry allows what
 * it would allow alone, so that one more never closes an address. */
static bool is_taken_instead(const struct allow_rule *rule, const struct allow_rule *first)
{
	return allow_rule_opens_addresses(rule) && !rule->has_graphql &&
	       rule->scrub == first->scrub;
}

static void judge_all(const struct allowlist *list, const struct policy_request *req,
	const struct host *host, const struct path *path, struct verdict *v)
{
	const struct allow_rule *guard = NULL, *denial = last_denial(list, req, host, path);
	size_t n = allowlist_count(list);

	v->reason = host->kind == HOST_NAME ? POLICY_HOST : POLICY_HOST_ADDRESS;
	for (size_t i = 0; i < n; i++) {
		const struct allow_rule *rule = allowlist_rule(list, i);
		enum policy_reason reason = judge(rule, req, host, path);

		if (!guard && is_guard(rule, reason, req, path))
			guard = rule;
		if (reason == POLICY_ALLOWED && guard && !rule->has_graphql) {
			reason = POLICY_GRAPHQL;
			rule = guard;
		}
		if (reason == POLICY_ALLOWED && denial && denial->number > rule->number) {
			reason = POLICY_DENIED;
			rule = denial;
		}
		if (reason == POLICY_ALLOWED) {
			if (!v->allow || is_taken_instead(rule, v->rule))
				*v = (struct verdict){.allow = true, .rule = rule};
			if (!is_worth_more(list, v->rule))
				return;
		} else if (!v->allow && reason > POLICY_HOST && reason > v->reason) {
			v->reason = reason;
			v->rule = rule;
		}
	}
	if (v->reason == POLICY_PATH_UNDECIDABLE)
		v->path_problem = path_problem_for_rule(path, v->rule->encoded_slash);
}

int policy_decide(
	const struct allowlist *list, const struct policy_request *req, struct verdict *ret)
{
	_cleanup_(path_done) struct path path = {0};
	struct verdict v = {.reason = POLICY_BAD_HOST};
	struct host host;
	int r = 0;

	*ret = v;
	if (host_parse(req->host, &host) < 0)
		return 0;
	if (!policy_request_is_opaque(req))
		r = path_parse(req->target, &path);
	if (req->scheme == POLICY_SSH)
		path.decoded = rule_repository(path.decoded);
	if (r == 0 && path.problem != PATH_OK) {
		v.reason = POLICY_BAD_TARGET;
		v.path_problem = path.problem;
	} else if (r == 0) {
		judge_all(list, req, &host, &path, &v);
	}
	if (r < 0)
		ret->reason = POLICY_BAD_TARGET;
	else
		*ret = v;
	return r;
}
