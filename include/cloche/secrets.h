/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SECRETS_H
#define CLOCHE_SECRETS_H
/* Masked secrets: the inside holds a surrogate of the same shape; the broker puts the real value
 * into requests that go over verified TLS to the hosts of its scope. One thread at a time. */

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_secrets cloche_secrets;

/* An empty set. NULL on lack of memory. Freeing wipes the values. */
CLOCHE_API cloche_secrets *cloche_secrets_new(void);
CLOCHE_API void cloche_secrets_free(cloche_secrets *secrets);

/* Adds a secret by its specification NAME[=HOSTVAR]@HOST[,HOST...][:Header[,Header...]]; the value
 * is read from the caller's environment. */
CLOCHE_API int cloche_secrets_add_from_env(
	cloche_secrets *secrets, const char *specification, cloche_err *err);

/* The same, NAME=PATH@..., with the value from a file (one trailing newline is cut). */
CLOCHE_API int cloche_secrets_add_from_file(
	cloche_secrets *secrets, const char *specification, cloche_err *err);

/* Adds a secret with its value given. hosts and headers are arrays of patterns, each ended by
 * NULL; everything is copied, and the caller should wipe value. */
CLOCHE_API int cloche_secrets_add(cloche_secrets *secrets, const char *name, const void *value,
	size_t length, const char *const *hosts, const char *const *headers,
	bool allow_foreign_credentials, cloche_err *err);

/* Adds AWS credentials (session_token: NULL or "" if there is none). The inside holds surrogates
 * of all of them in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (always 512
 * characters); requests that it signs with those (Signature Version 4 or 4A) are verified, and
 * signed again with the real ones, if they go over verified TLS to one of the hosts. A request
 * to these hosts with other AWS credentials loses them, or is refused, unless
 * allow_foreign_credentials. Everything is copied; the caller should wipe its own. */
CLOCHE_API int cloche_secrets_add_aws(cloche_secrets *secrets, const char *access_key_id,
	const char *secret_access_key, const char *session_token, const char *const *hosts,
	bool allow_foreign_credentials, cloche_err *err);

/* The same by "@HOST[,HOST...]", with the values of the caller's environment variables of these
 * names. */
CLOCHE_API int cloche_secrets_add_aws_from_env(
	cloche_secrets *secrets, const char *specification, cloche_err *err);

/* An installation of a GitHub App. Arrays end with NULL and may be NULL but for hosts. */
typedef struct cloche_github_app {
	const char *app_id; /* or its client id */
	const char *installation_id;
	const char *private_key;         /* PEM, RSA */
	const char *base_url;            /* NULL: https://api.github.com */
	const char *permissions;         /* JSON object, NULL: all that the installation has */
	const char *const *repositories; /* bare names; none: all that it has */
	const char *const *hosts;        /* whom the token may be sent to */
	bool allow_foreign_credentials;
} cloche_github_app;

/* Adds one. Variable `name` of the inside holds the surrogate of a token; a real one is got when a
 * request carries it, and put into Authorization. A GraphQL request that addresses a repository
 * which the token does not reach is refused. Everything is copied. The key itself is checked while
 * the sandbox starts: one that is none ends it, and nothing was reachable before. */
CLOCHE_API int cloche_secrets_add_github_app(
	cloche_secrets *secrets, const char *name, const cloche_github_app *app, cloche_err *err);

CLOCHE_API size_t cloche_secrets_count(const cloche_secrets *secrets);

/* Name and surrogate of member i (below the count); borrowed until the set is freed. There is no
 * way to read a real value back. */
CLOCHE_API const char *cloche_secrets_name(const cloche_secrets *secrets, size_t i);
CLOCHE_API const char *cloche_secrets_surrogate(const cloche_secrets *secrets, size_t i);

#ifdef __cplusplus
}
#endif
#endif
