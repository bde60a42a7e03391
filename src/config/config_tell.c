/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: after a file was read, what it has set is told, key by key, to whoever wants
 * to know (cloche_sandbox_on_setting()). The words are those that also ask for consent, so that no
 * secret is shown. What the command line has settled, and a limit that was not lifted, is not
 * told. */
#include "config/config.h"
#include "config/found.h"
#include "fs/fs.h"

#include <errno.h>
#include <stdio.h>

struct telling {
	struct config *c;
	const char *file; /* the path of it */
};

/* Stores the value in words. The caller has to free it. */
static int tell_words(const struct telling *t, const char *before, yaml_node_t *value, char **ret)
{
	_cleanup_(ask_line_donep) struct ask_line line = ASK_LINE_INIT;

	ask_line_add(&line, before);
	if (value->type == YAML_SCALAR_NODE && !config_is_from_caller(value)) {
		if (line.error == 0)
			line.error = buf_add_str(&line.text, config_scalar(value));
	} else {
		config_ask_words(t->c, &line, value);
	}
	*ret = line.error == 0 ? str_dup(buf_str(&line.text)) : NULL;
	return (line.error == 0 && !*ret) || line.error == -ENOMEM ? err_nomem(t->c->err) : 0;
}

/* Tells "KEY" or "KEY.NAME". What is too long for words is not told. */
static int tell_value(
	const struct telling *t, const char *key, const char *name, yaml_node_t *value, bool adds)
{
	bool image = strcmp(key, "image") == 0;
	_cleanup_(freep) char *whole = NULL, *words = NULL;
	int r = tell_words(t, image ? "image:" : "", value, &words);

	if (r < 0)
		return r;
	if (asprintf(&whole, "%s%s%s", image ? "root" : key, name ? "." : "", name ? name : "") <
		0) {
		whole = NULL;
		return err_nomem(t->c->err);
	}
	if (words)
		sandbox_tell_setting(t->c->sb, &(cloche_setting){.key = whole,
						       .value = words,
						       .file = t->file,
						       .line = value->start_mark.line + 1,
						       .adds = adds});
	return 0;
}

static int tell_items(const struct telling *t, const char *key, yaml_node_t *list)
{
	int r = 0;

	for (yaml_node_item_t *i = list->data.sequence.items.start;
		r == 0 && i < list->data.sequence.items.top; i++)
		r = tell_value(t, key, NULL, config_node(t->c, *i), true);
	return r;
}

/* Returns 1 if the limit that the file says is the one that holds. */
static int tell_holds(const struct telling *t, const struct sandbox_option *o, yaml_node_t *value)
{
	struct cloche_sandbox alone = {0};
	const uint64_t *holds = option_number(t->c->sb, o);
	_cleanup_(freep) char *text = NULL;
	int r;

	if (!holds)
		return 1;
	text = str_dup(config_scalar(value));
	if (!text)
		return err_nomem(t->c->err);
	r = option_set(&alone, o, text, t->c->err);
	return r < 0 ? r : *option_number(&alone, o) == *holds;
}

static int tell_option(const struct telling *t, const struct sandbox_option *o, yaml_node_t *value)
{
	char key[64];
	int r;

	if (sandbox_is_settled(t->c->sb, o->name))
		return 0;
	r = tell_holds(t, o, value);
	if (r <= 0)
		return r;
	if (option_is_list(o) && value->type == YAML_SEQUENCE_NODE)
		return tell_items(t, o->file, value);
	return tell_value(t, option_key(o, key), NULL, value, option_is_list(o));
}

static int tell_limits(const struct telling *t, yaml_node_t *map)
{
	struct config_key keys[CONFIG_MAX_KEYS];
	size_t n = config_limit_keys(keys);
	uint64_t seen = 0;
	int r = 0;

	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		r == 0 && p < map->data.mapping.pairs.top; p++) {
		yaml_node_t *value = config_node(t->c, p->value);
		int i = config_find_key(t->c, config_node(t->c, p->key), keys, n, &seen);

		if (i < 0)
			return i;
		if (!config_is_null(value))
			r = tell_option(t, keys[i].option, value);
	}
	return r;
}

static int tell_entries(const struct telling *t, const char *key, yaml_node_t *map)
{
	int r = 0;

	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
		r == 0 && p < map->data.mapping.pairs.top; p++) {
		_cleanup_(freep) char *name = NULL;

		r = tell_words(t, "", config_node(t->c, p->key), &name);
		if (r == 0 && name)
			r = tell_value(t, key, name, config_node(t->c, p->value), false);
	}
	return r;
}

/* Both forms of it are one key. What has once been taken away no file gives back. */
static int tell_network(const struct telling *t, yaml_node_t *value)
{
	yaml_node_pair_t *pair = NULL;
	bool on = true;
	int r;

	if (value->type == YAML_MAPPING_NODE) {
		pair = value->data.mapping.pairs.start;
		value = pair < value->data.mapping.pairs.top ? config_node(t->c, pair->value)
							     : NULL;
	}
	if (!value || config_is_null(value) || sandbox_is_settled(t->c->sb, "net"))
		return 0;
	r = config_bool(t->c, value, &on);
	if (r == 0 && (!on || t->c->sb->net != SANDBOX_NET_NONE))
		sandbox_tell_setting(t->c->sb, &(cloche_setting){.key = "network_sandbox",
						       .value = on ? "true" : "false",
						       .file = t->file,
						       .line = value->start_mark.line + 1});
	return r;
}

static int tell_key(const struct telling *t, const struct config_key *key, yaml_node_t *value)
{
	const char *name = strcmp(key->name, "container_env") == 0 ? "env" : key->name;

	if (strcmp(name, "network_sandbox") == 0 || strcmp(name, "network") == 0)
		return tell_network(t, value);
	if (key->option)
		return tell_option(t, key->option, value);
	if (key->read == config_read_limits && value->type == YAML_MAPPING_NODE)
		return tell_limits(t, value);
	if ((key->read == config_read_image && sandbox_is_settled(t->c->sb, "root")) ||
		sandbox_is_settled(t->c->sb, name))
		return 0;
	if (value->type == YAML_MAPPING_NODE)
		return tell_entries(t, name, value);
	/* Servers are one value, in whatever form. */
	return value->type == YAML_SEQUENCE_NODE && strcmp(name, "pass_env") == 0
		       ? tell_items(t, name, value)
		       : tell_value(t, name, NULL, value, false);
}

int config_tell(struct config *c, yaml_node_t *root, const struct config_key *keys, size_t n)
{
	_cleanup_(freep) char *file = c->found ? fs_join(c->found->dir, c->file) : strdup(c->file);
	const struct telling t = {.c = c, .file = file};
	uint64_t seen = 0;
	int r = file ? 0 : err_nomem(c->err);

	if (!c->sb->on_setting)
		return 0;
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
		r == 0 && p < root->data.mapping.pairs.top; p++) {
		yaml_node_t *value = config_node(c, p->value);
		int i = config_find_key(c, config_node(c, p->key), keys, n, &seen);

		if (i < 0)
			return i;
		if (!config_is_left_out(&keys[i], value))
			r = tell_key(&t, &keys[i], value);
	}
	return r;
}
