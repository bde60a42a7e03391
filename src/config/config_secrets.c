/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that are masked, and those that sign. */
#include "config/config.h"

cloche_secrets *config_secrets(struct config *c)
{
	if (!c->sb->secrets)
		c->sb->secrets = cloche_secrets_new();
	return c->sb->secrets;
}

/* --- masked secrets --- */

struct masked_entry {
	char *value;
	char **scopes, **headers;
	bool allow_foreign;
};

static void masked_entry_done(void *entry)
{
	struct masked_entry *e = entry;

	config_text_wipe(e->value);
	strv_free(e->scopes);
	strv_free(e->headers);
}

static int masked_entry_add(struct config *c, yaml_node_t *at, const char *name, void *entry)
{
	const struct masked_entry *e = entry;

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

static const struct config_key masked_keys[] = {
	{"value", config_text, .at = offsetof(struct masked_entry, value)},
	{"scopes", config_strings, .at = offsetof(struct masked_entry, scopes)},
	{"headers", config_strings, .at = offsetof(struct masked_entry, headers)},
	{"allow_foreign_credentials", config_bool,
		.at = offsetof(struct masked_entry, allow_foreign)},
};

const struct config_kind config_masked = {
	.what = "masked secret",
	.expected = "expected a mapping of secrets",
	.keys = masked_keys,
	.n = ARRAY_SIZE(masked_keys),
	.size = sizeof(struct masked_entry),
	.add = masked_entry_add,
	.done = masked_entry_done,
};

/* --- signing credentials --- */

struct signing_value {
	char *name; /* of the variable in the room; NULL: the default */
	char *value;
};

struct signing_entry {
	char *type;
	struct signing_value values[SIGNING_VALUES]; /* key id, secret key, session token */
	char **scopes;
	bool allow_foreign;
};

static void signing_entry_done(void *entry)
{
	struct signing_entry *e = entry;

	for (size_t i = 0; i < SIGNING_VALUES; i++) {
		config_text_wipe(e->values[i].value);
		free(e->values[i].name);
	}
	free(e->type);
	strv_free(e->scopes);
}

static int read_signing_type(struct config *c, yaml_node_t *value, void *into)
{
	char **ret = into;
	int r = config_text(c, value, ret);

	if (r == 0 && strcmp(*ret, "aws-sigv4") != 0)
		r = config_bad(c, value, "the only type of signing credentials is aws-sigv4");
	return r;
}

/* With !env the variable has the same name in the room. */
static int read_signing_value(struct config *c, yaml_node_t *value, void *into)
{
	struct signing_value *v = into;
	int r = config_text(c, value, &v->value);

	if (r < 0 || !config_is_tagged(value, "!env"))
		return r;
	v->name = str_dup(config_scalar(value));
	return v->name ? 0 : err_nomem(c->err);
}

/* Credentials that do not expire have no token, so the value may be empty. */
static int read_signing_token(struct config *c, yaml_node_t *value, void *into)
{
	if (value->type == YAML_SCALAR_NODE && !config_is_tagged(value, "!env") &&
		config_scalar(value).n == 0)
		return 0;
	return read_signing_value(c, value, into);
}

static int signing_entry_add(struct config *c, yaml_node_t *at, const char *name, void *entry)
{
	const struct signing_entry *e = entry;
	const char *names[SIGNING_VALUES], *values[SIGNING_VALUES];

	if (!e->type || !e->values[0].value || !e->values[1].value || !e->scopes)
		return config_bad(c, at,
			"signing credentials need type, access_key_id, secret_access_key and "
			"scopes");
	if (!config_secrets(c))
		return err_nomem(c->err);
	for (size_t i = 0; i < SIGNING_VALUES; i++) {
		names[i] = e->values[i].name;
		values[i] = e->values[i].value;
	}
	return secrets_add_signing(c->sb->secrets, names, values, (const char *const *)e->scopes,
		e->allow_foreign, c->err);
}

static const struct config_key signing_keys[] = {
	{"type", read_signing_type, .at = offsetof(struct signing_entry, type)},
	{"access_key_id", read_signing_value, .at = offsetof(struct signing_entry, values[0])},
	{"secret_access_key", read_signing_value, .at = offsetof(struct signing_entry, values[1])},
	{"session_token", read_signing_token, .at = offsetof(struct signing_entry, values[2])},
	{"scopes", config_strings, .at = offsetof(struct signing_entry, scopes)},
	{"allow_foreign_credentials", config_bool,
		.at = offsetof(struct signing_entry, allow_foreign)},
};

const struct config_kind config_signing = {
	.what = "signing credentials",
	.expected = "expected a mapping of signing credentials",
	.keys = signing_keys,
	.n = ARRAY_SIZE(signing_keys),
	.size = sizeof(struct signing_entry),
	.add = signing_entry_add,
	.done = signing_entry_done,
};
