/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Make untrusted bytes safe to show in a log line or on a terminal. */

#include "base/buf.h"

/* Add s with every byte outside 0x21..0x7e, and '%', '[' and ']', written as %XX. At most max bytes
 * of s are shown, then "...". Return 0 or a negative errno of buf_add. */
_warn_unused_ int escape_log(struct buf *out, struct str s, size_t max);

/* Add s with control characters (except tab and newline) shown as \xXX, what else does not belong
 * into text as \u{XXXX}, and invalid UTF-8 replaced by U+FFFD, so that no escape sequence reaches
 * the terminal. */
_warn_unused_ int escape_terminal(struct buf *out, struct str s);

/* --- JSON (RFC 8259 section 7). Invalid UTF-8 becomes U+FFFD. --- */
enum { ESCAPE_JSON_MAX = 13 };

/* Add s as a quoted string. If ascii is set, characters outside ASCII are escaped too. */
_warn_unused_ int escape_json(struct buf *out, struct str s, bool ascii);
/* For callers that count bytes. escape_json_plain() returns how many bytes at the beginning of s
 * need no escape. escape_json_char() writes the escape of the first character of s, returns the
 * escape's length and stores how many bytes of s it stands for. */
size_t escape_json_plain(struct str s, bool ascii);
size_t escape_json_char(struct str s, char ret[ESCAPE_JSON_MAX], size_t *ret_used);
