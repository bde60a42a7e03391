/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Base64 (RFC 4648). */

#include "base/buf.h"

/* Decode the standard or the URL-safe alphabet, with or without padding. Reject everything else:
 * spaces, leftover bits, both alphabets in one text. Memory is reserved once, so that no copy is
 * left behind. Return 0, -EINVAL, or a negative errno of buf_add. */
_warn_unused_ int base64_decode(struct buf *out, struct str s);

/* Add the standard form with padding. */
_warn_unused_ int base64_encode(struct buf *out, struct str s);
/* Add the URL-safe form without padding. */
_warn_unused_ int base64url_encode(struct buf *out, struct str s);

/* Return how many base64 characters depend on the n bytes alone, if these are part of a longer text
 * and begin at a byte whose index is `at` modulo 3. The characters before and after hold bits of
 * neighbouring bytes. */
size_t base64_inner_len(size_t n, unsigned at);
/* Write those characters of s to ret, which has space for base64_inner_len(s.n, at). */
void base64_inner(struct str s, unsigned at, char *ret);
