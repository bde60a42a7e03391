/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What differs between two texts, as diff -u writes it, without the two lines of names. */

#include "base/buf.h"

/* Adds the hunks, with three lines of context, to out; nothing if they are the same. If there
 * is too much to compare what differs is taken as one whole. 0 or a negative errno of buf_add. */
_warn_unused_ int unified_write(struct buf *out, struct str before, struct str after);
/* Whether it is text: UTF-8 without NUL. */
bool unified_is_text(struct str s);
