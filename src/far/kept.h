/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of programs that another place keeps: of what they hold, and of their mode. */

#include "far/protocol.h"

/* Name a file by what it holds. Return 0 or -errno; -ESTALE: it has become another while it was
 * read. */
_warn_unused_ int far_kept_name(int fd, char ret[FAR_KEPT_BYTES + 1]);

/* Whether it is such a name. */
bool far_kept_is_name(struct str name);
