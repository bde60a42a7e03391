/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a recursive descent that knows the schema reads libyaml's events, so nothing
 * is built that the schema does not have: no document tree, no aliases to expand, no depth to
 * exhaust. It stops at the first error and reports the place and what was expected there. */
#include "policy/rule.h"

#include "base/buf.h"
#include "base/escape.h"
#include <errno.h>
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

static int need_bool(struct reader *r, bool *ret)
{
	struct str s = event_text(r);

	if (!is_plain(r) || (!str_ieq(s, STR("true")) && !str_ieq(s, STR("false"))))
		return fail(r, "true or false");
	*ret = str_ieq(s, STR("true"));
	return next(r);
}

/* Turn the result of a setter into an error at the current event. */
static int set_result(struct reader *r, int result, const char *const *wanted)
{
	if (result == -EINVAL)
		return fail(r, *wanted);
	return result < 0 ? err_nomem(r->err) : 0;
}

/* Reads a list of scalars, giving each to add(). */
struct list_target {
	struct allow_rule *rule;
	struct allow_strings *strings;
	int (*add)(struct list_target *to, struct str s, const char **ret_want);
	const char *wanted;
	bool unquoted_only; /* numbers */
};

static int read_list(struct reader *r, struct list_target *to)
{
	int result = 0;
	size_t n = 0;

	if (r->ev.type != YAML_SEQUENCE_START_EVENT)
		return fail(r, to->wanted);
	result = next(r);
	while (result == 0 && r->ev.type != YAML_SEQUENCE_END_EVENT) {
		const char *wanted = to->wanted;
		struct str s = STR_NULL;

		if (++n > RULE_LIST_MAX)
			return fail(r, "at most 256 items in this list");
		if (to->unquoted_only && !is_plain(r))
			return fail(r, to->wanted);
		result = need_string(r, to->wanted, &s);
		if (result == 0)
			result = set_result(r, to->add(to, s, &wanted), &wanted);
		if (result == 0)
			result = next(r);
	}
	return result < 0 ? result : next(r);
}

static int add_method(struct list_target *to, struct str s, const char **ret_want)
{
	return rule_add_method(to->rule, s, ret_want);
}

static int add_scheme(struct list_target *to, struct str s, const char **ret_want)
{
	return rule_add_scheme(to->rule, s, ret_want);
}

static int add_port(struct list_target *to, struct str s, const char **ret_want)
{
	return rule_add_port(to->rule, s, ret_want);
}

static int add_range(struct list_target *to, struct str s, const char **ret_want)
{
	return rule_add_range(to->rule, s, ret_want);
}

static int add_field(struct list_target *to, struct str s, const char **ret_want)
{
	return rule_add_field(to->strings, s, ret_want);
}

/* A table of the keys of a mapping. Each may occur at most once. */
struct key {
	const char *name;
	int (*read)(struct reader *r, struct allow_rule *rule);
};

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
			return fail(r, wanted);
		if (seen & (1U << i))
			return fail(r, "each key once");
		seen |= 1U << i;
		result = next(r);
		if (result == 0)
			result = keys[i].read(r, rule);
	}
	return result < 0 ? result : next(r);
}

static int read_host(struct reader *r, struct allow_rule *rule)
{
	const char *wanted = "a host name or pattern";
	struct str s;
	int result = need_string(r, wanted, &s);

	if (result == 0)
		result = set_result(r, rule_set_host(rule, s, &wanted), &wanted);
	return result < 0 ? result : next(r);
}

static int read_path(struct reader *r, struct allow_rule *rule)
{
	const char *wanted = "a path or path pattern";
	struct str s;
	int result = need_string(r, wanted, &s);

	if (result == 0)
		result = set_result(r, rule_set_path(rule, s, &wanted), &wanted);
	return result < 0 ? result : next(r);
}

