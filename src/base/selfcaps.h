/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For programs that started with more rights than they need: root's capabilities, above all. */

#include "base/err.h"

/* Gives up every capability of this thread, for good: effective, permitted, inheritable, ambient,
 * and bounding where that is still allowed. Descriptors that are open stay usable. */
_warn_unused_ int selfcaps_drop(struct cloche_err *err);
