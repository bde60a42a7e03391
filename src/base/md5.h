/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* MD5 (RFC 1321), for sums that others have written down. It protects nothing by itself. */

#include "base/str.h"

#define MD5_HEX_MAX 33

/* Writes the digest of data in lower-case hexadecimal. */
void md5_hex(struct str data, char ret[MD5_HEX_MAX]);
