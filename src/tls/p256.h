/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* P-256 keys: made and used for ECDSA at a fraction of what OpenSSL's general interface costs a
 * process that has just started. Internal to this folder. */

#include "base/str.h"
#include "tls/ca.h"
#include <openssl/types.h>

enum {
	P256_SIGNATURE_MAX = 72,
	P256_DIGEST = 32,
	P256_POINT_AT = 26, /* where the point is in a SubjectPublicKeyInfo */
};

/* A new key; ret_spki gets its DER SubjectPublicKeyInfo. NULL if OpenSSL fails. */
EC_KEY *p256_new(uint8_t ret_spki[TLS_SPKI_MAX]);
/* Wipe the key. NULL is fine. */
void p256_free(EC_KEY *key);
/* ECDSA with SHA-256 over p: a DER signature of at most P256_SIGNATURE_MAX bytes. Return its
 * length, or 0. */
size_t p256_sign(EC_KEY *key, const void *p, size_t n, uint8_t *ret);
/* SHA-256, in the same way. Return false if OpenSSL fails. */
bool p256_digest(const void *p, size_t n, uint8_t ret[P256_DIGEST]);
/* The same key for OpenSSL's other interfaces, referenced; NULL on lack of memory. */
EVP_PKEY *p256_pkey(EC_KEY *key);
