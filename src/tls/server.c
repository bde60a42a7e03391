/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one SSL_CTX, one P-256 key. A certificate is put into each connection, which
 * costs a few microseconds; a context per name would cost a hundred times that. Sessions are kept
 * by the clients alone, in tickets under a key that dies with this process.
 *
 * OpenSSL 3 fetches algorithms on first use. To have that done before the process closes itself
 * off, a handshake of each version is made with a client in the same process. */
#include "base/fd.h"
#include "tls/server_internal.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(struct cloche_err *err, const char *what)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return err_set(err, E_NETWORK, "%s: %s", what, text ? text : "out of memory");
}

static int accept_name(SSL *ssl, int *alert, void *arg)
{
	return SSL_TLSEXT_ERR_OK;
}

static int make_context(struct tls_server *s, struct cloche_err *err)
{
	int groups[] = {NID_X25519, NID_X9_62_prime256v1};
	SSL_CTX *ctx = s->ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return fail(err, "make a TLS context");
	SSL_CTX_set_options(ctx,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* One read takes what is there, not a record header first. */
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, 32 * 1024);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_client_hello_cb(ctx, tls_conn_on_hello, NULL);
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
		SSL_CTX_use_PrivateKey(ctx, s->key) != 1)
		return fail(err, "set up TLS");
	return 0;
}

static int make_key(struct tls_server *s, struct cloche_err *err)
{
	int n;

	s->key = EVP_EC_gen("P-256");
	if (!s->key)
		return fail(err, "make a key");
	n = i2d_PUBKEY(s->key, &s->spki);
	if (n <= 0)
		return fail(err, "encode a public key");
	s->spki_n = (size_t)n;
	return 0;
}

/* A certificate that only the throw-away handshakes see. */
static X509 *make_own_cert(const struct tls_server *s)
{
	X509 *cert = X509_new();
	X509_NAME *name;

	if (!cert)
		return NULL;
	name = X509_get_subject_name(cert);
	if (!X509_NAME_add_entry_by_txt(
		    name, "CN", MBSTRING_ASC, (const unsigned char *)"warm", -1, -1, 0) ||
		!X509_set_issuer_name(cert, name) ||
		!X509_gmtime_adj(X509_getm_notBefore(cert), 0) ||
		!X509_gmtime_adj(X509_getm_notAfter(cert), 60) || !X509_set_pubkey(cert, s->key) ||
		!X509_sign(cert, s->key, EVP_sha256())) {
		X509_free(cert);
		return NULL;
	}
	return cert;
}

/* Drives both ends until the server's is done and has answered a byte of data. */
static bool converse(struct tls_conn *c, SSL *client, const struct tls_leaf *leaf)
{
	char byte;

	for (int turn = 0; turn < 16; turn++) {
		enum tls_hs r;

		(void)SSL_do_handshake(client);
		r = tls_conn_handshake(c);
		if (r == TLS_HS_WANT_LEAF && tls_conn_set_leaf(c, leaf) == 0)
			r = tls_conn_handshake(c);
		if (r == TLS_HS_FAILED)
			return false;
		if (r == TLS_HS_DONE && SSL_is_init_finished(client)) {
			return SSL_write(client, "x", 1) == 1 && tls_conn_read(c, &byte, 1) == 1 &&
			       tls_conn_write(c, "y", 1) == 1 && SSL_read(client, &byte, 1) == 1;
		}
	}
	return false;
}

static bool warm_version(struct tls_server *s, const struct tls_leaf *leaf, int version)
{
	static const unsigned char alpn[] = "\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *client = NULL;
	struct tls_conn *c = NULL;
	int fds[2] = {-1, -1};
	char name[] = "warm";
	bool ok;

	ok = ctx && SSL_CTX_set_min_proto_version(ctx, version) == 1 &&
	     SSL_CTX_set_max_proto_version(ctx, version) == 1 &&
	     SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn) - 1) == 0 &&
	     fd_socketpair(SOCK_STREAM, fds) == 0 && fd_set_nonblock(fds[0], true) == 0 &&
	     fd_set_nonblock(fds[1], true) == 0;
	if (ok) {
		client = SSL_new(ctx);
		c = tls_conn_new(s, fds[0]);
		ok = client && c && SSL_set_fd(client, fds[1]) == 1 &&
		     SSL_set_tlsext_host_name(client, name) == 1;
	}
	if (ok) {
		SSL_set_connect_state(client);
		ok = converse(c, client, leaf);
		tls_conn_shutdown(c);
	}
	tls_conn_free(c);
	SSL_free(client);
	SSL_CTX_free(ctx);
	fd_close(fds[0]);
	fd_close(fds[1]);
	return ok;
}

static int warm(struct tls_server *s, struct cloche_err *err)
{
	struct tls_leaf own = {.cert = make_own_cert(s)};
	bool ok = own.cert && warm_version(s, &own, TLS1_3_VERSION) &&
		  warm_version(s, &own, TLS1_2_VERSION);
	int r = ok ? 0 : fail(err, "handshake with ourselves");

	X509_free(own.cert);
	ERR_clear_error();
	return r;
}

int tls_server_new(struct tls_server **ret, struct cloche_err *err)
{
	_cleanup_(tls_server_freep) struct tls_server *s = NULL;
	int r;

	/* The host's openssl.cnf is not read: what we accept is decided here. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
				      OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
		    NULL))
		return fail(err, "initialise OpenSSL");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err);
	s->scratch = malloc(TLS_OUT_SCRATCH);
	s->bio = tls_conn_bio_new();
	if (!s->scratch || !s->bio)
		return err_nomem(err);
	r = make_key(s, err);
	if (r < 0)
		return r;
	r = make_context(s, err);
	if (r < 0)
		return r;
	r = warm(s, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct tls_server *tls_server_free(struct tls_server *s)
{
	if (s) {
		SSL_CTX_free(s->ctx);
		EVP_PKEY_free(s->key);
		OPENSSL_free(s->spki);
		BIO_meth_free(s->bio);
		free(s->scratch);
		free(s);
	}
	return NULL;
}

struct str tls_server_spki(const struct tls_server *s)
{
	return str_make(s->spki, s->spki_n);
}

int tls_leaf_new(
	const struct tls_server *s, struct str der, struct tls_leaf **ret, struct cloche_err *err)
{
	const unsigned char *at = (const unsigned char *)der.p;
	struct tls_leaf *leaf = calloc(1, sizeof(*leaf));

	if (!leaf)
		return err_nomem(err);
	if (der.n <= INT32_MAX)
		leaf->cert = d2i_X509(NULL, &at, (long)der.n);
	if (!leaf->cert || at != (const unsigned char *)der.p + der.n ||
		X509_check_private_key(leaf->cert, s->key) != 1) {
		int r = fail(err, "certificate is not one for our key");

		tls_leaf_free(leaf);
		return r;
	}
	*ret = leaf;
	return 0;
}

struct tls_leaf *tls_leaf_free(struct tls_leaf *leaf)
{
	if (leaf) {
		X509_free(leaf->cert);
		free(leaf);
	}
	return NULL;
}
