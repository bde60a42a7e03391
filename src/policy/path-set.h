/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A set of paths of hosts, in which spellings that some server may take for one path are one. */

#include "base/macro.h"
#include "base/str.h"

struct path_set {
	struct path_set_member *members;
};

void path_set_done(struct path_set *set);

/* host is canonical, path decoded (policy/path.h). Return 0 or -ENOMEM; _has: 1 or 0, or -ENOMEM.
 */
_warn_unused_ int path_set_add(struct path_set *set, struct str host, struct str path);
_warn_unused_ int path_set_has(const struct path_set *set, struct str host, struct str path);
/* Whether any path of the host is in it. */
_warn_unused_ int path_set_has_host(const struct path_set *set, struct str host);
