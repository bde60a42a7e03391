/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 (FIPS 180-4), for programs that are linked without OpenSSL. */

#include "base/str.h"
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK 64U
#define SHA256_HEX_MAX (2 * SHA256_BYTES + 1)

struct sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes so far */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, struct str data);
/* Add the length of data (8 bytes) and then data, so that the boundary to the next data is
 * unambiguous. */
void sha256_add_framed(struct sha256 *h, struct str data);
/* Get the digest; h cannot be used afterwards. */
void sha256_bytes(struct sha256 *h, uint8_t ret[SHA256_BYTES]);
/* The same in lower-case hexadecimal. */
void sha256_hex(struct sha256 *h, char ret[SHA256_HEX_MAX]);
/* Do all of this for one text. */
void sha256_text(struct str text, char ret[SHA256_HEX_MAX]);

/* HMAC (RFC 2104) with a key of SHA256_BYTES: begin, then add with sha256_add() and its kin to
 * `inner`, then get the code. */
struct sha256_hmac {
	struct sha256 inner;
	uint8_t key[SHA256_BYTES];
};
void sha256_hmac_init(struct sha256_hmac *h, const uint8_t key[SHA256_BYTES]);
/* Get the code and wipe h. */
void sha256_hmac_bytes(struct sha256_hmac *h, uint8_t ret[SHA256_BYTES]);

/* Add n blocks to a state as it is done where the processor has no instructions for it. For the
 * test, which may run where it has them. */
void sha256_blocks_plain(uint32_t state[8], const uint8_t *p, size_t n);
