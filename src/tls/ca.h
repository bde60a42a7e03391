/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A certificate authority that lives as long as one network. It is made at start, its key never
 * leaves this process, and the room trusts its certificate. A leaf is for one host, and for a key
 * that another process holds. */

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

enum {
	TLS_SPKI_MAX = 91,      /* of a P-256 key, DER: always exactly this */
	TLS_CERT_MAX = 2048,    /* of any certificate made here, DER */
	TLS_NAME_MAX = 253,     /* of a host name */
	TLS_VALID_DAYS = 3650,  /* of both: a sandbox may be kept for years */
	TLS_SKEW_SEC = 60 * 60, /* how far back validity begins, for a clock that is behind */
};

struct tls_ca;

/* A fresh P-256 key and its self-signed certificate ("Cloche" and a random id), valid around
 * now_real_usec. */
_warn_unused_ int tls_ca_new(uint64_t now_real_usec, struct tls_ca **ret, struct cloche_err *err);
/* Wipe the key. NULL is fine; return NULL. */
struct tls_ca *tls_ca_free(struct tls_ca *ca);
DEFINE_CLEANUP(struct tls_ca, tls_ca_free)

/* The certificate; borrowed. */
struct str tls_ca_der(const struct tls_ca *ca);
/* Append the certificate as PEM text (RFC 7468). Return 0 or a negative errno of buf_add. */
_warn_unused_ int tls_ca_add_pem(const struct tls_ca *ca, struct buf *out);

/* Whether spki is a DER SubjectPublicKeyInfo of an uncompressed P-256 point: nothing else is ever
 * put into a leaf. (Whether the point is on the curve only matters to the holder of the key.) */
bool tls_spki_is_p256(struct str spki);

/* What a leaf is for: a canonical name, or the 4 or 16 bytes of an address. */
struct tls_subject {
	struct str name;
	uint8_t address[16];
	unsigned address_len; /* 0: a name */
};

/* Append the DER of a leaf for subject and spki to out. It is valid for the same time as the
 * authority, which must not have expired at now_real_usec. The caller has checked the name. Return
 * 0 or negative (E_PROTOCOL for an spki that is not P-256). */
_warn_unused_ int tls_ca_mint(const struct tls_ca *ca, struct str spki,
	const struct tls_subject *subject, uint64_t now_real_usec, struct buf *out,
	struct cloche_err *err);
