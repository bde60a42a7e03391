/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Base64 (RFC 4648) of Basic credentials. */

#include "base/buf.h"

/* Decodes the standard or the URL-safe alphabet, with or without padding; nothing else is
 * tolerated: no space, no bits left over, no two alphabets in one text. Reserves what it needs at
 * once, so that no copy is left behind. Returns 0, -EINVAL, or a negative errno of buf_add. */
_warn_unused_ int base64_decode(struct buf *out, struct str s);

/* Adds the standard form with padding. */
_warn_unused_ int base64_encode(struct buf *out, struct str s);
