/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* UTF-8 as defined in RFC 3629 section 4: no overlong forms, no surrogates, nothing above
 * U+10FFFF. */

#include "base/str.h"
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Return the length of the valid sequence at the beginning of s (which is not empty) and its code
 * point in *ret (which may be NULL), or 0 if there is none. */
size_t utf8_decode(struct str s, uint32_t *ret);

/* Return true if all of s is valid. */
bool utf8_is_valid(struct str s);

/* Return the number of code points in s; each byte that is not part of a valid one counts as
 * one. */
size_t utf8_count(struct str s);

/* Return true for characters that control the display (controls, direction changes), are invisible
 * (Unicode calls them default ignorable) or could be taken for another: a name shows them escaped.
 */
bool utf8_is_hidden(uint32_t c);
/* Return true for those of them that do not belong into text, either. Line ends and tabs are among
 * them. */
bool utf8_is_hidden_in_text(uint32_t c);
