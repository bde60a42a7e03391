/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Images of the store as roots. */

#include "sandbox/sandbox.h"

/* root: "image:NAME". Return E_NOT_FOUND if there is no such image. */
_warn_unused_ int sandbox_use_image(cloche_sandbox *sb, const char *root, struct cloche_err *err);
/* Forget all settings of an image. */
void sandbox_leave_image(cloche_sandbox *sb);
