/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Images of the store as roots. */

#include "sandbox/sandbox.h"

/* root: "image:NAME". E_NOT_FOUND. */
_warn_unused_ int sandbox_use_image(cloche_sandbox *sb, const char *root, struct cloche_err *err);
/* Forgets what was taken from an image. */
void sandbox_leave_image(cloche_sandbox *sb);
