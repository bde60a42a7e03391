/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-CONSENT): before a configuration file that was only found is obeyed,
 * each of its keys is searched for what needs the user's consent. This uses the table of keys that
 * also reads the file; the value of a key without an ask() is shown in full. Values of variables
 * are neither read nor shown here, and secrets in the file itself are not shown. */
#include "agent/driver.h"
#include "base/parse.h"
#include "config/config.h"
#include "workspace/hide.h"

#include <errno.h>
#include <sys/resource.h>

enum { DEEPEST = 4 };

int config_ask_nothing(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	return 0;
}

/* The words for keys in a sentence; any other key stands for itself. */
static const struct phrase {
	const char *key, *words;
	bool secret; /* do not show a value that is in the file itself */
} phrases[] = {
	{"place", "make the room elsewhere", false},
	{"mounts", "see of this machine, and change unless it ends in :ro", false},
	{"tools", "see your program and what it needs", false},
	{"ports", "open a port of this machine ([ADDR:]HOST:GUEST)", false},
	{"secrets", "use a masked secret", false},
	{"connect_to", "send requests elsewhere (HOST:PORT:ADDRESS:PORT)", false},
	{"allow_write", "change what this machine obeys", false},
	{"hide", "see what is hidden without this file", false},
	{"user", "be this user inside", false},
	{"nested", "make namespaces and mounts inside, which isolates less", false},
	{"provider", "be made by the provider", false},
	{"root", "have the root filesystem", false},
	{"image", "have the root filesystem of the image", false},
	{"pull", "get its image from a registry", false},
	{"limits", "go on if a limit cannot be enforced", false},
	{"sync", "bring to the other place", false},
	{"far_timeout", "go on there without a connection", false},
	{"env_file", "get the variables of your file", false},
	{"upstream_ca", "believe servers that the certificates of your file vouch for", false},
	{"keep_changes", "keep what it changes in your directory", false},
	{"network_log", "write to your file", false},
	{"record", "be recorded", false},
	{"record_sync", "be recorded and synced", false},
	{"masked_secrets", "use a masked secret", false},
	{"signing_credentials", "sign with credentials", false},
	{"github_app_credentials", "use a token of a GitHub App", false},
	{"value", "from", true},
	{"scopes", "to", false},
	{"headers", "in", false},
	{"access_key_id", "key id from", true},
	{"secret_access_key", "secret key from", true},
	{"session_token", "session token from", true},
	{"private_key", "signed with the key from", true},
	{"private_key_file", "signed with the key in your file", false},
	{"app_id", "App", false},
	{"installation_id", "installation", false},
	{"base_url", "at", false},
	{"allow_foreign_credentials", "other credentials may pass there", false},
};

static struct phrase phrase_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (strcmp(phrases[i].key, key) == 0)
			return phrases[i];
	return (struct phrase){.key = key, .words = NULL};
}

static void put_scalar(struct ask_line *line, const yaml_node_t *n, bool secret)
{
	bool from_caller = config_is_from_caller(n);

	if (from_caller)
		ask_line_add(line, "your variable ");
	if (secret && !from_caller)
		ask_line_add(line, "the file itself");
	else
		ask_line_word(line, config_scalar(n));
}

static void put_node(
	struct config *c, struct ask_line *line, yaml_node_t *n, bool secret, int depth);

static void put_pairs(struct config *c, struct ask_line *line, yaml_node_t *map, int depth)
{
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		line->error == 0 && p < map->data.mapping.pairs.top; p++) {
		yaml_node_t *name = config_node(c, p->key);
		_cleanup_(freep) char *key = str_dup(config_scalar(name));
		struct phrase words = phrase_of(key ? key : "");

		if (!key)
			line->error = -ENOMEM;
		if (p > map->data.mapping.pairs.start)
			ask_line_add(line, "; ");
		if (words.words)
			ask_line_add(line, words.words);
		else
			put_scalar(line, name, false);
		ask_line_add(line, " ");
		put_node(c, line, config_node(c, p->value), words.secret, depth);
	}
}

