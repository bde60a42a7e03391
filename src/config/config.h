/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading the configuration file: shared by config.c and config_*.c. Each function returns 0, or
 * negative with a message that names the place in the file. */

#include "config/asks.h"
#include "sandbox/options.h"
#include <yaml.h>

struct found;

struct config {
	cloche_sandbox *sb;
	yaml_document_t doc;
	const char *file;
	struct cloche_err *err;
	struct asks *asks;         /* NULL: it is read */
	cloche_allowlist *allow;   /* with asks: gets the rules that it has */
	const struct found *found; /* the project; NULL: the person has named the file */
	unsigned turn;             /* which keys are read now */
};

/* A key that a mapping may have. read() gets the value and where to store it: `at` bytes into the
 * `into` of config_walk().
 *
 * ask() adds a line for each thing that needs the user's consent in a file that was only found
 * (INV-CONSENT). NULL: the whole value needs consent, so that a key without an ask() is never
 * granted silently. config_ask_nothing: nothing needs consent. If a key asks for its whole value,
 * the ask() of the keys below it are not called. */
struct config_key {
	const char *name;
	int (*read)(struct config *c, yaml_node_t *value, void *into);
	int (*ask)(struct config *c, const struct config_key *key, yaml_node_t *value);
	size_t at;
	const struct sandbox_option *option; /* replaces read(), or NULL */
	const struct config_kind *kind;      /* the same: the value is a mapping of these */
	/* null is an error. By default a key with null is one that is not there. */
	bool needs_value;
	unsigned turn; /* as in struct sandbox_option */
};

/* Entries of one kind, each under a name of its own. */
struct config_kind {
	const char *what;     /* for messages: "GitHub App" */
	const char *expected; /* "expected a mapping of GitHub Apps" */
	const struct config_key *keys;
	size_t n;
	size_t size; /* of what the keys are read into, which is zero before */
	int (*add)(struct config *c, yaml_node_t *at, const char *name, void *entry);
	void (*done)(void *entry); /* wipe and free what is in it */
};

/* The most keys of a mapping: config_walk() keeps one bit for each. */
enum { CONFIG_MAX_KEYS = 64, CONFIG_TURNS = 3 };

/* Set an error about this place. */
int config_bad(struct config *c, const yaml_node_t *at, const char *what);
yaml_node_t *config_node(struct config *c, int index);
/* The text of a scalar, or the null view for any other node; borrowed. */
struct str config_scalar(const yaml_node_t *n);
/* The text of a scalar as a heap string: as it stands, or with !env the variable that it names. */
_warn_unused_ int config_value(struct config *c, const yaml_node_t *n, char **ret);
/* Read a mapping, which may have these keys and no others. */
_warn_unused_ int config_walk(
	struct config *c, yaml_node_t *map, const struct config_key *keys, size_t n, void *into);
/* Return the index of a mapping's key, whose bit must not be set in *seen yet; then it is. */
_warn_unused_ int config_find_key(struct config *c, const yaml_node_t *name,
	const struct config_key *keys, size_t n, uint64_t *seen);
/* Readers: a list of texts (into: char ***), a flag (bool *), a text (char **). */
_warn_unused_ int config_strings(struct config *c, yaml_node_t *value, void *into);
_warn_unused_ int config_bool(struct config *c, yaml_node_t *value, void *into);
_warn_unused_ int config_text(struct config *c, yaml_node_t *value, void *into);
/* The sandbox's secrets, made if there are none yet; NULL on lack of memory. */
cloche_secrets *config_secrets(struct config *c);

/* Whether it is null: no text, ~ or null, not quoted. */
bool config_is_null(const yaml_node_t *n);
static inline bool config_is_left_out(const struct config_key *key, const yaml_node_t *value)
{
	return !key->needs_value && config_is_null(value);
}
bool config_is_tagged(const yaml_node_t *n, const char *tag);
/* Whether the value names a variable of the caller. */
bool config_is_from_caller(const yaml_node_t *n);
/* Read the text of a file into sb, or list in ret what it asks for, and add its rules to allow.
 * name is for messages. found: the project in which it was found (borrowed), or NULL. */
_warn_unused_ int config_read(cloche_sandbox *sb, const struct found *found, const char *name,
	struct str text, struct cloche_err *err);
_warn_unused_ int config_ask(const char *name, struct str text, struct asks *ret,
	cloche_allowlist *allow, struct cloche_err *err);

/* config_options.c: keys that are options. Read the value of one. */
_warn_unused_ int config_read_option(
	struct config *c, yaml_node_t *value, const struct sandbox_option *o);
/* As config_value(), but without a tag. */
_warn_unused_ int config_plain(struct config *c, const yaml_node_t *n, char **ret);
/* Make at most so many keys of the table of options; return their number. */
size_t config_option_keys(struct config_key *ret, size_t most);
/* Make those of resource_limits; return their number. */
size_t config_limit_keys(struct config_key ret[static CONFIG_MAX_KEYS]);
int config_read_image(struct config *c, yaml_node_t *value, void *into);
int config_read_limits(struct config *c, yaml_node_t *value, void *into);
int config_ask_limits(struct config *c, const struct config_key *key, yaml_node_t *value);

/* config_tell.c. Tell what was set by a mapping that was read with these keys. */
_warn_unused_ int config_tell(
	struct config *c, yaml_node_t *root, const struct config_key *keys, size_t n);

/* config_ask.c: for tables of keys */
int config_ask_nothing(struct config *c, const struct config_key *key, yaml_node_t *value);
/* Ask for the whole value: a line for each entry or item. */
int config_ask_whole(struct config *c, const struct config_key *key, yaml_node_t *value);
/* Add what a value says, in words. */
void config_ask_words(struct config *c, struct ask_line *line, yaml_node_t *n);
int config_ask_flag(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_hide(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_rules(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_env(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_pass_env(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_network(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_timeout(struct config *c, const struct config_key *key, yaml_node_t *value);
int config_ask_nofile(struct config *c, const struct config_key *key, yaml_node_t *value);
/* Ask, as the table says, for what a mapping has. */
_warn_unused_ int config_ask_walk(
	struct config *c, yaml_node_t *map, const struct config_key *keys, size_t n);

/* config_secrets.c: masked_secrets, signing_credentials */
extern const struct config_kind config_masked, config_signing;

/* config_github.c: github_app_credentials */
extern const struct config_kind config_github;

/* Free a credential after wiping it. NULL is allowed. */
void config_text_wipe(char *text);
