/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a recursive descent that knows the schema reads libyaml's events, so nothing
 * is built that the schema does not have: no document tree, no aliases to expand, no depth to
 * exhaust. It stops at the first error and reports the place and what was expected there. */
#include "policy/rule.h"

#include "base/buf.h"
#include "base/escape.h"
#include "base/near.h"
#include <errno.h>
#include <stddef.h>
#include <yaml.h>

struct reader {
	yaml_parser_t yaml;
	yaml_event_t ev; /* the current event */
	bool have_event;
	const char *source;
	struct cloche_err *err;
};

/* How much of a text is shown. */
static size_t first_line(struct str s)
{
	size_t n = str_chr(s, '\n');

	return n < 80 ? n : 80;
}

static int fail_at(struct reader *r, const yaml_mark_t *mark, const char *wanted, struct str got)
{
	_cleanup_(buf_donep) struct buf shown = BUF_INIT(1024);
	const char *text = "";

	/* Keep line breaks out of the message. */
	if (got.n > 0 && escape_terminal(&shown, str_prefix(got, first_line(got))) == 0 &&
		buf_cstr(&shown))
		text = buf_cstr(&shown);
	return err_set(r->err, E_CONFIG, "%s:%zu:%zu: expected %s%s%s%s", r->source, mark->line + 1,
		mark->column + 1, wanted, *text ? ", not \"" : "", text, *text ? "\"" : "");
}

static struct str event_text(const struct reader *r)
{
	if (!r->have_event || r->ev.type != YAML_SCALAR_EVENT)
		return STR_NULL;
	return str_make(r->ev.data.scalar.value, r->ev.data.scalar.length);
}

static int fail(struct reader *r, const char *wanted)
{
	return fail_at(r, &r->ev.start_mark, wanted, event_text(r));
}

/* Anchors and tags have no use in this format. next() refuses aliases, which are events of their
 * own. */
static bool is_decorated(const yaml_event_t *ev)
{
	if (ev->type == YAML_SCALAR_EVENT)
		return ev->data.scalar.anchor || ev->data.scalar.tag;
	if (ev->type == YAML_SEQUENCE_START_EVENT)
		return ev->data.sequence_start.anchor || ev->data.sequence_start.tag;
	if (ev->type == YAML_MAPPING_START_EVENT)
		return ev->data.mapping_start.anchor || ev->data.mapping_start.tag;
	return false;
}

/* Moves on to the next event. */
static int next(struct reader *r)
{
	if (r->have_event)
		yaml_event_delete(&r->ev);
	r->have_event = false;
	if (!yaml_parser_parse(&r->yaml, &r->ev)) {
		if (r->yaml.error == YAML_MEMORY_ERROR)
			return err_nomem(r->err);
		return err_set(r->err, E_CONFIG, "%s:%zu:%zu: not YAML: %s", r->source,
			r->yaml.problem_mark.line + 1, r->yaml.problem_mark.column + 1,
			r->yaml.problem ? r->yaml.problem : "unreadable");
	}
	r->have_event = true;
	if (r->ev.type == YAML_ALIAS_EVENT)
		return fail(r, "no alias");
	if (is_decorated(&r->ev))
		return fail(r, "no anchor and no tag");
	return 0;
}

