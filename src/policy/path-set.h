/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A set of paths of hosts. Spellings that some server may read as the same path count as one. */

#include "base/macro.h"
#include "base/str.h"

struct path_set {
	struct path_set_member *members;
};

void path_set_done(struct path_set *set);

/* host is canonical, path is decoded (policy/path.h). _add returns 0 or -ENOMEM; _has returns 1, 0
 * or -ENOMEM. */
_warn_unused_ int path_set_add(struct path_set *set, struct str host, struct str path);
_warn_unused_ int path_set_has(const struct path_set *set, struct str host, struct str path);
/* Return whether any path of the host is in the set: 1, 0 or -ENOMEM. */
_warn_unused_ int path_set_has_host(const struct path_set *set, struct str host);
