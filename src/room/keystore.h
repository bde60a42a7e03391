/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A trust store for Java: PKCS #12 (RFC 7292) without encryption and without an integrity check,
 * like the JDK's own since version 18. Every release since 8u60 reads it by default, with any
 * password, even if it expects the older format. */

#include "base/buf.h"
#include <stdbool.h>

/* Take the next certificate off a PEM text: what is between its marks. Return false after the last.
 */
bool keystore_next_pem(struct str *pem, struct str *ret);

/* Append every certificate of a PEM text to `bags`. A block that is not base64 is left out. Return
 * 0, -ENOMEM or -E2BIG. */
_warn_unused_ int keystore_add_pem(struct buf *bags, struct str pem);

/* Make the bytes that precede the bags in the store, and return their number. */
enum { KEYSTORE_HEAD_MAX = 96 };
size_t keystore_head(size_t bags_len, char ret[KEYSTORE_HEAD_MAX]);
