/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists what a sandbox left that the host would obey (cloche/planted.h), for results. */

#include "base/json.h"
#include <cloche/planted.h>

/* Return a new array of what this sandbox left and what was not taken yet, without taking it. NULL
 * if out of memory. */
json_t *planted_list(const char *sandbox);
