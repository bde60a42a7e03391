/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 (FIPS 180-4), for programs that are linked without OpenSSL. */

#include "base/str.h"
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX_MAX (2 * SHA256_BYTES + 1)

struct sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes so far */
	uint8_t block[64];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, struct str data);
/* Add the length of data (8 bytes) and then data, so that the boundary to the next data is
 * unambiguous. */
void sha256_add_framed(struct sha256 *h, struct str data);
/* Write the digest in lower-case hexadecimal; h cannot be used afterwards. */
void sha256_hex(struct sha256 *h, char ret[SHA256_HEX_MAX]);
/* Do all of this for one text. */
void sha256_text(struct str text, char ret[SHA256_HEX_MAX]);
