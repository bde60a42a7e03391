/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* TLS towards the room. One key serves every name; certificates for it are minted elsewhere and
 * handed in while a handshake waits. Holds no CA key. No function blocks.
 *
 *	tls_conn_handshake()  TLS_HS_WANT_LEAF: get a certificate for tls_conn_sni(), then
 *			      tls_conn_set_leaf() and tls_conn_handshake() again
 *			      TLS_HS_WANT_READ: again when the descriptor is readable
 *	tls_conn_read(), tls_conn_write(), then tls_conn_shutdown(), tls_conn_free()
 *
 * What the peer does not take is kept and written by tls_conn_flush(): wait for writability while
 * tls_conn_pending_out() is above 0. */

#include "base/err.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TLS_HELLO_MAX (16 * 1024) /* bytes read before a ClientHello must be complete */
#define TLS_SESSIONS_MAX 512      /* kept for resumption, one or two kilobytes each */

struct tls_server;
struct tls_leaf;
struct tls_conn;

/* Make the key. The rest that OpenSSL needs is made for the first connection. It comes from within
 * the library, so a process that has restricted itself can make it. Return 0 or set err. */
_warn_unused_ int tls_server_new(struct tls_server **ret, struct cloche_err *err);
struct tls_server *tls_server_free(struct tls_server *s);
DEFINE_CLEANUP(struct tls_server, tls_server_free)
/* DER SubjectPublicKeyInfo of the key, borrowed. */
struct str tls_server_spki(const struct tls_server *s);

/* Parse a certificate. NULL if it is malformed or not for the server's key, or on lack of memory.
 */
struct tls_leaf *tls_leaf_new(struct tls_server *s, struct str der);
/* Connections that use the certificate keep it alive by themselves. */
struct tls_leaf *tls_leaf_free(struct tls_leaf *leaf);

enum tls_hs {
	TLS_HS_DONE,
	TLS_HS_WANT_READ,
	TLS_HS_WANT_LEAF,
	TLS_HS_FAILED, /* tls_conn_error() says why; an alert was sent if one is due */
};

/* fd is borrowed. Return NULL if OpenSSL fails, for example without memory. */
struct tls_conn *tls_conn_new(struct tls_server *s, int fd);
struct tls_conn *tls_conn_free(struct tls_conn *c);
DEFINE_CLEANUP(struct tls_conn, tls_conn_free)

enum tls_hs tls_conn_handshake(struct tls_conn *c);
/* The name that the client asked for, as sent (case kept, dot at the end dropped); the null view
 * if it sent none. Known from TLS_HS_WANT_LEAF on. */
struct str tls_conn_sni(const struct tls_conn *c);
/* Whether a whole, acceptable ClientHello has come. */
bool tls_conn_has_hello(const struct tls_conn *c);
/* What the client's ALPN offers (RFC 7301), known from TLS_HS_WANT_LEAF on. Without ALPN it is
 * TLS_OFFER_HTTP1. 0 means nothing that we speak, which fails the handshake. */
enum { TLS_OFFER_HTTP1 = 1 << 0, TLS_OFFER_H2 = 1 << 1 };
unsigned tls_conn_offer(const struct tls_conn *c);
/* Every byte taken from the descriptor until TLS_HS_WANT_LEAF: the ClientHello, and what came with
 * it. Borrowed, invalid after tls_conn_set_leaf(). */
struct str tls_conn_taken(const struct tls_conn *c);
/* At TLS_HS_WANT_LEAF: go on with this certificate, and with HTTP/2 or HTTP/1.1, which the client
 * must have offered. Return 0 or -ENOMEM. */
_warn_unused_ int tls_conn_set_leaf(struct tls_conn *c, const struct tls_leaf *leaf, bool h2);
/* At TLS_HS_WANT_LEAF, instead of tls_conn_set_leaf(): make the next tls_conn_handshake() send
 * access_denied and fail. why is a constant. */
void tls_conn_refuse(struct tls_conn *c, const char *why);
/* Why the handshake or the connection failed: fixed text, for the log. */
const char *tls_conn_error(const struct tls_conn *c);

/* Return the bytes read, 0 if the peer ended the TLS stream properly, -EAGAIN, -EPIPE if the
 * connection ended without that, or -EPROTO if it is broken. */
_warn_unused_ ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n);
/* Whether tls_conn_read() may have more without the descriptor becoming readable. */
bool tls_conn_has_pending(const struct tls_conn *c);
/* Return the bytes taken (all or a part: encrypted, and written to the descriptor or kept), -EAGAIN
 * while kept output is not written yet, -EPIPE or -EPROTO. If last is set and all bytes are taken,
 * close_notify is sent with them. */
_warn_unused_ ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n, bool last);
/* Write kept output. Return 0 (see tls_conn_pending_out()) or -EPIPE. */
_warn_unused_ int tls_conn_flush(struct tls_conn *c);
size_t tls_conn_pending_out(const struct tls_conn *c);
/* Send close_notify, unless it was sent with the last bytes. */
void tls_conn_shutdown(struct tls_conn *c);
