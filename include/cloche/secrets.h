/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SECRETS_H
#define CLOCHE_SECRETS_H
/* Masked secrets: inside the sandbox there is only a surrogate of the same shape. The broker puts
 * the real value into requests that go over verified TLS to the hosts for which the secret is
 * meant. One thread at a time. */

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_secrets cloche_secrets;

/* cloche_secrets_new() returns an empty set, or NULL if out of memory. Freeing a set wipes the
 * values. */
CLOCHE_API cloche_secrets *cloche_secrets_new(void);
CLOCHE_API void cloche_secrets_free(cloche_secrets *secrets);

/* Add secrets as an option of `cloche run` says, by its name and value:
 *
 *   secret       NAME[=HOSTVAR]@HOST[,HOST...][:Header[,Header...]], the value from the caller's
 *                environment
 *   secret-file  NAME=PATH@..., the value from a file (one trailing newline is removed)
 *   aws-secret   @HOST[,HOST...], AWS credentials with the values from the environment variables
 *                of these names
 *
 * CLOCHE_E_USAGE: the option or its value is none of these. CLOCHE_E_CONFIG: there is no value. */
CLOCHE_API int cloche_secrets_set(
	cloche_secrets *secrets, const char *name, const char *value, cloche_err *err);

/* Add a secret with the given value. hosts and headers are arrays of patterns that end with NULL.
 * Everything is copied; the caller should wipe value. A value has 8 to 16384 bytes (else
 * CLOCHE_E_CONFIG). If it is empty (also that of cloche_secrets_set()), nothing is masked: the
 * variable inside is set, and empty, and the secret is not counted. */
CLOCHE_API int cloche_secrets_add(cloche_secrets *secrets, const char *name, const void *value,
	size_t length, const char *const *hosts, const char *const *headers,
	bool allow_foreign_credentials, cloche_err *err);

/* AWS credentials. */
typedef struct cloche_aws_credential {
	size_t size; /* of this struct; error.h */
	const char *access_key_id, *secret_access_key;
	const char *session_token; /* NULL or "": none */
	/* The variables that hold them inside; NULL: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
	 * AWS_SESSION_TOKEN. */
	const char *access_key_id_name, *secret_access_key_name, *session_token_name;
	const char *const *hosts; /* ends with NULL */
	bool allow_foreign_credentials;
} cloche_aws_credential;

#define CLOCHE_AWS_CREDENTIAL_INIT                                                                 \
	{                                                                                          \
		sizeof(cloche_aws_credential), NULL, NULL, NULL, NULL, NULL, NULL, NULL, false     \
	}

/* Add AWS credentials. The room gets surrogates of all of them in these variables (the token's is
 * always 512 characters). Requests that it signs with these (Signature Version 4 or 4A) are
 * verified, and signed again with the real credentials if they go over verified TLS to one of the
 * hosts. If a request to these hosts has other AWS credentials, they are removed or the request is
 * refused, unless allow_foreign_credentials is true. Everything is copied; the caller should wipe
 * its own copies. A set may have several, under different names. */
CLOCHE_API int cloche_secrets_add_aws(
	cloche_secrets *secrets, const cloche_aws_credential *credential, cloche_err *err);

/* An installation of a GitHub App. Arrays end with NULL; all but hosts may be NULL. */
typedef struct cloche_github_app {
	size_t size;        /* of this struct; error.h */
	const char *app_id; /* or the client id */
	const char *installation_id;
	const char *private_key; /* PEM, RSA */
	const char *base_url;    /* NULL: https://api.github.com */
	const char *permissions; /* JSON object; NULL: all of the installation's permissions */
	const char *const *repositories; /* names without owner; none: all of the installation's */
	const char *const *hosts;        /* hosts to which the token may be sent */
	bool allow_foreign_credentials;
} cloche_github_app;

#define CLOCHE_GITHUB_APP_INIT                                                                     \
	{                                                                                          \
		sizeof(cloche_github_app), NULL, NULL, NULL, NULL, NULL, NULL, NULL, false         \
	}

/* Add a GitHub App. The variable `name` inside holds a surrogate token. The broker obtains a real
 * token when a request first uses the surrogate, and puts it into the Authorization header. A
 * GraphQL request that addresses a repository outside the token's repositories is refused.
 * Everything is copied. The private key is checked while the sandbox starts; if it is invalid, the
 * sandbox ends before anything can be reached. */
CLOCHE_API int cloche_secrets_add_github_app(
	cloche_secrets *secrets, const char *name, const cloche_github_app *app, cloche_err *err);

CLOCHE_API size_t cloche_secrets_count(const cloche_secrets *secrets);

/* Return the name or the surrogate of secret i (less than the count); borrowed until the set is
 * freed. Real values cannot be read back. */
CLOCHE_API const char *cloche_secrets_name(const cloche_secrets *secrets, size_t i);
CLOCHE_API const char *cloche_secrets_surrogate(const cloche_secrets *secrets, size_t i);

#ifdef __cplusplus
}
#endif
#endif
