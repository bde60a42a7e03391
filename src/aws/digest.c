/* SPDX-License-Identifier: Apache-2.0 */
/* The old interface, marked deprecated, computes at once. The new one asks providers first, which
 * takes longer than hashing a line. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "aws/digest.h"
#include "base/parse.h"

#include <openssl/sha.h>

enum { BLOCK = 64 };

void aws_sha256(struct str s, uint8_t ret[AWS_DIGEST])
{
	SHA256_CTX sha;

	SHA256_Init(&sha);
	if (s.n)
		SHA256_Update(&sha, s.p, s.n);
	SHA256_Final(ret, &sha);
}

void aws_hmac(struct str key, struct str text, uint8_t ret[AWS_DIGEST])
{
	uint8_t pad[BLOCK] = {0};
	SHA256_CTX sha;

	if (key.n > BLOCK)
		aws_sha256(key, pad);
	else if (key.n)
		memcpy(pad, key.p, key.n);
	for (size_t i = 0; i < BLOCK; i++)
		pad[i] ^= 0x36;
	SHA256_Init(&sha);
	SHA256_Update(&sha, pad, BLOCK);
	if (text.n)
		SHA256_Update(&sha, text.p, text.n);
	SHA256_Final(ret, &sha);
	for (size_t i = 0; i < BLOCK; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	SHA256_Init(&sha);
	SHA256_Update(&sha, pad, BLOCK);
	SHA256_Update(&sha, ret, AWS_DIGEST);
	SHA256_Final(ret, &sha);
	explicit_bzero(pad, sizeof(pad));
	explicit_bzero(&sha, sizeof(sha));
}

void aws_hex(const uint8_t *p, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[p[i] >> 4];
		ret[2 * i + 1] = digits[p[i] & 15];
	}
}

bool aws_unhex(struct str s, uint8_t *ret)
{
	if (s.n % 2 || !str_is_all(s, STR_DIGITS "abcdef"))
		return false;
	for (size_t i = 0; i < s.n; i += 2)
		ret[i / 2] = (uint8_t)(parse_hex_digit(s.p[i]) << 4 | parse_hex_digit(s.p[i + 1]));
	return true;
}

void aws_sha256_hex(struct str s, char ret[AWS_HEX])
{
	uint8_t digest[AWS_DIGEST];

	aws_sha256(s, digest);
	aws_hex(digest, sizeof(digest), ret);
}
