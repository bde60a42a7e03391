/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The host's bundle of trusted roots, parsed as late and as little as can be: a bundle of 150 takes
 * 20 ms and a megabyte as certificate objects, and a sandbox asks for two or three. */

#include "base/err.h"
#include "base/str.h"
#include <openssl/x509.h>

struct tls_roots;

/* Opens the first bundle that is there (nothing is read yet): SSL_CERT_FILE, or the usual places. A
 * host without one gives an empty set. Only the bundle that SSL_CERT_FILE names must be there. */
_warn_unused_ int tls_roots_open(struct tls_roots **ret, struct cloche_err *err);
struct tls_roots *tls_roots_free(struct tls_roots *r);
DEFINE_CLEANUP(struct tls_roots, tls_roots_free)

/* Adds to the store of ctx those roots that may end the chain that it is to verify: by the exact
 * bytes of the issuers' names, and all of them if an issuer is found nowhere that way (its name
 * may be written differently in the root). */
void tls_roots_provide(struct tls_roots *r, X509_STORE_CTX *ctx);

/* Calls each(arg, der) for the DER of every CERTIFICATE of a PEM text, until it returns nonzero.
 * Returns how many there were, or that value if negative, or -EINVAL for malformed PEM. */
int tls_pem_each(struct str pem, int (*each)(void *arg, struct str der), void *arg);
