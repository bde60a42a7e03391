/* SPDX-License-Identifier: Apache-2.0 */
/* An allowlist as JSON, in the form of the YAML files, which can read it again. */
#include "base/json.h"
#include "sandbox/allowlist.h"

#include <string.h>

enum { JSON_MAX = 64 << 20 };

static json_t *list_ports(const struct allow_rule *rule)
{
	json_t *all = json_array();

	for (size_t i = 0; all && i < rule->n_ports; i++)
		if (json_array_append_new(all, json_integer(rule->ports[i])) < 0)
			json_decrefp(&all);
	return all;
}

/* A host that is an address opens that address by itself. */
static json_t *list_ranges(const struct allow_rule *rule)
{
	json_t *all = json_array();
	char text[CIDR_TEXT_MAX];
	struct host host;
	struct cidr own = {0};
	bool literal = host_parse(str_from(rule->host), &host) == 0 &&
		       cidr_parse(host_bare(&host), &own) == 0;

	for (size_t i = 0; all && i < rule->n_private_ranges; i++) {
		const struct cidr *range = &rule->private_ranges[i];

		if (literal && memcmp(range, &own, sizeof(own)) == 0)
			continue;
		cidr_format(range, text);
		if (json_array_append_new(all, json_string(text)) < 0)
			json_decrefp(&all);
	}
	return all;
}

/* Take the list. */
static int put_ranges(json_t *entry, json_t *ranges)
{
	if (!ranges || json_array_size(ranges) > 0)
		return json_put(entry, "allow_private", ranges);
	json_decref(ranges);
	return 0;
}

static json_t *list_graphql(const struct allow_rule *rule)
{
	return json_pack("{s:o, s:o, s:o}", "queries", json_texts(rule->graphql_queries),
		"mutations", json_texts(rule->graphql_mutations), "subscriptions",
		json_texts(rule->graphql_subscriptions));
}

static int put_flags(json_t *entry, const struct allow_rule *rule)
{
	const struct {
		const char *key;
		bool value, usual;
	} flags[] = {{"encoded_slash", rule->encoded_slash, false},
		{"websocket", rule->websocket, true}, {"scrub", rule->scrub, true},
		{"tunnel", rule->tunnel, false}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(flags); i++)
		if (flags[i].value != flags[i].usual)
			r = json_put(entry, flags[i].key, json_boolean(flags[i].value));
	return r;
}

/* Put the keys of a rule, except those that have their default. */
static int put_rule(json_t *entry, const struct allow_rule *rule)
{
	const struct {
		const char *key, *text;
	} texts[] = {{"host", rule->host}, {"path", rule->path}, {"path_prefix", rule->path_prefix},
		{"query", rule->no_query ? "none" : NULL}, {"user", rule->user}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		if (texts[i].text)
			r = json_put(entry, texts[i].key, json_text(texts[i].text));
	if (r == 0 && rule->methods)
		r = json_put(entry, "methods", json_texts(rule->methods));
	if (r == 0 && rule->has_graphql)
		r = json_put(entry, "graphql", list_graphql(rule));
	if (r == 0 && rule->schemes != (POLICY_HTTPS | POLICY_HTTP))
		r = json_put(entry, "schemes", json_pack("[s]", policy_scheme_word(rule->schemes)));
	if (r == 0 && rule->n_ports)
		r = json_put(entry, "ports", list_ports(rule));
	if (r == 0 && rule->allow_private)
		r = json_put(entry, "allow_private", json_true());
	else if (r == 0 && rule->n_private_ranges)
		r = put_ranges(entry, list_ranges(rule));
	return r == 0 ? put_flags(entry, rule) : r;
}

static int add_rule(json_t *domains, json_t *entries, const struct allow_rule *rule)
{
	json_t *entry;

	if (rule->is_domain)
		return json_array_append_new(domains, json_text(rule->host));
	entry = json_object();
	if (!entry || json_array_append_new(entries, entry) < 0)
		return -1;
	return put_rule(entry, rule);
}

int cloche_allowlist_json(const cloche_allowlist *list, char **ret, cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(JSON_MAX);
	json_t *domains = json_array(), *entries = json_array();
	_cleanup_json_ json_t *all =
		json_pack("{s:o, s:o}", "domains", domains, "url_prefixes", entries);

	for (size_t i = 0; all && i < allowlist_count(list->rules); i++)
		if (add_rule(domains, entries, allowlist_rule(list->rules, i)) < 0)
			json_decrefp(&all);
	if (!all || json_text_write(&text, all, 2) < 0)
		return err_nomem(err);
	*ret = str_dup(buf_str(&text));
	return *ret ? 0 : err_nomem(err);
}
