/* SPDX-License-Identifier: Apache-2.0 */
/* A GitHub App in a set of secrets: a live member, whose surrogate the room has, and with it the
 * data that the broker needs to get a token. */
#include "base/sized.h"
#include "base/strv.h"
#include "sandbox/secrets.h"

#include <utlist.h>

/* The format of an installation's token. Only a digit, and letters of both cases beyond f, let its
 * surrogate have any digit and letter. */
#define EXAMPLE "ghs_0aBcDeFgHiJkLmNoPqRsTuVwXyZ123456789"
#define BASE_URL "https://api.github.com"

static void app_free(struct sandbox_github_app *app)
{
	free(app->name);
	free(app->app_id);
	free(app->installation_id);
	secret_free(app->key);
	free(app->base_url);
	free(app->permissions);
	strv_free(app->repositories);
	free(app);
}

void github_apps_free(struct sandbox_github_app **list)
{
	struct sandbox_github_app *app, *next;

	LL_FOREACH_SAFE (*list, app, next)
		app_free(app);
	*list = NULL;
}

static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static struct sandbox_github_app *make(
	const char *name, struct str key, const cloche_github_app *from)
{
	struct sandbox_github_app *app = calloc(1, sizeof(*app));
	int r = 0;

	if (!app)
		return NULL;
	app->key = secret_new(key.p, key.n);
	for (size_t i = 0; r == 0 && from->repositories && from->repositories[i]; i++)
		r = strv_add(&app->repositories, str_from(from->repositories[i]));
	if (r == 0 && app->key && copy(&app->name, name) && copy(&app->app_id, from->app_id) &&
		copy(&app->installation_id, from->installation_id) &&
		copy(&app->base_url, from->base_url ? from->base_url : BASE_URL) &&
		copy(&app->permissions, from->permissions))
		return app;
	app_free(app);
	return NULL;
}

int cloche_secrets_add_github_app(
	cloche_secrets *secrets, const char *name, const cloche_github_app *app, cloche_err *err)
{
	cloche_github_app a = CLOCHE_GITHUB_APP_INIT;
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};
	const char *const headers[] = {"authorization", NULL};
	struct sandbox_github_app *copied;
	int r = sized_take(&a, sizeof(a), app, "cloche_github_app", err);

	if (r < 0)
		return r;
	spec.allow_foreign_credentials = a.allow_foreign_credentials;
	if (!a.app_id || !a.installation_id || !a.private_key)
		return err_set(err, E_CONFIG, "GitHub App %s needs ids and a key", name);
	spec.name = strdup(name);
	spec.from = strdup(name);
	if (!spec.name || !spec.from || secrets_copy_patterns(a.hosts, &spec.scopes) < 0 ||
		secrets_copy_patterns(headers, &spec.headers) < 0)
		return err_nomem(err);
	copied = make(name, str_from(a.private_key), &a);
	if (!copied)
		return err_nomem(err);
	r = secret_set_add_live(secrets->set, &spec, STR(EXAMPLE), STR_NULL, err);
	if (r < 0)
		app_free(copied);
	else
		LL_PREPEND(secrets->github_apps, copied);
	return r;
}

const struct sandbox_github_app *secrets_github_app(const cloche_secrets *secrets, const char *name)
{
	struct sandbox_github_app *app;

	LL_FOREACH (secrets->github_apps, app)
		if (str_eq(str_from(app->name), str_from(name)))
			break;
	return app;
}

int secrets_copy_live(cloche_secrets *to, const cloche_secrets *from, const struct masked_secret *m,
	struct cloche_err *err)
{
	const struct sandbox_github_app *app = secrets_github_app(from, m->spec.name);
	cloche_github_app what = {.app_id = app->app_id,
		.installation_id = app->installation_id,
		.base_url = app->base_url,
		.permissions = app->permissions,
		.repositories = (const char *const *)app->repositories};
	struct sandbox_github_app *copied = make(app->name, secret_reveal(app->key), &what);
	int r;

	if (!copied)
		return err_nomem(err);
	r = secret_set_add_live(to->set, &m->spec, STR(EXAMPLE), m->surrogate, err);
	if (r < 0)
		app_free(copied);
	else
		LL_PREPEND(to->github_apps, copied);
	return r;
}