static void put_items(
	struct config *c, struct ask_line *line, yaml_node_t *list, bool secret, int depth)
{
	for (yaml_node_item_t *i = list->data.sequence.items.start;
		line->error == 0 && i < list->data.sequence.items.top; i++) {
		if (i > list->data.sequence.items.start)
			ask_line_add(line, ", ");
		put_node(c, line, config_node(c, *i), secret, depth);
	}
}

/* The depth is limited because aliases can make a document contain itself. */
static void put_node(
	struct config *c, struct ask_line *line, yaml_node_t *n, bool secret, int depth)
{
	if (depth == 0)
		line->error = line->error ? line->error : -ELOOP;
	else if (n->type == YAML_MAPPING_NODE)
		put_pairs(c, line, n, depth - 1);
	else if (n->type == YAML_SEQUENCE_NODE)
		put_items(c, line, n, secret, depth - 1);
	else
		put_scalar(line, n, secret);
}

void config_ask_words(struct config *c, struct ask_line *line, yaml_node_t *n)
{
	put_node(c, line, n, false, DEEPEST);
}

static int add_line(struct config *c, const struct ask_line *line)
{
	if (line->error < 0 && line->error != -ENOMEM)
		return err_set(
			c->err, E_LIMIT, "%s asks for more than anybody could read", c->file);
	return asks_add(c->asks, line, c->err);
}

/* "WORDS NAME: its parts" */
static int ask_entry(struct config *c, const char *words, yaml_node_t *name, yaml_node_t *value)
{
	_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;

	ask_line_add(&line, words);
	if (name) {
		ask_line_add(&line, " ");
		put_scalar(&line, name, false);
	}
	ask_line_add(&line, ": ");
	put_node(c, &line, value, false, DEEPEST);
	return add_line(c, &line);
}

static bool config_key_is_list(const struct config_key *key)
{
	return key->option && option_is_list(key->option);
}

int config_ask_whole(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	struct phrase p = phrase_of(key->name);
	const char *words = p.words ? p.words : key->name;
	int r = 0;

	if (value->type == YAML_SEQUENCE_NODE && config_key_is_list(key)) {
		for (yaml_node_item_t *i = value->data.sequence.items.start;
			r == 0 && i < value->data.sequence.items.top; i++)
			r = ask_entry(c, words, NULL, config_node(c, *i));
		return r;
	}
	if (value->type != YAML_MAPPING_NODE)
		return ask_entry(c, words, NULL, value);
	for (yaml_node_pair_t *e = value->data.mapping.pairs.start;
		r == 0 && e < value->data.mapping.pairs.top; e++)
		r = ask_entry(c, words, config_node(c, e->key), config_node(c, e->value));
	return r;
}

int config_ask_walk(struct config *c, yaml_node_t *map, const struct config_key *keys, size_t n)
{
	uint64_t seen = 0;
	int r = 0;

	/* Anything but a mapping is refused when it is read. */
	if (map->type != YAML_MAPPING_NODE)
		return 0;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		r == 0 && p < map->data.mapping.pairs.top; p++) {
		yaml_node_t *value = config_node(c, p->value);
		/* Nobody is asked about a file that would then be refused. */
		int i = config_find_key(c, config_node(c, p->key), keys, n, &seen);

		if (i < 0)
			return i;
		if (!config_is_left_out(&keys[i], value))
			r = (keys[i].ask ? keys[i].ask : config_ask_whole)(c, &keys[i], value);
	}
	return r;
}

