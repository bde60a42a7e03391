/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: there is one SSL_CTX and one P-256 key. A certificate is put into each
 * connection that needs one, which costs a few microseconds; a context per name would cost a
 * hundred times that. The last sessions are kept, so that a client that comes again need not verify
 * our certificate again.
 *
 * Setting up OpenSSL takes longer than everything else that a room's network needs to start, and
 * many commands in a room never use TLS. So only the key is made at start, because its public half
 * is needed to mint certificates; the rest is made when the first connection comes. OpenSSL opens
 * no file then: its configuration is not read and its algorithms are built in. */
#include "tls/server_internal.h"

#include <openssl/err.h>
#include <openssl/x509.h>

static int accept_name(SSL *ssl, int *alert, void *arg)
{
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *server_make_context(EVP_PKEY *key)
{
	int groups[] = {NID_X25519, NID_X9_62_prime256v1};
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return NULL;
	/* A ticket only names a session that is kept here. Otherwise OpenSSL would encrypt the
	 * session into the ticket, and decrypt it to make the next one: a tenth of what a new
	 * connection costs. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
	/* Not ENABLE_PARTIAL_WRITE: it would end each write after one record. */
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* One read takes all that is there, not a record's header first. */
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
	SSL_CTX_sess_set_cache_size(ctx, TLS_SESSIONS_MAX);
	SSL_CTX_set_client_hello_cb(ctx, tls_conn_on_hello, NULL);
	SSL_CTX_set_cert_cb(ctx, tls_conn_on_cert, NULL);
	SSL_CTX_set_alpn_select_cb(ctx, tls_conn_on_alpn, NULL);
	SSL_CTX_set_tlsext_servername_callback(ctx, accept_name);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_num_tickets(ctx, 1) != 1 ||
		SSL_CTX_set1_groups(ctx, groups, (long)ARRAY_SIZE(groups)) != 1 ||
		SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
					      "TLS_CHACHA20_POLY1305_SHA256") != 1 ||
		SSL_CTX_set_cipher_list(ctx, "ECDHE-ECDSA-AES128-GCM-SHA256:"
					     "ECDHE-ECDSA-AES256-GCM-SHA384:"
					     "ECDHE-ECDSA-CHACHA20-POLY1305") != 1 ||
		SSL_CTX_use_PrivateKey(ctx, key) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

bool tls_server_prepare(struct tls_server *s)
{
	if (s->ctx)
		return true;
	/* The host's openssl.cnf is not read: what we accept is decided here. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL))
		return false;
	if (!s->pkey)
		s->pkey = p256_pkey(s->key);
	if (!s->bio)
		s->bio = tls_conn_bio_new();
	if (s->pkey && s->bio)
		s->ctx = server_make_context(s->pkey);
	ERR_clear_error();
	return s->ctx;
}

int tls_server_new(struct tls_server **ret, struct cloche_err *err)
{
	_cleanup_(tls_server_freep) struct tls_server *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	s->scratch = malloc(TLS_OUT_SCRATCH);
	if (!s->scratch)
		return err_nomem(err);
	s->key = p256_new(s->spki);
	if (!s->key) {
		const char *why = ERR_reason_error_string(ERR_peek_error());

		ERR_clear_error();
		return err_set(err, E_NETWORK, "make a key: %s", why ? why : "out of memory");
	}
	*ret = TAKE_PTR(s);
	return 0;
}

struct tls_server *tls_server_free(struct tls_server *s)
{
	if (s) {
		SSL_CTX_free(s->ctx);
		EVP_PKEY_free(s->pkey);
		p256_free(s->key);
		BIO_meth_free(s->bio);
		free(s->scratch);
		free(s);
	}
	return NULL;
}

struct str tls_server_spki(const struct tls_server *s)
{
	return str_make(s->spki, sizeof(s->spki));
}

struct tls_leaf *tls_leaf_new(struct tls_server *s, struct str der)
{
	const unsigned char *at = (const unsigned char *)der.p;
	struct tls_leaf *leaf = calloc(1, sizeof(*leaf));

	if (leaf && der.n <= INT32_MAX && tls_server_prepare(s))
		leaf->cert = d2i_X509(NULL, &at, (long)der.n);
	if (leaf && leaf->cert && at == (const unsigned char *)der.p + der.n &&
		X509_check_private_key(leaf->cert, s->pkey) == 1)
		return leaf;
	ERR_clear_error();
	return tls_leaf_free(leaf);
}

struct tls_leaf *tls_leaf_free(struct tls_leaf *leaf)
{
	if (leaf) {
		X509_free(leaf->cert);
		free(leaf);
	}
	return NULL;
}
