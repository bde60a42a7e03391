/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that are masked, and those that sign. */
#include "config/config.h"

struct secret_entry {
	char *value;
	char **scopes, **headers;
	bool allow_foreign;
};

static int read_secret_value(struct config *c, yaml_node_t *value, void *into)
{
	return config_text(c, value, &((struct secret_entry *)into)->value);
}

static int read_secret_scopes(struct config *c, yaml_node_t *value, void *into)
{
	return config_strings(c, value, &((struct secret_entry *)into)->scopes);
}

static int read_secret_headers(struct config *c, yaml_node_t *value, void *into)
{
	return config_strings(c, value, &((struct secret_entry *)into)->headers);
}

static int read_secret_foreign(struct config *c, yaml_node_t *value, void *into)
{
	return config_bool(c, value, &((struct secret_entry *)into)->allow_foreign);
}

cloche_secrets *config_secrets(struct config *c)
{
	if (!c->sb->secrets)
		c->sb->secrets = cloche_secrets_new();
	return c->sb->secrets;
}

static int add_secret(struct config *c, yaml_node_t *at, const char *name, struct secret_entry *e)
{
	if (!e->value || !e->scopes || !e->headers)
		return config_bad(c, at, "a masked secret needs value, scopes and headers");
	/* An empty credential masks nothing, but its variable is set, since programs may look for
	 * it. */
	if (e->value[0] == '\0')
		return cloche_sandbox_set_env(c->sb, name, "", c->err);
	if (!config_secrets(c))
		return err_nomem(c->err);
	return cloche_secrets_add(c->sb->secrets, name, e->value, strlen(e->value),
		(const char *const *)e->scopes, (const char *const *)e->headers, e->allow_foreign,
		c->err);
}

static int read_secret(struct config *c, yaml_node_t *key, yaml_node_t *value)
{
	static const struct config_key keys[] = {
		{"value", read_secret_value},
		{"scopes", read_secret_scopes},
		{"headers", read_secret_headers},
		{"allow_foreign_credentials", read_secret_foreign},
	};
	_cleanup_(freep) char *name = NULL;
	struct secret_entry e = {0};
	int r = config_value(c, key, &name);

	if (r == 0)
		r = config_walk(c, value, keys, ARRAY_SIZE(keys), &e);
	if (r == 0)
		r = add_secret(c, value, name, &e);
	if (e.value)
		explicit_bzero(e.value, strlen(e.value));
	free(e.value);
	strv_free(e.scopes);
	strv_free(e.headers);
	return r < 0 && name ? err_wrap(c->err, r, "masked secret %s", name) : r;
}

int config_masked(struct config *c, yaml_node_t *value, void *into)
{
	if (value->type != YAML_MAPPING_NODE)
		return config_bad(c, value, "expected a mapping of secrets");
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		p < value->data.mapping.pairs.top; p++) {
		int r = read_secret(c, config_node(c, p->key), config_node(c, p->value));

		if (r < 0)
			return r;
	}
	return 0;
}

struct signing_entry {
	char *type;
	char *names[SIGNING_VALUES], *values[SIGNING_VALUES];
	char **scopes;
	bool allow_foreign;
};

static int read_signing_type(struct config *c, yaml_node_t *value, void *into)
{
	struct signing_entry *e = into;
	int r = config_text(c, value, &e->type);

	if (r == 0 && strcmp(e->type, "aws-sigv4") != 0)
		r = config_bad(c, value, "the only type of signing credentials is aws-sigv4");
	return r;
}

/* With !env the variable has the same name in the room. */
static int read_signing_value(struct config *c, yaml_node_t *value, struct signing_entry *e, int i)
{
	int r = config_text(c, value, &e->values[i]);

	if (r < 0 || !config_is_tagged(value, "!env"))
		return r;
	free(e->names[i]);
	e->names[i] = str_dup(config_scalar(value));
	return e->names[i] ? 0 : err_nomem(c->err);
}

static int read_key_id(struct config *c, yaml_node_t *value, void *into)
{
	return read_signing_value(c, value, into, 0);
}

static int read_secret_key(struct config *c, yaml_node_t *value, void *into)
{
	return read_signing_value(c, value, into, 1);
}

/* Credentials that do not expire have no token, so the value may be empty. */
static int read_token(struct config *c, yaml_node_t *value, void *into)
{
	if (value->type == YAML_SCALAR_NODE && !config_is_tagged(value, "!env") &&
		config_scalar(value).n == 0)
		return 0;
	return read_signing_value(c, value, into, 2);
}

static int read_signing_scopes(struct config *c, yaml_node_t *value, void *into)
{
	return config_strings(c, value, &((struct signing_entry *)into)->scopes);
}

static int read_signing_foreign(struct config *c, yaml_node_t *value, void *into)
{
	return config_bool(c, value, &((struct signing_entry *)into)->allow_foreign);
}

static int add_signing(struct config *c, yaml_node_t *at, struct signing_entry *e)
{
	if (!e->type || !e->values[0] || !e->values[1] || !e->scopes)
		return config_bad(c, at,
			"signing credentials need type, access_key_id, secret_access_key and "
			"scopes");
	if (!c->sb->secrets)
		c->sb->secrets = cloche_secrets_new();
	if (!c->sb->secrets)
		return err_nomem(c->err);
	return secrets_add_signing(c->sb->secrets, (const char *const *)e->names,
		(const char *const *)e->values, (const char *const *)e->scopes, e->allow_foreign,
		c->err);
}

static void signing_entry_done(struct signing_entry *e)
{
	for (size_t i = 0; i < SIGNING_VALUES; i++) {
		if (e->values[i])
			explicit_bzero(e->values[i], strlen(e->values[i]));
		free(e->values[i]);
		free(e->names[i]);
	}
	free(e->type);
	strv_free(e->scopes);
}

static int read_signing_one(struct config *c, yaml_node_t *key, yaml_node_t *value)
{
	static const struct config_key keys[] = {
		{"type", read_signing_type},
		{"access_key_id", read_key_id},
		{"secret_access_key", read_secret_key},
		{"session_token", read_token},
		{"scopes", read_signing_scopes},
		{"allow_foreign_credentials", read_signing_foreign},
	};
	_cleanup_(signing_entry_done) struct signing_entry e = {0};
	_cleanup_(freep) char *name = NULL;
	int r = config_value(c, key, &name);

	if (r == 0)
		r = config_walk(c, value, keys, ARRAY_SIZE(keys), &e);
	if (r == 0)
		r = add_signing(c, value, &e);
	return r < 0 && name ? err_wrap(c->err, r, "signing credentials %s", name) : r;
}

int config_signing(struct config *c, yaml_node_t *value, void *into)
{
	if (value->type != YAML_MAPPING_NODE)
		return config_bad(c, value, "expected a mapping of signing credentials");
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		p < value->data.mapping.pairs.top; p++) {
		int r = read_signing_one(c, config_node(c, p->key), config_node(c, p->value));

		if (r < 0)
			return r;
	}
	return 0;
}