static bool is_plain(const struct reader *r)
{
	return r->ev.type == YAML_SCALAR_EVENT &&
	       r->ev.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* "", ~ and null, unquoted. */
static bool is_null(const struct reader *r)
{
	struct str s = event_text(r);

	return is_plain(r) && (s.n == 0 || str_eq(s, STR("~")) || str_ieq(s, STR("null")));
}

/* Read a string. Unquoted words that YAML reads as another type are errors, because their author
 * meant a name. */
static int need_string(struct reader *r, const char *wanted, struct str *ret)
{
	struct str s = event_text(r);

	if (r->ev.type != YAML_SCALAR_EVENT || is_null(r))
		return fail(r, wanted);
	if (is_plain(r) && (str_ieq(s, STR("true")) || str_ieq(s, STR("false"))))
		return fail(r, wanted);
	*ret = s;
	return 0;
}

/* A key of a mapping, which may occur at most once. */
struct key {
	const char *name;
	int (*read)(struct reader *r, struct allow_rule *rule, const struct key *key);
	const char *wanted;
	/* Take one text, as the setters of rule.h do. */
	int (*set)(struct allow_rule *rule, struct str s, const char **ret_want);
	size_t at;     /* of the rule's member, if that is true or false */
	bool unquoted; /* the items of the list are numbers */
};

static int fail_key(struct reader *r, struct str name, const struct key *keys, size_t n_keys,
	const char *wanted)
{
	struct near best = {0};

	for (size_t i = 0; name.p && i < n_keys; i++)
		near_try(name, keys[i].name, &best);
	return fail(r, best.name ? best.name : wanted);
}

static int read_mapping(struct reader *r, struct allow_rule *rule, const struct key *keys,
	size_t n_keys, const char *wanted)
{
	uint32_t seen = 0;
	int result;

	if (r->ev.type != YAML_MAPPING_START_EVENT)
		return fail(r, wanted);
	result = next(r);
	while (result == 0 && r->ev.type != YAML_MAPPING_END_EVENT) {
		struct str name = event_text(r);
		size_t i = 0;

		while (i < n_keys && !(name.p && str_eq(name, str_from(keys[i].name))))
			i++;
		if (i == n_keys)
			return fail_key(r, name, keys, n_keys, wanted);
		if (seen & (1U << i))
			return fail(r, "each key once");
		seen |= 1U << i;
		result = next(r);
		if (result == 0)
			result = keys[i].read(r, rule, &keys[i]);
	}
	return result < 0 ? result : next(r);
}

static int read_text(struct reader *r, struct allow_rule *rule, const struct key *key)
{
	const char *wanted = key->wanted;
	struct str s = STR_NULL;
	int result = need_string(r, wanted, &s);

	if (result < 0)
		return result;
	result = key->set(rule, s, &wanted);
	if (result == -EINVAL)
		return fail(r, wanted);
	return result < 0 ? err_nomem(r->err) : next(r);
}

static int read_list(struct reader *r, struct allow_rule *rule, const struct key *key)
{
	size_t n = 0;
	int result;

	if (r->ev.type != YAML_SEQUENCE_START_EVENT)
		return fail(r, key->wanted);
	result = next(r);
	while (result == 0 && r->ev.type != YAML_SEQUENCE_END_EVENT) {
		if (++n > RULE_LIST_MAX)
			return fail(r, "at most 256 items in this list");
		if (key->unquoted && !is_plain(r))
			return fail(r, key->wanted);
		result = read_text(r, rule, key);
	}
	return result < 0 ? result : next(r);
}

static int read_bool(struct reader *r, struct allow_rule *rule, const struct key *key)
{
	struct str s = event_text(r);
	bool *ret = (bool *)((char *)rule + key->at);

	if (!is_plain(r) || (!str_ieq(s, STR("true")) && !str_ieq(s, STR("false"))))
		return fail(r, "true or false");
	*ret = str_ieq(s, STR("true"));
	return next(r);
}

static int read_bool_or_list(struct reader *r, struct allow_rule *rule, const struct key *key)
{
	return r->ev.type == YAML_SCALAR_EVENT ? read_bool(r, rule, key) : read_list(r, rule, key);
}

static int read_query(struct reader *r, struct allow_rule *rule, const struct key *key)
{
	struct str s = event_text(r);

	if (!str_eq(s, STR("any")) && !str_eq(s, STR("none")))
		return fail(r, key->wanted);
	rule->no_query = str_eq(s, STR("none"));
	return next(r);
}

static int add_query(struct allow_rule *rule, struct str s, const char **ret_want)
{
	return rule_add_field(&rule->graphql_queries, s, ret_want);
}

static int add_mutation(struct allow_rule *rule, struct str s, const char **ret_want)
{
	return rule_add_field(&rule->graphql_mutations, s, ret_want);
}

static int add_subscription(struct allow_rule *rule, struct str s, const char **ret_want)
{
	return rule_add_field(&rule->graphql_subscriptions, s, ret_want);
}

static int read_graphql(struct reader *r, struct allow_rule *rule, const struct key *key)
{
	static const char fields[] = "a list of GraphQL field names or patterns";
	static const struct key keys[] = {
		{"queries", read_list, fields, add_query},
		{"mutations", read_list, fields, add_mutation},
		{"subscriptions", read_list, fields, add_subscription},
	};

	rule->has_graphql = true;
	return read_mapping(r, rule, keys, ARRAY_SIZE(keys), key->wanted);
}

static const char host_wanted[] = "a host name or pattern";

static int read_domain(struct reader *r, struct allow_rule *rule)
{
	return read_text(r, rule, &(struct key){.wanted = host_wanted, .set = rule_set_host});
}

static int read_entry(struct reader *r, struct allow_rule *rule)
{
	static const struct key keys[] = {
		{"host", read_text, host_wanted, rule_set_host},
		{"path", read_text, "a path or path pattern", rule_set_path},
		{"path_prefix", read_text, "a path", rule_set_path_prefix},
		{"methods", read_list, "a list of methods such as [GET, HEAD]", rule_add_method},
		{"graphql", read_graphql, "a mapping with queries, mutations, subscriptions"},
		{"query", read_query, "any or none"},
		{"schemes", read_list, "a list of https and http, or [tcp], or [ssh]",
			rule_add_scheme},
		{"user", read_text, "a user of ssh", rule_set_user},
		{"ports", read_list, "a list of ports such as [443, 8443]", rule_add_port,
			.unquoted = true},
		{"allow_private", read_bool_or_list,
			"true, false or a list of address ranges such as [10.0.0.0/8]",
			rule_add_range, offsetof(struct allow_rule, allow_private)},
		{"encoded_slash", read_bool, .at = offsetof(struct allow_rule, encoded_slash)},
		{"websocket", read_bool, .at = offsetof(struct allow_rule, websocket)},
		{"scrub", read_bool, .at = offsetof(struct allow_rule, scrub)},
		{"tunnel", read_bool, .at = offsetof(struct allow_rule, tunnel)},
	};

	return read_mapping(r, rule, keys, ARRAY_SIZE(keys),
		"an entry with the keys host, path or path_prefix, methods, graphql, query, "
		"schemes, user, ports, allow_private, encoded_slash, websocket, scrub, tunnel");
}

static int add_rule(struct reader *r, struct rule_batch *batch, struct allow_rule *rule,
	const yaml_mark_t *mark)
{
	const char *wanted = NULL;
	int result = rule_finish(rule, &wanted);

	if (result == -EINVAL)
		return fail_at(r, mark, wanted, STR_NULL);
	result = rule_batch_add(batch, rule);
	if (result == -E2BIG)
		return fail_at(r, mark, "at most 10000 rules", STR_NULL);
	return result < 0 ? err_nomem(r->err) : 0;
}

/* Reads one of the two lists at the top. */
static int read_rules(struct reader *r, struct rule_batch *batch, bool domains)
{
	int result;

	if (is_null(r)) /* every item of the list is commented out */
		return next(r);
	if (r->ev.type != YAML_SEQUENCE_START_EVENT)
		return fail(r, domains ? "a list of host patterns" : "a list of entries");
	result = next(r);
	while (result == 0 && r->ev.type != YAML_SEQUENCE_END_EVENT) {
		_cleanup_(rule_freep) struct allow_rule *rule = rule_new();
		yaml_mark_t mark = r->ev.start_mark;

		if (!rule)
			return err_nomem(r->err);
		rule->is_domain = domains;
		rule->line = (unsigned)mark.line + 1;
		result = domains ? read_domain(r, rule) : read_entry(r, rule);
		if (result == 0)
			result = add_rule(r, batch, rule, &mark);
		if (result == 0)
			(void)TAKE_PTR(rule);
	}
	return result < 0 ? result : next(r);
}

static int read_top(struct reader *r, struct rule_batch *batch)
{
	bool seen[2] = {false, false};
	int result;

	if (is_null(r))
		return next(r);
	if (r->ev.type != YAML_MAPPING_START_EVENT)
		return fail(r, "a mapping with domains and url_prefixes");
	result = next(r);
	while (result == 0 && r->ev.type != YAML_MAPPING_END_EVENT) {
		struct str name = event_text(r);
		bool domains = str_eq(name, STR("domains"));

		if (!domains && !str_eq(name, STR("url_prefixes")))
			return fail(r, "the key domains or url_prefixes");
		if (seen[domains])
			return fail(r, "each key once");
		seen[domains] = true;
		result = next(r);
		if (result == 0)
			result = read_rules(r, batch, domains);
	}
	return result < 0 ? result : next(r);
}

static int read_stream(struct reader *r, struct rule_batch *batch)
{
	int result = next(r); /* stream start */

	if (result == 0)
		result = next(r);
	if (result < 0 || r->ev.type == YAML_STREAM_END_EVENT)
		return result;
	result = next(r); /* behind the document start */
	if (result == 0)
		result = read_top(r, batch);
	if (result == 0)
		result = next(r); /* behind the document end */
	if (result == 0 && r->ev.type != YAML_STREAM_END_EVENT)
		return fail(r, "one document");
	return result;
}

int yaml_rules_parse(
	struct str text, const char *source, struct rule_batch *ret, struct cloche_err *err)
{
	struct reader r = {.source = source, .err = err};
	int result;

	if (text.n > ALLOWLIST_MAX_TEXT)
		return err_set(err, E_CONFIG, "%s: longer than 1 MiB", source);
	if (!yaml_parser_initialize(&r.yaml))
		return err_nomem(err);
	yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
		&r.yaml, (const unsigned char *)(text.p ? text.p : ""), text.n);
	result = read_stream(&r, ret);
	if (r.have_event)
		yaml_event_delete(&r.ev);
	yaml_parser_delete(&r.yaml);
	return result;
}
