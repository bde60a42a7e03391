/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a sandbox left that the host would obey (cloche/planted.h), for results. */

#include "base/json.h"
#include <cloche/planted.h>

/* A new array of what that sandbox left and nobody has taken yet; it stays. NULL on lack of memory.
 */
json_t *planted_list(const char *sandbox);
