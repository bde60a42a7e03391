/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Credentials that sign requests instead of being sent: for AWS an access key id, a secret key and,
 * if they are temporary, a session token. Each value is a member of the set with a surrogate of its
 * own, so the room holds surrogates for all of them and responses are scrubbed of all of them. The
 * room signs with the surrogates, and the broker signs again with the real values. */

#include "secrets/secret_set.h"

enum { SIGNING_VALUES = 3 };

/* Key id, secret key, token: the variables of the room that hold them. Everything is borrowed. */
struct signing_spec {
	const char *names[SIGNING_VALUES];
	char **scopes;
	bool allow_foreign_credentials;
};

/* Add credentials, copied; an empty token means that there is none. Return 0 or negative
 * (E_CONFIG) with the set unchanged. */
_warn_unused_ int secret_set_add_signing(struct secret_set *set, const struct signing_spec *spec,
	const struct str values[SIGNING_VALUES], struct cloche_err *err);

/* Members of a set. */
struct signing_credential {
	const struct masked_secret *key_id, *secret_key, *token; /* token: NULL if there is none */
};

/* The next credentials at or after *at, which moves behind them; begin with 0. False at the end. */
bool secret_set_next_signing(
	const struct secret_set *set, size_t *at, struct signing_credential *ret);
/* How many members from i on belong together: 1 for a masked secret. */
size_t secret_set_group(const struct secret_set *set, size_t i);
