/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Structs that a program fills for the library (include/cloche/error.h says what their sizes mean).
 */

#include "base/err.h"
#include <stddef.h>

/* Copy such a struct, which begins with its size, into one of ours of `n` bytes, which has the
 * defaults. Members that an older program does not have keep them. name: of the struct. E_USAGE if
 * the size cannot be right, E_UNSUPPORTED if a newer program sets a member that is not known here.
 */
_warn_unused_ int sized_take(
	void *to, size_t n, const void *from, const char *name, struct cloche_err *err);
