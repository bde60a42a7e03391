/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "secrets/signing.h"
#include <cloche/secrets.h>

struct cloche_secrets {
	struct secret_set *set;
};

/* As cloche_secrets_add_aws(), with the names of the variables in the room: NULL, or each of key
 * id, secret key and token, NULL meaning the usual one. values likewise; a token may be NULL or
 * empty. */
_warn_unused_ int secrets_add_signing(cloche_secrets *secrets,
	const char *const names[SIGNING_VALUES], const char *const values[SIGNING_VALUES],
	const char *const *hosts, bool allow_foreign_credentials, struct cloche_err *err);

/* A copy with the same surrogates, NULL on lack of memory; NULL gives NULL. */
cloche_secrets *secrets_copy(const cloche_secrets *secrets);

static inline void cloche_secrets_freep(cloche_secrets **secrets)
{
	cloche_secrets_free(*secrets);
}