static int read_path_prefix(struct reader *r, struct allow_rule *rule)
{
	const char *wanted = "a path";
	struct str s;
	int result = need_string(r, wanted, &s);

	if (result == 0)
		result = set_result(r, rule_set_path_prefix(rule, s, &wanted), &wanted);
	return result < 0 ? result : next(r);
}

static int read_methods(struct reader *r, struct allow_rule *rule)
{
	return read_list(r, &(struct list_target){.rule = rule,
				    .add = add_method,
				    .wanted = "a list of methods such as [GET, HEAD]"});
}

static int read_schemes(struct reader *r, struct allow_rule *rule)
{
	return read_list(
		r, &(struct list_target){
			   .rule = rule, .add = add_scheme, .wanted = "a list of https and http"});
}

static int read_ports(struct reader *r, struct allow_rule *rule)
{
	return read_list(r, &(struct list_target){.rule = rule,
				    .add = add_port,
				    .unquoted_only = true,
				    .wanted = "a list of ports such as [443, 8443]"});
}

static int read_query(struct reader *r, struct allow_rule *rule)
{
	struct str s = event_text(r);

	if (!str_eq(s, STR("any")) && !str_eq(s, STR("none")))
		return fail(r, "any or none");
	rule->no_query = str_eq(s, STR("none"));
	return next(r);
}

static int read_allow_private(struct reader *r, struct allow_rule *rule)
{
	if (r->ev.type == YAML_SCALAR_EVENT)
		return need_bool(r, &rule->allow_private);
	return read_list(r,
		&(struct list_target){.rule = rule,
			.add = add_range,
			.wanted = "true, false or a list of address ranges such as [10.0.0.0/8]"});
}

static int read_encoded_slash(struct reader *r, struct allow_rule *rule)
{
	return need_bool(r, &rule->encoded_slash);
}

static int read_websocket(struct reader *r, struct allow_rule *rule)
{
	return need_bool(r, &rule->websocket);
}

static int read_scrub(struct reader *r, struct allow_rule *rule)
{
	return need_bool(r, &rule->scrub);
}

static int read_tunnel(struct reader *r, struct allow_rule *rule)
{
	return need_bool(r, &rule->tunnel);
}

static int read_fields(struct reader *r, struct allow_strings *strings)
{
	return read_list(r, &(struct list_target){.strings = strings,
				    .add = add_field,
				    .wanted = "a list of GraphQL field names or patterns"});
}

static int read_queries(struct reader *r, struct allow_rule *rule)
{
	return read_fields(r, &rule->graphql_queries);
}

static int read_mutations(struct reader *r, struct allow_rule *rule)
{
	return read_fields(r, &rule->graphql_mutations);
}

static int read_subscriptions(struct reader *r, struct allow_rule *rule)
{
	return read_fields(r, &rule->graphql_subscriptions);
}

static int read_graphql(struct reader *r, struct allow_rule *rule)
{
	static const struct key keys[] = {
		{"queries", read_queries},
		{"mutations", read_mutations},
		{"subscriptions", read_subscriptions},
	};

	rule->has_graphql = true;
	return read_mapping(r, rule, keys, ARRAY_SIZE(keys),
		"a mapping with queries, mutations, subscriptions");
}

static int read_entry(struct reader *r, struct allow_rule *rule)
{
	static const struct key keys[] = {
		{"host", read_host},
		{"path", read_path},
		{"path_prefix", read_path_prefix},
		{"methods", read_methods},
		{"graphql", read_graphql},
		{"query", read_query},
		{"schemes", read_schemes},
		{"ports", read_ports},
		{"allow_private", read_allow_private},
		{"encoded_slash", read_encoded_slash},
		{"websocket", read_websocket},
		{"scrub", read_scrub},
		{"tunnel", read_tunnel},
	};

	return read_mapping(r, rule, keys, ARRAY_SIZE(keys),
		"an entry with the keys host, path or path_prefix, methods, graphql, query, "
		"schemes, "
		"ports, allow_private, encoded_slash, websocket, scrub, tunnel");
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
		result = domains ? read_host(r, rule) : read_entry(r, rule);
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
