/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The public allowlist with the texts that it was built from: the broker gets those and builds its
 * own, as it trusts no other program's reading of them. */

#include "policy/allowlist.h"
#include <cloche/allowlist.h>

struct allow_source {
	char *name; /* of a YAML text; NULL: text is a shorthand */
	char *text;
};

struct cloche_allowlist {
	struct allowlist *rules;
	struct allow_source *sources;
	size_t sources_n;
};

/* A copy, NULL on lack of memory; NULL gives NULL. */
cloche_allowlist *allowlist_copy(const cloche_allowlist *list);

static inline void cloche_allowlist_freep(cloche_allowlist **list)
{
	cloche_allowlist_free(*list);
}
