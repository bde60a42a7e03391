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
#define TLS_SESSIONS_MAX 512      /* kept to be resumed, of a kilobyte or two */

struct tls_server;
struct tls_leaf;
struct tls_conn;

/* Makes the key. What else OpenSSL needs is made for the first connection; it comes from within the
 * library, so a process that has closed itself off can do it. Returns 0 or sets err. */
_warn_unused_ int tls_server_new(struct tls_server **ret, struct cloche_err *err);
struct tls_server *tls_server_free(struct tls_server *s);
DEFINE_CLEANUP(struct tls_server, tls_server_free)
/* DER SubjectPublicKeyInfo of the key, borrowed. */
struct str tls_server_spki(const struct tls_server *s);

/* Parses a certificate; refuses one that is not for the server's key. Returns 0 or sets err. */
_warn_unused_ int tls_leaf_new(
	struct tls_server *s, struct str der, struct tls_leaf **ret, struct cloche_err *err);
/* Connections that use it keep it alive by themselves. */
struct tls_leaf *tls_leaf_free(struct tls_leaf *leaf);

enum tls_hs {
	TLS_HS_DONE,
	TLS_HS_WANT_READ,
	TLS_HS_WANT_LEAF,
	TLS_HS_FAILED, /* tls_conn_error() says why; an alert was sent if one is due */
};

/* fd is borrowed. NULL if OpenSSL fails, as for lack of memory. */
struct tls_conn *tls_conn_new(struct tls_server *s, int fd);
struct tls_conn *tls_conn_free(struct tls_conn *c);
DEFINE_CLEANUP(struct tls_conn, tls_conn_free)

enum tls_hs tls_conn_handshake(struct tls_conn *c);
/* The name that the client asked for, as sent (case kept, dot at the end dropped); the null view
 * if it sent none. Known from TLS_HS_WANT_LEAF on. */
struct str tls_conn_sni(const struct tls_conn *c);
/* Whether a whole, acceptable ClientHello has come. */
bool tls_conn_has_hello(const struct tls_conn *c);
/* What its ALPN offers (RFC 7301), known at the same time. If it sent none it is
 * TLS_OFFER_HTTP1; 0: nothing that we speak, which fails the handshake. */
enum { TLS_OFFER_HTTP1 = 1 << 0, TLS_OFFER_H2 = 1 << 1 };
unsigned tls_conn_offer(const struct tls_conn *c);
/* Every byte taken from the descriptor until TLS_HS_WANT_LEAF: the ClientHello, and what came with
 * it. Borrowed, gone with tls_conn_set_leaf(). */
struct str tls_conn_taken(const struct tls_conn *c);
/* At TLS_HS_WANT_LEAF: goes on with this certificate, and with HTTP/2 or HTTP/1.1, which the client
 * has to have offered. Returns 0 or -ENOMEM. */
_warn_unused_ int tls_conn_set_leaf(struct tls_conn *c, const struct tls_leaf *leaf, bool h2);
/* At TLS_HS_WANT_LEAF instead: the next tls_conn_handshake() sends access_denied and fails. why is
 * a constant. */
void tls_conn_refuse(struct tls_conn *c, const char *why);
/* Why the handshake or the connection failed: fixed text, for the log. */
const char *tls_conn_error(const struct tls_conn *c);

/* Bytes read; 0: the peer ended the TLS stream properly; -EAGAIN; -EPIPE: it went away without;
 * -EPROTO: broken. */
_warn_unused_ ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n);
/* Whether tls_conn_read() may have more without the descriptor becoming readable. */
bool tls_conn_has_pending(const struct tls_conn *c);
/* Bytes taken (all, or a part, encrypted and given to the descriptor or kept); -EAGAIN while what
 * was kept has not been written; -EPIPE; -EPROTO. If these are the last and all are taken,
 * close_notify goes with them. */
_warn_unused_ ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n, bool last);
/* Writes what was kept. Returns 0 (see tls_conn_pending_out()) or -EPIPE. */
_warn_unused_ int tls_conn_flush(struct tls_conn *c);
size_t tls_conn_pending_out(const struct tls_conn *c);
/* Sends close_notify, unless it has gone with the last bytes. */
void tls_conn_shutdown(struct tls_conn *c);
