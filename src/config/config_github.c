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
#include "base/fs.h"
#include "base/strv.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>

enum { KEY_MAX = 64 * 1024, PERMISSIONS_MAX = 64 * 1024 };

struct entry {
	char *app_id, *installation_id, *key, *key_file, *base_url;
	char **scopes, **repositories;
	struct buf permissions;
	bool allow_foreign;
};

static void entry_done(struct entry *e)
{
	if (e->key)
		explicit_bzero(e->key, strlen(e->key));
	free(e->app_id);
	free(e->installation_id);
	free(e->key);
	free(e->key_file);
	free(e->base_url);
	strv_free(e->scopes);
	strv_free(e->repositories);
	buf_done(&e->permissions);
}

#define TEXT(name, member)                                                                         \
	static int read_##name(struct config *c, yaml_node_t *value, void *into)                   \
	{                                                                                          \
		return config_text(c, value, &((struct entry *)into)->member);                     \
	}
TEXT(app_id, app_id)
TEXT(installation_id, installation_id)
TEXT(key, key)
TEXT(key_file, key_file)
TEXT(base_url, base_url)

static int read_scopes(struct config *c, yaml_node_t *value, void *into)
{
	return config_strings(c, value, &((struct entry *)into)->scopes);
}

static int read_repositories(struct config *c, yaml_node_t *value, void *into)
{
	return config_strings(c, value, &((struct entry *)into)->repositories);
}

static int read_foreign(struct config *c, yaml_node_t *value, void *into)
{
	return config_bool(c, value, &((struct entry *)into)->allow_foreign);
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
	struct buf *out = &((struct entry *)into)->permissions;
	const char *sep = "{";
	int r = 0;

	if (value->type != YAML_MAPPING_NODE)
		return config_bad(c, value, "expected a mapping (permission: read or write)");
	buf_clear(out);
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		r == 0 && p < value->data.mapping.pairs.top; p++) {
		struct str name = config_scalar(config_node(c, p->key));
		struct str level = config_scalar(config_node(c, p->value));

		if (!is_word(name) || !is_word(level))
			return config_bad(
				c, value, "expected a mapping (permission: read or write)");
		r = buf_printf(out, "%s\"%.*s\":\"%.*s\"", sep, STR_FMT(name), STR_FMT(level));
		sep = ",";
	}
	if (r == 0)
		r = buf_add_str(out, *sep == ',' ? STR("}") : STR("{}"));
	return r < 0 ? err_nomem(c->err) : 0;
}

static int load_key(struct config *c, struct entry *e)
{
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(KEY_MAX);
	int r = fs_read_file(AT_FDCWD, e->key_file, &text, c->err);

	if (r < 0)
		return r;
	e->key = str_dup(buf_str(&text));
	return e->key ? 0 : err_nomem(c->err);
}

static int add(struct config *c, yaml_node_t *at, const char *name, struct entry *e)
{
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
	app = (cloche_github_app){.app_id = e->app_id,
		.installation_id = e->installation_id,
		.private_key = e->key,
		.base_url = e->base_url,
		.permissions = buf_len(&e->permissions) ? buf_cstr(&e->permissions) : NULL,
		.repositories = (const char *const *)e->repositories,
		.hosts = (const char *const *)e->scopes,
		.allow_foreign_credentials = e->allow_foreign};
	return cloche_secrets_add_github_app(secrets, name, &app, c->err);
}

static int read_app(struct config *c, yaml_node_t *key, yaml_node_t *value)
{
	static const struct config_key keys[] = {
		{"app_id", read_app_id},
		{"installation_id", read_installation_id},
		{"private_key", read_key},
		{"private_key_file", read_key_file},
		{"base_url", read_base_url},
		{"scopes", read_scopes},
		/* Without these the token can do all that the installation can, so nobody is to get
		 * that by a value that was forgotten. */
		{"permissions", read_permissions, .needs_value = true},
		{"repositories", read_repositories, .needs_value = true},
		{"allow_foreign_credentials", read_foreign},
	};
	_cleanup_(freep) char *name = NULL;
	_cleanup_(entry_done) struct entry e = {.permissions = BUF_INIT(PERMISSIONS_MAX)};
	int r = config_value(c, key, &name);

	if (r == 0)
		r = config_walk(c, value, keys, ARRAY_SIZE(keys), &e);
	if (r == 0)
		r = add(c, value, name, &e);
	return r < 0 && name ? err_wrap(c->err, r, "GitHub App %s", name) : r;
}

int config_github(struct config *c, yaml_node_t *value, void *into)
{
	if (value->type != YAML_MAPPING_NODE)
		return config_bad(c, value, "expected a mapping of GitHub Apps");
	for (yaml_node_pair_t *p = value->data.mapping.pairs.start;
		p < value->data.mapping.pairs.top; p++) {
		int r = read_app(c, config_node(c, p->key), config_node(c, p->value));

		if (r < 0)
			return r;
	}
	return 0;
}
