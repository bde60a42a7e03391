/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which of several known names somebody may have meant. */

#include <stddef.h>

struct near {
	const char *name; /* NULL: none is similar */
	unsigned wrong;
};
/* Look at one more candidate for an unknown name of n bytes. Start with best empty. */
void near_look(const char *name, size_t n, const char *candidate, struct near *best);
