/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole configuration of a sandbox as a text that only cloche reads, so that another one can be
 * made like it. Masked secrets are in it by their names alone. */

#include "sandbox/sandbox.h"

enum { SANDBOX_STORE_MAX = 16 << 20 };

/* Adds the text to out, whose maximum is SANDBOX_STORE_MAX. secrets: their names if sb, as one
 * that was loaded, does not have them itself; else NULL. */
_warn_unused_ int sandbox_store(
	const cloche_sandbox *sb, char *const *secrets, struct buf *out, struct cloche_err *err);

/* What such a text says. *ret_secrets (strv_free): the names of those that it lacks. E_CORRUPT. */
_warn_unused_ int sandbox_load(
	struct str text, cloche_sandbox **ret, char ***ret_secrets, struct cloche_err *err);
