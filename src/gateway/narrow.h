/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The gateway drops its rights, in stages, before it reads the first byte from a room. */

#include "base/err.h"

/* Stage 1, before anything is opened: not dumpable, no core files, standard descriptors in place,
 * and no descriptors but those and the two channels. */
_warn_unused_ int gateway_narrow_descriptors(struct cloche_err *err);
/* Stage 2: no new processes, and as many descriptors as the host allows (up to need). */
_warn_unused_ int gateway_narrow_limits(unsigned need, struct cloche_err *err);
/* Stage 3, when everything is open: no new privileges, and a system call filter that leaves reading
 * and writing what is open. */
_warn_unused_ int gateway_narrow_calls(struct cloche_err *err);
