/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes untrusted bytes safe to show: in a log line, on a terminal. */

#include "base/buf.h"

/* Adds s with every byte outside 0x21..0x7e, and '%', '[' and ']', written as %XX; at most max
 * bytes of s are shown, then "...". Returns 0 or a negative errno of buf_add. */
_warn_unused_ int escape_log(struct buf *out, struct str s, size_t max);

/* Adds s with control bytes (but tab and newline) shown as \xXX and invalid UTF-8 replaced by
 * U+FFFD, so that no escape sequence reaches the terminal. */
_warn_unused_ int escape_terminal(struct buf *out, struct str s);

/* Adds s as a JSON string with its quotes; what is not valid UTF-8 becomes U+FFFD. For programs
 * that are linked without a JSON library. */
_warn_unused_ int escape_json(struct buf *out, struct str s);
