/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The public allowlist with the texts that it was built from. The broker gets the texts and builds
 * its own list, as it does not trust another program's parsing. */

#include "policy/decide.h"
#include <cloche/allowlist.h>

struct allow_source {
	char *name; /* of a YAML text; NULL: text is a shorthand, behind '!' of a denial */
	char *text;
};

struct cloche_allowlist {
	struct allowlist *rules;
	struct allow_source *sources;
	size_t sources_n;
};

/* Split an absolute URL (http, https, ws, wss) into the values that the gateway would see; ret
 * borrows from it and from ret_host. */
_warn_unused_ int allowlist_split_url(
	struct str url, struct policy_request *ret, struct host *ret_host, struct cloche_err *err);

/* Add the rules of another list's sources. */
_warn_unused_ int allowlist_add_source(
	cloche_allowlist *list, const struct allow_source *s, struct cloche_err *err);

/* Return a copy, NULL on lack of memory; NULL gives NULL. */
cloche_allowlist *allowlist_copy(const cloche_allowlist *list);

static inline void cloche_allowlist_freep(cloche_allowlist **list)
{
	cloche_allowlist_free(*list);
}
