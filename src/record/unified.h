/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The difference between two texts in the form of diff -u, without the two lines of names. */

#include "base/buf.h"

/* Append the hunks, with three lines of context, to out; nothing if the texts are equal. If there
 * is too much to compare, the differing part becomes one hunk. Return 0 or buf_add's negative
 * errno. */
_warn_unused_ int unified_write(struct buf *out, struct str before, struct str after);
/* Whether s is text: UTF-8 without NUL. */
bool unified_is_text(struct str s);
