/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A trust store for Java: PKCS #12 (RFC 7292) without encryption and without an integrity check, as
 * the JDK's own since version 18. Every release since 8u60 reads it by default, whatever password
 * it is given, also if it expects the older format. */

#include "base/buf.h"

/* Appends every certificate of a PEM text to `bags`. What is no base64 between the marks is left
 * out. Returns 0, -ENOMEM or -E2BIG. */
_warn_unused_ int keystore_add_pem(struct buf *bags, struct str pem);

/* What has to stand before the bags, so that both together are the store. */
enum { KEYSTORE_HEAD_MAX = 96 };
size_t keystore_head(size_t bags_len, char ret[KEYSTORE_HEAD_MAX]);
