/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The whole configuration of a sandbox as a text in a format internal to cloche, so that an
 * identical sandbox can be made. It has only the names of masked secrets. */

#include "sandbox/sandbox.h"

enum { SANDBOX_STORE_MAX = 16 << 20 };

/* Add the text to out, whose maximum is SANDBOX_STORE_MAX. secrets: their names if sb was loaded
 * and does not have them itself; else NULL. */
_warn_unused_ int sandbox_store(
	const cloche_sandbox *sb, char *const *secrets, struct buf *out, struct cloche_err *err);

/* Read such a text. *ret_secrets (strv_free): the names of the secrets that it lacks. Return
 * E_CORRUPT if it is malformed. */
_warn_unused_ int sandbox_load(
	struct str text, cloche_sandbox **ret, char ***ret_secrets, struct cloche_err *err);
