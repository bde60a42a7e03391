/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104) as AWS signatures need them: many of them, and short. */

#include "base/str.h"
#include <stdint.h>

enum { AWS_DIGEST = 32, AWS_HEX = 2 * AWS_DIGEST };

/* Hexadecimal SHA-256 of nothing. */
#define AWS_EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

void aws_sha256(struct str s, uint8_t ret[AWS_DIGEST]);
void aws_hmac(struct str key, struct str text, uint8_t ret[AWS_DIGEST]);

/* Lower case; no terminator. */
void aws_hex(const uint8_t *p, size_t n, char *ret);
/* Decode lower-case hexadecimal into s.n / 2 bytes. False if s is anything else. */
bool aws_unhex(struct str s, uint8_t *ret);
void aws_sha256_hex(struct str s, char ret[AWS_HEX]);
