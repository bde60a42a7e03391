/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* TLS towards origins. The certificate is always verified, for the name that was asked for; nothing
 * can be written before that has happened. Works over a non-blocking socket that the caller owns
 * and waits for. */

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

/* Trusted roots, and sessions to resume. One per process. */
struct tls_trust;

/* If system_roots is set, open the host's bundle of roots (SSL_CERT_FILE if it is set, else the
 * usual places) and keep the descriptor. The bundle is read when the first certificate has to be
 * verified, and only the roots that a chain needs are parsed. A missing bundle is an error only if
 * SSL_CERT_FILE names it; but without any root every verification fails. */
_warn_unused_ int tls_trust_new(bool system_roots, struct tls_trust **ret, struct cloche_err *err);
struct tls_trust *tls_trust_free(struct tls_trust *t);
DEFINE_CLEANUP(struct tls_trust, tls_trust_free)
/* Also trust all certificates of a PEM text; `source` (borrowed) names it in messages. Return 0 or
 * negative (E_CONFIG if there is none or one is malformed). */
_warn_unused_ int tls_trust_add_pem(
	struct tls_trust *t, struct str pem, const char *source, struct cloche_err *err);

enum tls_io {
	TLS_IO_OK,     /* done; for reads and writes *ret_n > 0 bytes */
	TLS_IO_READ,   /* come back when the socket is readable */
	TLS_IO_WRITE,  /* ... writable */
	TLS_IO_EOF,    /* reads: the other end has closed its side properly (close_notify) */
	TLS_IO_CUT,    /* the connection ended without that */
	TLS_IO_FAILED, /* tls_client_error() */
};

struct tls_client;

/* Make a connection to host (a canonical name, or an address as text without brackets) over fd,
 * which is borrowed and must outlive it. SNI is sent for names; ALPN is http/1.1, unless more is
 * offered. A session of an earlier connection to the same host and port is resumed. */
_warn_unused_ int tls_client_new(struct tls_trust *t, int fd, struct str host, uint16_t port,
	struct tls_client **ret, struct cloche_err *err);
/* Before the handshake: offer h2 as well, and prefer it. Return 0 or negative. */
_warn_unused_ int tls_client_offer_h2(struct tls_client *c, struct cloche_err *err);
/* Keep the session for later, send close_notify if the socket takes it, and free c. NULL is fine;
 * returns NULL. */
struct tls_client *tls_client_free(struct tls_client *c);
DEFINE_CLEANUP(struct tls_client, tls_client_free)

/* TLS_IO_OK: established and verified. */
enum tls_io tls_client_handshake(struct tls_client *c);
/* Only after a finished handshake. *ret_n is set only with TLS_IO_OK. */
enum tls_io tls_client_read(struct tls_client *c, void *p, size_t n, size_t *ret_n);
enum tls_io tls_client_write(struct tls_client *c, const void *p, size_t n, size_t *ret_n);
/* Whether received bytes are buffered inside, so that the socket may never become readable. */
bool tls_client_has_pending(const struct tls_client *c);
/* Whether h2 was agreed on. Otherwise it is HTTP/1.1, also if the other end does not know ALPN. */
bool tls_client_is_h2(const struct tls_client *c);
bool tls_client_resumed(const struct tls_client *c);

enum tls_trouble {
	TLS_TROUBLE_NONE,
	TLS_TROUBLE_CERTIFICATE, /* not trusted, or not for this host */
	TLS_TROUBLE_PROTOCOL,    /* no common version, an alert, not TLS at all */
	TLS_TROUBLE_CONNECTION,
};

/* What went wrong, as printable text: "certificate has expired". Borrowed; "" while all is well. */
const char *tls_client_error(const struct tls_client *c, enum tls_trouble *ret_kind);
