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

CLOCHE_API size_t cloche_secrets_count(const cloche_secrets *secrets);

/* Name and surrogate of member i (below the count); borrowed until the set is freed. There is no
 * way to read a real value back. */
CLOCHE_API const char *cloche_secrets_name(const cloche_secrets *secrets, size_t i);
CLOCHE_API const char *cloche_secrets_surrogate(const cloche_secrets *secrets, size_t i);

#ifdef __cplusplus
}
#endif
#endif
