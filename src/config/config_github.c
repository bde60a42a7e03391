/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the configuration file that is about GitHub Apps:
 *
 *	github_app_credentials:
 *	  GH_TOKEN:
 *	    app_id: 12345                     # or the client id
 *	    installation_id: 67890
 *	    private_key: !env GH_APP_KEY      # PEM; or private_key_file: PATH
 *	    scopes: [api.github.com, github.com]
 *	    base_url: https://api.github.com  # default
 *	    permissions: {contents: read}     # default: all that the installation has
 *	    repositories: [name, ...]         # default: likewise
 *	    allow_foreign_credentials: false
 */
#include "base/fd.h"
#include "base/strv.h"
#include "config/config.h"

#include <fcntl.h>

enum { KEY_MAX = 64 * 1024, PERMISSIONS_MAX = 64 * 1024 };

struct github_entry {
	char *app_id, *installation_id, *key, *key_file, *base_url;
	char *permissions; /* JSON */
	char **scopes, **repositories;
	bool allow_foreign;
};

static void github_entry_done(void *entry)
{
	struct github_entry *e = entry;

	free(e->app_id);
	free(e->installation_id);
	config_text_wipe(e->key);
	free(e->key_file);
	free(e->base_url);
	free(e->permissions);
	strv_free(e->scopes);
	strv_free(e->repositories);
}

static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((s.p[i] < 'a' || s.p[i] > 'z') && s.p[i] != '_')
			return false;
	return s.n > 0;
}

/* Makes the JSON that is sent to GitHub. */
static int read_permissions(struct config *c, yaml_node_t *value, void *into)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(PERMISSIONS_MAX);
	char **ret = into;
	const char *sep = "{";
	int r = 0;

	if (value->type != YAML_MAPPING_NODE)
		return config_bad(c, value, "expected a mapping (permission: read or write)");
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		r == 0 && p < value->data.mapping.pairs.top; p++) {
		struct str name = config_scalar(config_node(c, p->key));
		struct str level = config_scalar(config_node(c, p->value));

		if (!is_word(name) || !is_word(level))
			return config_bad(
				c, value, "expected a mapping (permission: read or write)");
		r = buf_printf(&out, "%s\"%.*s\":\"%.*s\"", sep, STR_FMT(name), STR_FMT(level));
		sep = ",";
	}
	if (r == 0)
		r = buf_add_str(&out, *sep == ',' ? STR("}") : STR("{}"));
	*ret = r == 0 ? str_dup(buf_str(&out)) : NULL;
	return *ret ? 0 : err_nomem(c->err);
}

static int load_key(struct config *c, struct github_entry *e)
{
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(KEY_MAX);
	int r = fd_read_file(AT_FDCWD, e->key_file, &text, c->err);

	if (r < 0)
		return r;
	e->key = str_dup(buf_str(&text));
	return e->key ? 0 : err_nomem(c->err);
}

static int github_entry_add(struct config *c, yaml_node_t *at, const char *name, void *entry)
{
	struct github_entry *e = entry;
	cloche_secrets *secrets = config_secrets(c);
	cloche_github_app app;

	if (!e->app_id || !e->installation_id || !e->key == !e->key_file || !e->scopes)
		return config_bad(c, at,
			"a GitHub App needs app_id, installation_id, scopes, and private_key or "
			"private_key_file");
	if (!secrets)
		return err_nomem(c->err);
	if (!e->key) {
		int r = load_key(c, e);

		if (r < 0)
			return r;
	}
	app = (cloche_github_app){.size = sizeof(app),
		.app_id = e->app_id,
		.installation_id = e->installation_id,
		.private_key = e->key,
		.base_url = e->base_url,
		.permissions = e->permissions,
		.repositories = (const char *const *)e->repositories,
		.hosts = (const char *const *)e->scopes,
		.allow_foreign_credentials = e->allow_foreign};
	return cloche_secrets_add_github_app(secrets, name, &app, c->err);
}

static const struct config_key github_keys[] = {
	{"app_id", config_text, .at = offsetof(struct github_entry, app_id)},
	{"installation_id", config_text, .at = offsetof(struct github_entry, installation_id)},
	{"private_key", config_text, .at = offsetof(struct github_entry, key)},
	{"private_key_file", config_text, .at = offsetof(struct github_entry, key_file)},
	{"base_url", config_text, .at = offsetof(struct github_entry, base_url)},
	{"scopes", config_strings, .at = offsetof(struct github_entry, scopes)},
	/* Without these the token can do all that the installation can, so nobody is to get that by
	 * a value that was forgotten. */
	{"permissions", read_permissions, .at = offsetof(struct github_entry, permissions),
		.needs_value = true},
	{"repositories", config_strings, .at = offsetof(struct github_entry, repositories),
		.needs_value = true},
	{"allow_foreign_credentials", config_bool,
		.at = offsetof(struct github_entry, allow_foreign)},
};

const struct config_kind config_github = {
	.what = "GitHub App",
	.expected = "expected a mapping of GitHub Apps",
	.keys = github_keys,
	.n = ARRAY_SIZE(github_keys),
	.size = sizeof(struct github_entry),
	.add = github_entry_add,
	.done = github_entry_done,
};
