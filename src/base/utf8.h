/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* UTF-8 as RFC 3629 section 4 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */

#include "base/str.h"
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Length of the valid sequence that s (not empty) begins with, and its code point in *ret (which
 * may be NULL); 0 if there is none. */
size_t utf8_decode(struct str s, uint32_t *ret);

/* True if all of s is valid. */
bool utf8_is_valid(struct str s);

/* Code points in s; each byte of what is not valid counts as one. */
size_t utf8_count(struct str s);

/* True of characters that are obeyed (controls, those that turn a line round) or that nobody sees;
 * Unicode calls the latter default ignorable. */
bool utf8_is_hidden(uint32_t c);
