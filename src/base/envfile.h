/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of variables, as docker has them (--env-file). */

#include "base/err.h"

/* Call set for each line: NAME=VALUE is taken as it is, without quotes or escapes; of NAME alone
 * the value is that of our own environment, and the line is left out if there is none. Blank lines
 * and those that begin with # are skipped. A later line has the last word. set returns 0 or a
 * negative code, which ends it. Return 0 or a negative code. */
_warn_unused_ int envfile_read(const char *path,
	int (*set)(void *user, const char *name, const char *value, struct cloche_err *err),
	void *user, struct cloche_err *err);
