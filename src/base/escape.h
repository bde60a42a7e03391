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

/* --- JSON (RFC 8259 section 7). What is not valid UTF-8 becomes U+FFFD. --- */
enum { ESCAPE_JSON_MAX = 13 };

/* Adds s as a string with its quotes. With ascii characters outside ASCII are escaped too. */
_warn_unused_ int escape_json(struct buf *out, struct str s, bool ascii);
/* For a caller that counts: how many bytes at the beginning of s stand for themselves, and one
 * character that does not, as an escape in ASCII; returns the escape's length. */
size_t escape_json_plain(struct str s, bool ascii);
size_t escape_json_char(struct str s, char ret[ESCAPE_JSON_MAX], size_t *ret_used);
