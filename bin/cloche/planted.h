/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reports files that sandboxes left in granted directories and that this machine would run or obey
 * by itself (cloche/planted.h): once, on standard error. */

#include <jansson.h>

/* Print the findings of this sandbox, and return them for a JSON document (new; NULL if out of
 * memory). */
json_t *planted_say(const char *sandbox);

/* Print the findings of other sandboxes that have not been reported. */
void planted_say_others(void);
