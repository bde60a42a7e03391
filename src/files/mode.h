/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The mode of a file, also where a change of it is answered by somebody who has to see the caller
 * (init/keep.h). */

#include "base/macro.h"
#include <sys/types.h>

/* Set the mode of what fd stands for, which may be a descriptor of O_PATH. Return 0 or -errno. The
 * process must have no other threads. */
_warn_unused_ int files_set_mode(int fd, mode_t mode);
