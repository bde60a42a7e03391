/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "sandbox/sandbox.h"

/* Mount what a program that is already shown in the room needs to run (its interpreter). */
_warn_unused_ int sandbox_add_needs(cloche_sandbox *sb, const char *file, struct cloche_err *err);
