/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Base64 (RFC 4648). */

#include "base/buf.h"

/* Decodes the standard or the URL-safe alphabet, with or without padding; nothing else is
 * tolerated: no space, no bits left over, no two alphabets in one text. Reserves what it needs at
 * once, so that no copy is left behind. Returns 0, -EINVAL, or a negative errno of buf_add. */
_warn_unused_ int base64_decode(struct buf *out, struct str s);

/* Adds the standard form with padding. */
_warn_unused_ int base64_encode(struct buf *out, struct str s);
/* Adds the URL-safe form without padding. */
_warn_unused_ int base64url_encode(struct buf *out, struct str s);

/* Characters of base64 that come from s alone when s is the part of a longer text that begins at a
 * byte whose index is `at` modulo 3. The characters on both sides hold bits of its neighbours. */
size_t base64_inner_len(size_t n, unsigned at);
/* Writes them to ret, which has room for base64_inner_len(s.n, at). */
void base64_inner(struct str s, unsigned at, char *ret);
