/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What server.c and server_conn.c share. */

#include "base/buf.h"
#include "tls/hello.h"
#include "tls/p256.h"
#include "tls/server.h"
#include <openssl/ssl.h>

enum {
	TLS_OUT_SCRATCH = 96 * 1024, /* records of one operation, written together */
	TLS_OUT_KEPT_MAX = 256 * 1024,
	TLS_BULK = 8 * 1024,         /* bytes read at once from which on more is expected */
	TLS_BULK_BUFFER = 72 * 1024, /* four records */
};

struct tls_server {
	EC_KEY *key;
	uint8_t spki[TLS_SPKI_MAX];
	/* NULL until the first connection. */
	SSL_CTX *ctx;
	BIO_METHOD *bio;
	EVP_PKEY *pkey;
	/* Output of the operation that is running: the process has one thread. */
	char *scratch;
	size_t scratch_n;
};

struct tls_leaf {
	X509 *cert;
};

enum tls_stage { TLS_STAGE_HELLO, TLS_STAGE_LEAF, TLS_STAGE_REST };

struct tls_conn {
	struct tls_server *server;
	SSL *ssl;
	int fd;
	enum tls_stage stage;
	bool refused, eof, broken;
	bool drained; /* the descriptor gave less than was asked for: it has no more for now */
	bool bulk;    /* reads into the larger buffer */
	bool h2;      /* HTTP/2 was chosen */
	uint8_t offer;
	X509 *cert;        /* NULL until a leaf is there */
	struct buf taken;  /* bytes from the descriptor, until a leaf is there */
	const char *error; /* the first error */
	struct buf ticket; /* a record that is sent in front of the next one */
	struct buf kept;   /* records that the peer has not taken yet */
	unsigned char sni_n;
	char sni[HELLO_NAME_MAX + 1];
};

/* Make what connections need, if that has not happened yet. Return false if OpenSSL fails. */
bool tls_server_prepare(struct tls_server *s);
/* Make the BIO methods by which connections read and write. NULL on lack of memory. */
BIO_METHOD *tls_conn_bio_new(void);
/* For SSL_CTX_set_client_hello_cb. */
int tls_conn_on_hello(SSL *ssl, int *alert, void *arg);
/* For SSL_CTX_set_cert_cb: a session that is resumed needs no certificate. */
int tls_conn_on_cert(SSL *ssl, void *arg);
/* For SSL_CTX_set_alpn_select_cb. */
int tls_conn_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
	const unsigned char *in, unsigned in_n, void *arg);
