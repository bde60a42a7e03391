/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* If there is no room (provider subprocess), a directory that a room would show at target lies at
 * source. */

#include "base/macro.h"
#include "base/str.h"

struct place {
	const char *target, *source; /* absolute paths, borrowed */
};

/* Translate path by the longest target that it is or that it lies below. Return 1 with the new path
 * in *ret, on the heap; 0 if no target fits; or -ENOMEM. */
_warn_unused_ int places_find(const struct place *places, size_t n, struct str path, char **ret);
