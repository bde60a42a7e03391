/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The key by which a service knows a person. */

#include "base/err.h"
#include "base/str.h"

enum { KEY_MAX = 512 };

/* Find it in a variable, or in the first line of the file that another variable names. Write it to
 * ret, with a terminator. hint: what it is, for a person. */
_warn_unused_ int key_find(const char *variable, const char *file_variable, const char *hint,
	char ret[KEY_MAX + 1], struct cloche_err *err);
