/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What sandboxes left in granted directories and this machine would run or obey by itself
 * (cloche/planted.h): said once, on standard error. */

#include <jansson.h>

/* What this one left; the same for a JSON document (new; NULL on lack of memory). */
json_t *planted_say(const char *sandbox);

/* What others left that nobody has told of. */
void planted_say_others(void);
