/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the user allows always in a project, as answers to `cloche net watch`: one file for each
 * directory, beside the consents (config/consent.h). Directories are absolute and without links. */

#include "base/err.h"
#include "sandbox/allowlist.h"

/* Record what s (a host, or a text of rules, whose name is what they are for in words) allows. It
 * is written completely or not at all; what is there already is not repeated. E_LIMIT if there are
 * too many. */
_warn_unused_ int always_add(const char *dir, const struct allow_source *s, struct cloche_err *err);

/* Return everything that is recorded for dir, as a list (cloche_allowlist_free), or NULL in *ret if
 * there is nothing. *ret_file (heap) is the name of the file. */
_warn_unused_ int always_load(
	const char *dir, cloche_allowlist **ret, char **ret_file, struct cloche_err *err);

/* Forget a directory. Return 1, or 0 if nothing was recorded. */
_warn_unused_ int always_remove(const char *dir, struct cloche_err *err);
