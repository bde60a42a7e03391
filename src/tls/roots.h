/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The host's bundle of trusted roots, parsed as late and as little as possible: as certificate
 * objects, a bundle of 150 takes 20 ms and a megabyte, and a sandbox needs two or three. */

#include "base/err.h"
#include "base/str.h"
#include <openssl/x509.h>

struct tls_roots;

/* Open the first bundle that exists (nothing is read yet): SSL_CERT_FILE, or the usual places. On a
 * host without one the set is empty. Only the bundle that SSL_CERT_FILE names must exist. */
_warn_unused_ int tls_roots_open(struct tls_roots **ret, struct cloche_err *err);
struct tls_roots *tls_roots_free(struct tls_roots *r);
DEFINE_CLEANUP(struct tls_roots, tls_roots_free)

/* Add to the store of ctx the roots that may end the chain to be verified. They are found by the
 * exact bytes of the issuers' names. If an issuer is found nowhere that way, add all roots (its
 * name may be written differently in the root). */
void tls_roots_provide(struct tls_roots *r, X509_STORE_CTX *ctx);

/* Call each(arg, der) for the DER of every CERTIFICATE of a PEM text, until it returns nonzero.
 * Return how many there were, or that value if negative, or -EINVAL for malformed PEM. */
int tls_pem_each(struct str pem, int (*each)(void *arg, struct str der), void *arg);
/* For tls_pem_each(): add the certificate to a store, an X509_STORE. Return 0 or -EINVAL. */
int tls_roots_add(void *store, struct str der);