int config_ask_env(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	int r = 0;

	if (value->type != YAML_MAPPING_NODE)
		return 0;
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		r == 0 && p < value->data.mapping.pairs.top; p++) {
		_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;
		yaml_node_t *name = config_node(c, p->key), *text = config_node(c, p->value);
		/* If an agent's credential is set, it gets no masked one, and nothing keeps other
		 * credentials out. */
		bool credential = agent_is_credential(config_scalar(name));

		if (!credential && !config_is_from_caller(name) && !config_is_from_caller(text))
			continue;
		ask_line_add(&line, credential ? "set the credential of agents " : "read as ");
		put_scalar(&line, name, false);
		ask_line_add(&line, ": ");
		put_node(c, &line, text, true, DEEPEST);
		r = add_line(c, &line);
	}
	return r;
}

int config_ask_pass_env(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	int r = 0;

	if (value->type != YAML_SEQUENCE_NODE)
		return config_ask_whole(c, key, value);
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		r == 0 && i < value->data.sequence.items.top; i++) {
		_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;
		yaml_node_t *name = config_node(c, *i);

		ask_line_add(&line, config_is_from_caller(name)
					    ? "read the variable that is named by "
					    : "read your variable ");
		put_node(c, &line, name, false, DEEPEST);
		r = add_line(c, &line);
	}
	return r;
}

/* Returns false if it is off. Other values are refused when they are read. */
static bool ask_is_on(struct config *c, yaml_node_t *value)
{
	struct cloche_err *err = c->err;
	bool on = true;

	c->err = NULL;
	if (config_bool(c, value, &on) < 0)
		on = true;
	c->err = err;
	return on;
}

int config_ask_flag(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;
	struct phrase p = phrase_of(key->name);

	if (!ask_is_on(c, value))
		return 0;
	ask_line_add(&line, p.words ? p.words : key->name);
	return add_line(c, &line);
}

int config_ask_network(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;

	if (!ask_is_on(c, value))
		return 0;
	ask_line_add(&line, "have a network, behind the gateway");
	return add_line(c, &line);
}

/* Adds the rules as the option does. */
static int ask_rule(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	struct cloche_sandbox only = {.allowlist = c->allow};
	_cleanup_(freep) char *text = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = config_plain(c, value, &text);

	if (r < 0)
		return r;
	return option_set(&only, key->option, text, &why) < 0 ? config_bad(c, value, why.message)
							      : 0;
}

int config_ask_rules(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	int r = 0;

	if (value->type != YAML_SEQUENCE_NODE)
		return ask_rule(c, key, value);
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		r == 0 && i < value->data.sequence.items.top; i++)
		r = ask_rule(c, key, config_node(c, *i));
	return r;
}

/* Asks for a rule that shows something. */
static int ask_hide(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	return value->type != YAML_SCALAR_NODE || config_is_from_caller(value) ||
			       hide_rule_shows(config_scalar(value))
		       ? config_ask_whole(c, key, value)
		       : 0;
}

int config_ask_hide(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	int r = 0;

	if (value->type != YAML_SEQUENCE_NODE)
		return ask_hide(c, key, value);
	for (yaml_node_item_t *i = value->data.sequence.items.start;
		r == 0 && i < value->data.sequence.items.top; i++)
		r = ask_hide(c, key, config_node(c, *i));
	return r;
}

/* Asks for a limit if it is above the one that holds without the file. */
static int ask_limit(struct config *c, const char *words, yaml_node_t *value, bool above)
{
	return above ? ask_entry(c, words, NULL, value) : 0;
}

int config_ask_timeout(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	uint64_t usec;

	return ask_limit(c, "run longer than an agent does by default (5m)", value,
		parse_duration(config_scalar(value), &usec) < 0 ||
			usec / 1000 > AGENT_DEFAULT_TIMEOUT_MS);
}

int config_ask_nofile(struct config *c, const struct config_key *key, yaml_node_t *value)
{
	struct rlimit limit;
	uint64_t n;

	return ask_limit(c, "open more files than your own limit", value,
		parse_u64(config_scalar(value), UINT64_MAX, &n) < 0 ||
			getrlimit(RLIMIT_NOFILE, &limit) < 0 || n > limit.rlim_max);
}
