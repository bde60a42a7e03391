/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which of some names somebody meant who mistyped one. */

#include "base/str.h"

/* The candidate that is most similar to an unknown name so far. Start with an empty one. */
struct near {
	const char *name; /* borrowed; NULL: none is similar */
	unsigned wrong;
};

/* Compare one more candidate (borrowed). An incomplete name counts, too. */
void near_try(struct str name, const char *candidate, struct near *best);
