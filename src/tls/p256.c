/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: OpenSSL 3 finds algorithms through providers, whose tables take half a
 * millisecond to set up when the first key is made. The old interface, which is marked deprecated,
 * does the same arithmetic at once. This matters because the room waits for the certificate that is
 * signed here. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tls/p256.h"
#include "base/rand.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <string.h>

/* SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING 04 || X || Y } (RFC 5480 2). */
static const uint8_t spki_prefix[P256_POINT_AT + 1] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a,
	0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01,
	0x07, 0x03, 0x42, 0x00, 0x04};

static int kernel_bytes(unsigned char *p, int n)
{
	if (n < 0)
		return 0;
	rand_bytes(p, (size_t)n); /* ends the process if the kernel cannot */
	return 1;
}

static int kernel_status(void)
{
	return 1;
}

/* Make OpenSSL take its random bytes from the kernel, each time it needs some. Its own generators
 * would only be seeded from there, take half a millisecond to set up at start, and would have to be
 * kept apart across fork(). A provider, the new way to do this, would cost that time again. */
static void use_kernel_random(void)
{
	static const RAND_METHOD method = {
		.bytes = kernel_bytes, .pseudorand = kernel_bytes, .status = kernel_status};

	(void)RAND_set_rand_method(&method);
}

EC_KEY *p256_new(uint8_t ret_spki[TLS_SPKI_MAX])
{
	const size_t point = TLS_SPKI_MAX - P256_POINT_AT;
	EC_KEY *key;

	/* Do not read OpenSSL's configuration file: it belongs to the host and may load
	 * anything. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
	use_kernel_random();
	key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
	memcpy(ret_spki, spki_prefix, P256_POINT_AT);
	if (key && EC_KEY_generate_key(key) == 1 &&
		EC_POINT_point2oct(EC_KEY_get0_group(key), EC_KEY_get0_public_key(key),
			POINT_CONVERSION_UNCOMPRESSED, ret_spki + P256_POINT_AT, point,
			NULL) == point)
		return key;
	EC_KEY_free(key);
	return NULL;
}

void p256_free(EC_KEY *key)
{
	EC_KEY_free(key);
}

bool p256_digest(const void *p, size_t n, uint8_t ret[P256_DIGEST])
{
	SHA256_CTX sha;

	return SHA256_Init(&sha) == 1 && SHA256_Update(&sha, p, n) == 1 &&
	       SHA256_Final(ret, &sha) == 1;
}

size_t p256_sign(EC_KEY *key, const void *p, size_t n, uint8_t *ret)
{
	uint8_t digest[P256_DIGEST];
	unsigned ret_n;

	if (!p256_digest(p, n, digest) ||
		ECDSA_sign(0, digest, sizeof(digest), ret, &ret_n, key) != 1)
		return 0;
	return ret_n;
}

EVP_PKEY *p256_pkey(EC_KEY *key)
{
	EVP_PKEY *pkey = EVP_PKEY_new();

	if (pkey && EVP_PKEY_set1_EC_KEY(pkey, key) != 1) {
		EVP_PKEY_free(pkey);
		return NULL;
	}
	return pkey;
}

bool tls_spki_is_p256(struct str spki)
{
	return spki.n == TLS_SPKI_MAX && memcmp(spki.p, spki_prefix, sizeof(spki_prefix)) == 0;
}
