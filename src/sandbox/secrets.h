/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "login/login.h"
#include "secrets/signing.h"
#include <cloche/secrets.h>

/* The data that the broker needs to obtain the value of a live member of the set. */
struct sandbox_github_app {
	struct sandbox_github_app *next;
	char *name; /* the member's name */
	char *app_id, *installation_id, *base_url;
	char *permissions; /* JSON, or NULL */
	char **repositories;
	struct secret *key; /* PEM */
};

/* The login that a member is the access token of, and which the broker renews. */
struct sandbox_login {
	struct sandbox_login *next;
	unsigned number; /* from 0 on, in each set */
	char *name;      /* the member's name */
	struct login_spec spec;
	uint64_t expires_msec; /* of the value, since 1970; 0: not known */
};

struct cloche_secrets {
	struct secret_set *set;
	struct sandbox_login *logins;
	struct sandbox_github_app *github_apps;
	char **empty; /* NAME= of each secret without a value: set, but not masked */
	bool offline; /* secrets that are added by name need no value */
};

enum { SECRETS_STAND_IN = 40 };
/* Make a placeholder for a value that is never used. */
void secrets_stand_in(char ret[SECRETS_STAND_IN + 1]);

/* As cloche_secrets_add_aws(), with the names of the variables in the room: NULL, or one each for
 * key id, secret key and token, where NULL means the usual name. values has the same order; the
 * token may be NULL or empty. */
_warn_unused_ int secrets_add_signing(cloche_secrets *secrets,
	const char *const names[SIGNING_VALUES], const char *const values[SIGNING_VALUES],
	const char *const *hosts, bool allow_foreign_credentials, struct cloche_err *err);

/* As cloche_secrets_set(), for one option each. */
_warn_unused_ int secrets_add_from_env(
	cloche_secrets *secrets, const char *specification, struct cloche_err *err);
_warn_unused_ int secrets_add_from_file(
	cloche_secrets *secrets, const char *specification, struct cloche_err *err);
_warn_unused_ int secrets_add_aws_from_env(
	cloche_secrets *secrets, const char *specification, struct cloche_err *err);

/* Copy a NULL-terminated array (or NULL) in lower case, as neither hosts nor header names are
 * case-sensitive. Return 0 or -ENOMEM. */
_warn_unused_ int secrets_copy_patterns(const char *const *from, char ***ret);

/* Whether there is a secret of this name, even an empty one. */
bool secrets_has(const cloche_secrets *secrets, const char *name);

/* Let the broker renew the member of this name. spec is copied. Return 0 or negative. */
_warn_unused_ int secrets_add_login(cloche_secrets *secrets, const char *name,
	const struct login_spec *spec, uint64_t expires_msec, struct cloche_err *err);
/* NULL: it is not the token of a login that is renewed. */
const struct sandbox_login *secrets_login(const cloche_secrets *secrets, const char *name);

/* Add a copy of member m of `from`, with the same surrogate. */
_warn_unused_ int secrets_copy_member(cloche_secrets *to, const cloche_secrets *from,
	const struct masked_secret *m, struct cloche_err *err);

/* github_app.c */
/* Return the data of a live member. */
const struct sandbox_github_app *secrets_github_app(
	const cloche_secrets *secrets, const char *name);
_warn_unused_ int secrets_copy_live(cloche_secrets *to, const cloche_secrets *from,
	const struct masked_secret *m, struct cloche_err *err);
void github_apps_free(struct sandbox_github_app **list);

/* Return a copy with the same surrogates, NULL on lack of memory; NULL gives NULL. */
cloche_secrets *secrets_copy(const cloche_secrets *secrets);

static inline void cloche_secrets_freep(cloche_secrets **secrets)
{
	cloche_secrets_free(*secrets);
}
