/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/secrets.h"
#include "base/fd.h"
#include "base/rand.h"
#include "base/sized.h"
#include "base/strv.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <utlist.h>

cloche_secrets *cloche_secrets_new(void)
{
	cloche_secrets *secrets = calloc(1, sizeof(*secrets));

	if (secrets)
		secrets->set = secret_set_new();
	if (secrets && !secrets->set) {
		free(secrets);
		return NULL;
	}
	return secrets;
}

static void secrets_free_logins(struct sandbox_login **list)
{
	struct sandbox_login *l, *next;

	LL_FOREACH_SAFE (*list, l, next) {
		free(l->name);
		login_spec_done(&l->spec);
		free(l);
	}
	*list = NULL;
}

void cloche_secrets_free(cloche_secrets *secrets)
{
	if (!secrets)
		return;
	secret_set_free(secrets->set);
	github_apps_free(&secrets->github_apps);
	secrets_free_logins(&secrets->logins);
	strv_free(secrets->empty);
	free(secrets);
}

bool secrets_has(const cloche_secrets *secrets, const char *name)
{
	return secret_set_find(secrets->set, str_from(name)) || strv_env_get(secrets->empty, name);
}

/* An empty value masks nothing, but its variable is set, since programs may look for it. */
static int add_value(cloche_secrets *secrets, const struct secret_spec *spec, struct str value,
	struct cloche_err *err)
{
	int r;

	if (strv_env_get(secrets->empty, spec->name))
		return err_set(err, E_CONFIG, "secret %s is there twice", spec->name);
	if (value.n > 0)
		return secret_set_add(secrets->set, spec, value, STR_NULL, err);
	r = secret_set_check(secrets->set, spec, err);
	if (r == 0 && strv_env_set(&secrets->empty, spec->name, "") < 0)
		r = err_nomem(err);
	return r;
}

void secrets_stand_in(char ret[SECRETS_STAND_IN + 1])
{
	rand_id(ret, SECRETS_STAND_IN);
}

static int secrets_add_stand_in(
	cloche_secrets *secrets, const struct secret_spec *spec, struct cloche_err *err)
{
	char value[SECRETS_STAND_IN + 1];

	secrets_stand_in(value);
	return add_value(secrets, spec, str_from(value), err);
}

int secrets_add_from_env(cloche_secrets *secrets, const char *specification, cloche_err *err)
{
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};
	const char *value;
	int r;

	r = secret_spec_parse(str_from(specification), &spec, err);
	if (r < 0)
		return r;
	value = secure_getenv(spec.from);
	if (!value && secrets->offline)
		return secrets_add_stand_in(secrets, &spec, err);
	if (!value) {
		err_set(err, E_CONFIG, "secret %s: the environment variable %s is not set",
			spec.name, spec.from);
		err_hint(err,
			"export %s, or name another variable: %s=VARIABLE@..., or use "
			"--secret-file",
			spec.from, spec.name);
		return -E_CONFIG;
	}
	return add_value(secrets, &spec, str_from(value), err);
}

int secrets_add_from_file(cloche_secrets *secrets, const char *specification, cloche_err *err)
{
	_cleanup_(secret_spec_done) struct secret_spec spec = {0};
	_cleanup_(buf_done_wipedp) struct buf value = BUF_INIT(64 * 1024);
	struct str s;
	int r;

	r = secret_spec_parse(str_from(specification), &spec, err);
	if (r < 0)
		return r;
	if (!spec.has_from) {
		err_set(err, E_USAGE, "secret %s: no file is named", spec.name);
		err_hint(err, "%s=PATH@...; for the value of a variable use --secret", spec.name);
		return -E_USAGE;
	}
	if (secrets->offline && access(spec.from, F_OK) < 0)
		return secrets_add_stand_in(secrets, &spec, err);
	r = fd_read_file(AT_FDCWD, spec.from, &value, err);
	if (r < 0)
		return err_wrap(err, r, "secret %s", spec.name);
	s = buf_str(&value);
	if (str_ends(s, STR("\n")))
		s.n--;
	if (str_ends(s, STR("\r")))
		s.n--;
	return add_value(secrets, &spec, s, err);
}

int secrets_copy_patterns(const char *const *from, char ***ret)
{
	for (size_t i = 0; from && from[i]; i++) {
		if (strv_add(ret, str_from(from[i])) < 0)
			return -ENOMEM;
		for (char *c = (*ret)[i]; *c; c++)
			*c = str_lower_char(*c);
	}
	return 0;
}

int cloche_secrets_add(cloche_secrets *secrets, const char *name, const void *value, size_t length,
	const char *const *hosts, const char *const *headers, bool allow_foreign_credentials,
	cloche_err *err)
{
	_cleanup_(secret_spec_done) struct secret_spec spec = {
		.allow_foreign_credentials = allow_foreign_credentials};

	spec.name = strdup(name);
	spec.from = strdup(name);
	if (!spec.name || !spec.from || secrets_copy_patterns(hosts, &spec.scopes) < 0 ||
		secrets_copy_patterns(headers, &spec.headers) < 0)
		return err_nomem(err);
	return add_value(secrets, &spec, str_make(value, length), err);
}

static const char *const aws_names[SIGNING_VALUES] = {
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};

