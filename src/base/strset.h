/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A set of byte strings, which are copied. A zeroed one is empty. */

#include "base/macro.h"
#include "base/str.h"

struct strset {
	struct strset_member *members;
};

/* Add s, unless it is there already. Return 0 or -ENOMEM. */
_warn_unused_ int strset_add(struct strset *set, struct str s);
bool strset_has(const struct strset *set, struct str s);
size_t strset_count(const struct strset *set);
/* Free the members. The set is then empty. */
void strset_done(struct strset *set);
