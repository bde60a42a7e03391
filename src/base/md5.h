/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* MD5 (RFC 1321), for checksums that other programs have stored. It gives no protection by
 * itself. */

#include "base/str.h"

#define MD5_HEX_MAX 33

/* Write the digest of data in lower-case hexadecimal. */
void md5_hex(struct str data, char ret[MD5_HEX_MAX]);