int secrets_add_signing(cloche_secrets *secrets, const char *const names[SIGNING_VALUES],
	const char *const values[SIGNING_VALUES], const char *const *hosts,
	bool allow_foreign_credentials, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **scopes = NULL;
	struct signing_spec spec = {.allow_foreign_credentials = allow_foreign_credentials};
	struct str text[SIGNING_VALUES];

	if (secrets_copy_patterns(hosts, &scopes) < 0)
		return err_nomem(err);
	spec.scopes = scopes;
	for (size_t i = 0; i < SIGNING_VALUES; i++) {
		spec.names[i] = names && names[i] ? names[i] : aws_names[i];
		text[i] = str_from(values[i]);
	}
	return secret_set_add_signing(secrets->set, &spec, text, err);
}

int cloche_secrets_add_aws(
	cloche_secrets *secrets, const cloche_aws_credential *credential, cloche_err *err)
{
	cloche_aws_credential c = CLOCHE_AWS_CREDENTIAL_INIT;
	const char *values[SIGNING_VALUES], *names[SIGNING_VALUES];
	int r = sized_take(&c, sizeof(c), credential, "cloche_aws_credential", err);

	if (r < 0)
		return r;
	values[0] = c.access_key_id;
	values[1] = c.secret_access_key;
	values[2] = c.session_token;
	names[0] = c.access_key_id_name;
	names[1] = c.secret_access_key_name;
	names[2] = c.session_token_name;
	return secrets_add_signing(
		secrets, names, values, c.hosts, c.allow_foreign_credentials, err);
}

/* Split HOST[,HOST...] into an array. */
static int split_hosts(const char *text, char ***ret)
{
	struct str rest = str_from(text);
	int r = 0;

	while (r == 0 && rest.n > 0)
		r = strv_add(ret, str_next(&rest, ','));
	return r;
}

int secrets_add_aws_from_env(cloche_secrets *secrets, const char *specification, cloche_err *err)
{
	_cleanup_(strv_freep) char **hosts = NULL;
	const char *values[SIGNING_VALUES];
	char stand_in[SIGNING_VALUES][SECRETS_STAND_IN + 1];

	if (specification[0] != '@' || !specification[1]) {
		(void)err_set(err, E_USAGE, "AWS credentials: no @HOST that they may go to");
		err_hint(err, "@HOST[,HOST...], for example @*.amazonaws.com");
		return -E_USAGE;
	}
	if (split_hosts(specification + 1, &hosts) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < SIGNING_VALUES; i++) {
		values[i] = secure_getenv(aws_names[i]);
		if (i == 2 || values[i])
			continue;
		if (secrets->offline) {
			secrets_stand_in(stand_in[i]);
			values[i] = stand_in[i];
			continue;
		}
		(void)err_set(err, E_CONFIG,
			"AWS credentials: the environment variable %s is not set", aws_names[i]);
		err_hint(err, "aws configure export-credentials --format env prints them");
		return -E_CONFIG;
	}
	return secrets_add_signing(secrets, NULL, values, (const char *const *)hosts, false, err);
}

int cloche_secrets_set(
	cloche_secrets *secrets, const char *name, const char *value, cloche_err *err)
{
	if (strcmp(name, "secret") == 0)
		return secrets_add_from_env(secrets, value, err);
	if (strcmp(name, "secret-file") == 0)
		return secrets_add_from_file(secrets, value, err);
	if (strcmp(name, "aws-secret") == 0)
		return secrets_add_aws_from_env(secrets, value, err);
	return err_set(err, E_USAGE, "no option that adds secrets is called \"%s\"", name);
}

size_t cloche_secrets_count(const cloche_secrets *secrets)
{
	return secret_set_count(secrets->set);
}

const char *cloche_secrets_name(const cloche_secrets *secrets, size_t i)
{
	return secret_set_get(secrets->set, i)->spec.name;
}

const char *cloche_secrets_surrogate(const cloche_secrets *secrets, size_t i)
{
	return secret_set_get(secrets->set, i)->surrogate.p;
}

int secrets_add_login(cloche_secrets *secrets, const char *name, const struct login_spec *spec,
	uint64_t expires_msec, struct cloche_err *err)
{
	struct sandbox_login *l = calloc(1, sizeof(*l)), *last;

	if (!l)
		return err_nomem(err);
	LL_FOREACH (secrets->logins, last)
		l->number++;
	LL_APPEND(secrets->logins, l);
	l->expires_msec = expires_msec;
	l->name = strdup(name);
	return login_spec_copy(spec, &l->spec) < 0 || !l->name ? err_nomem(err) : 0;
}

const struct sandbox_login *secrets_login(const cloche_secrets *secrets, const char *name)
{
	struct sandbox_login *l;

	LL_FOREACH (secrets->logins, l)
		if (strcmp(l->name, name) == 0)
			break;
	return l;
}

int secrets_copy_member(cloche_secrets *to, const cloche_secrets *from,
	const struct masked_secret *m, struct cloche_err *err)
{
	const struct sandbox_login *l = secrets_login(from, m->spec.name);
	int r;

	if (m->live)
		return secrets_copy_live(to, from, m, err);
	r = secret_set_add(to->set, &m->spec, secret_reveal(m->value), m->surrogate, err);
	return r < 0 || !l ? r : secrets_add_login(to, l->name, &l->spec, l->expires_msec, err);
}

cloche_secrets *secrets_copy(const cloche_secrets *secrets)
{
	_cleanup_(cloche_secrets_freep) cloche_secrets *copy = NULL;

	if (!secrets)
		return NULL;
	copy = cloche_secrets_new();
	if (copy && strv_copy(secrets->empty, &copy->empty) < 0)
		return NULL;
	for (size_t i = 0; copy && i < secret_set_count(secrets->set); i++) {
		const struct masked_secret *m = secret_set_get(secrets->set, i);

		if (secrets_copy_member(copy, secrets, m, NULL) < 0)
			return NULL;
	}
	return TAKE_PTR(copy);
}
