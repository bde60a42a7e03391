/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "secrets/secret_set.h"
#include <cloche/secrets.h>

struct cloche_secrets {
	struct secret_set *set;
};

/* A copy with the same surrogates, NULL on lack of memory; NULL gives NULL. */
cloche_secrets *secrets_copy(const cloche_secrets *secrets);

static inline void cloche_secrets_freep(cloche_secrets **secrets)
{
	cloche_secrets_free(*secrets);
}
