/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: there is one SSL_CTX, made for the first connection (see tls/server.c). Its
 * verification first asks tls/roots.h for the roots that the presented chain may need. Sessions are
 * kept here by host and port, not in OpenSSL's own cache, so that a session is never offered to
 * another host. A session exists only if the certificate was verified for that host, and OpenSSL
 * keeps that result on resumption. */
#include "tls/client.h"
#include "base/hash.h"
#include "tls/errors.h"
#include "tls/roots.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum {
	MAX_SESSIONS = 32,
	KEY_MAX = 255 + 8,
	ERROR_MAX = 160,
	BULK = 8 * 1024,
	BULK_BUFFER = 72 * 1024
};

struct session {
	char key[KEY_MAX];
	SSL_SESSION *s;
	UT_hash_handle hh;
};

struct tls_trust {
	SSL_CTX *ctx; /* NULL until it is needed */
	struct tls_roots *roots;
	struct session *sessions; /* oldest first */
};

struct tls_client {
	struct tls_trust *trust;
	SSL *ssl;
	char key[KEY_MAX];
	bool established;
	bool bulk; /* much was read at once, so more is expected */
	enum tls_trouble trouble;
	char error[ERROR_MAX];
};

static void session_drop(struct tls_trust *t, struct session *e)
{
	HASH_DEL(t->sessions, e);
	SSL_SESSION_free(e->s);
	free(e);
}

static struct session *session_find(struct tls_trust *t, const char *key)
{
	struct session *e;

	HASH_FIND_STR(t->sessions, key, e);
	return e;
}

/* Takes s. */
static void session_keep(struct tls_trust *t, const char *key, SSL_SESSION *s)
{
	struct session *e = session_find(t, key);

	if (e) {
		SSL_SESSION_free(e->s);
		e->s = s;
		return;
	}
	if (HASH_COUNT(t->sessions) >= MAX_SESSIONS)
		session_drop(t, t->sessions);
	e = calloc(1, sizeof(*e));
	if (!e) {
		SSL_SESSION_free(s);
		return;
	}
	e->s = s;
	memcpy(e->key, key, sizeof(e->key));
	HASH_ADD_STR(t->sessions, key, e);
	if (!e->hh.tbl) { /* out of memory: it was not added */
		SSL_SESSION_free(e->s);
		free(e);
	}
}

/* Return nonzero if the reference is kept. */
static int on_session(SSL *ssl, SSL_SESSION *s)
{
	struct tls_client *c = SSL_get_app_data(ssl);

	if (!c || SSL_get_verify_result(ssl) != X509_V_OK || !SSL_SESSION_is_resumable(s))
		return 0;
	session_keep(c->trust, c->key, s);
	return 1;
}

static int verify(X509_STORE_CTX *ctx, void *arg)
{
	struct tls_trust *t = arg;

	if (t->roots)
		tls_roots_provide(t->roots, ctx);
	return X509_verify_cert(ctx) > 0;
}

static SSL_CTX *client_make_context(struct tls_trust *t)
{
	static const unsigned char alpn[] = "\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	X509_VERIFY_PARAM *param;

	if (!ctx)
		return NULL;
	param = SSL_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
	/* Only names in subjectAltName count, and a wildcard is a whole label (RFC 6125 6.4.3). */
	X509_VERIFY_PARAM_set_hostflags(
		param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, verify, t);
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	/* One system call reads all that is there, instead of two for each record. */
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	/* Ciphers and groups stay as OpenSSL orders them, so that an origin sees nothing that
	 * thousands of programs do not send. */
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn) - 1) != 0) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

static bool set_up(struct tls_trust *t)
{
	if (t->ctx)
		return true;
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL))
		t->ctx = client_make_context(t);
	ERR_clear_error();
	return t->ctx;
}

int tls_trust_new(bool system_roots, struct tls_trust **ret, struct cloche_err *err)
{
	_cleanup_(tls_trust_freep) struct tls_trust *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t)
		return err_nomem(err);
	if (system_roots)
		r = tls_roots_open(&t->roots, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

struct tls_trust *tls_trust_free(struct tls_trust *t)
{
	if (t) {
		while (t->sessions)
			session_drop(t, t->sessions);
		SSL_CTX_free(t->ctx);
		tls_roots_free(t->roots);
		free(t);
	}
	return NULL;
}

int tls_trust_add_pem(
	struct tls_trust *t, struct str pem, const char *source, struct cloche_err *err)
{
	int n;

	if (!set_up(t))
		return err_set(err, E_INTERNAL, "setting up TLS failed");
	n = tls_pem_each(pem, tls_roots_add, SSL_CTX_get_cert_store(t->ctx));
	ERR_clear_error();
	if (n == -ENOMEM)
		return err_nomem(err);
	if (n < 0)
		return err_set(err, E_CONFIG, "%s: a certificate in it is malformed", source);
	if (n == 0) {
		err_hint(err, "PEM text is expected: -----BEGIN CERTIFICATE-----");
		return err_set(err, E_CONFIG, "%s: no certificate in it", source);
	}
	return 0;
}

static bool set_host(SSL *ssl, struct str host)
{
	char name[256];
	unsigned char address[16];

	if (host.n == 0 || host.n >= sizeof(name))
		return false;
	memcpy(name, host.p, host.n);
	name[host.n] = '\0';
	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

int tls_client_new(struct tls_trust *t, int fd, struct str host, uint16_t port,
	struct tls_client **ret, struct cloche_err *err)
{
	_cleanup_(tls_client_freep) struct tls_client *c = calloc(1, sizeof(*c));
	struct session *e;

	if (!c)
		return err_nomem(err);
	c->trust = t;
	snprintf(c->key, sizeof(c->key), "%.*s:%u", STR_FMT(host), port);
	if (set_up(t))
		c->ssl = SSL_new(t->ctx);
	if (!c->ssl || SSL_set_fd(c->ssl, fd) != 1 || !set_host(c->ssl, host)) {
		ERR_clear_error();
		return err_set(err, E_INTERNAL, "setting up TLS to a host failed");
	}
	SSL_set_app_data(c->ssl, c);
	SSL_set_connect_state(c->ssl);
	e = session_find(t, c->key);
	if (e)
		(void)SSL_set_session(c->ssl, e->s);
	*ret = TAKE_PTR(c);
	return 0;
}

struct tls_client *tls_client_free(struct tls_client *c)
{
	if (!c)
		return NULL;
	if (c->ssl && c->established && c->trouble == TLS_TROUBLE_NONE) {
		(void)SSL_shutdown(c->ssl);
		/* A session whose connection was not shut down on both sides counts as broken and
		 * would not be resumed; RFC 8446 6.1 does not ask for that. */
		SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	}
	SSL_free(c->ssl);
	ERR_clear_error();
	free(c);
	return NULL;
}

int tls_client_offer_h2(struct tls_client *c, struct cloche_err *err)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";

	if (SSL_set_alpn_protos(c->ssl, both, sizeof(both) - 1) == 0)
		return 0;
	ERR_clear_error();
	return err_nomem(err);
}

/* Keeps the first description, printable ASCII only. */
static enum tls_io fail(struct tls_client *c, enum tls_trouble kind, const char *text)
{
	if (c->trouble != TLS_TROUBLE_NONE)
		return TLS_IO_FAILED;
	c->trouble = kind;
	snprintf(c->error, sizeof(c->error), "%s", text);
	for (char *p = c->error; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			*p = '?';
	return TLS_IO_FAILED;
}

static enum tls_io fail_ssl(struct tls_client *c)
{
	unsigned long e = ERR_get_error();
	long verified = SSL_get_verify_result(c->ssl);
	const char *text;

	if (verified != X509_V_OK && !c->established)
		return fail(c, TLS_TROUBLE_CERTIFICATE, X509_verify_cert_error_string(verified));
	text = ERR_reason_error_string(e);
	return fail(c, TLS_TROUBLE_PROTOCOL, text ? text : "TLS failed");
}

/* Find out what r means, which was not success. */
static enum tls_io classify(struct tls_client *c, int r)
{
	unsigned long e;

	switch (SSL_get_error(c->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return TLS_IO_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_IO_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_IO_EOF;
	case SSL_ERROR_SYSCALL:
		fail(c, TLS_TROUBLE_CONNECTION, "the connection was lost");
		return TLS_IO_CUT;
	default:
		e = ERR_peek_error();
		if (ERR_GET_LIB(e) != ERR_LIB_SSL ||
			ERR_GET_REASON(e) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
			return fail_ssl(c);
		fail(c, TLS_TROUBLE_CONNECTION, "the connection was closed without notice");
		return TLS_IO_CUT;
	}
}

enum tls_io tls_client_handshake(struct tls_client *c)
{
	int r;

	if (c->established)
		return TLS_IO_OK;
	errors_clear();
	r = SSL_do_handshake(c->ssl);
	if (r != 1)
		return classify(c, r);
	/* Check a resumed session too, and in case the library is ever set up differently. */
	if (SSL_get_verify_result(c->ssl) != X509_V_OK || !SSL_get0_peer_certificate(c->ssl))
		return fail(c, TLS_TROUBLE_CERTIFICATE, "the certificate was not verified");
	c->established = true;
	return TLS_IO_OK;
}

enum tls_io tls_client_read(struct tls_client *c, void *p, size_t n, size_t *ret_n)
{
	int r;

	if (!c->established)
		return fail(c, TLS_TROUBLE_PROTOCOL, "read before the handshake");
	errors_clear();
	r = SSL_read_ex(c->ssl, p, n, ret_n);
	if (r != 1)
		return classify(c, r);
	if (*ret_n >= BULK && !c->bulk) {
		c->bulk = true;
		SSL_set_default_read_buffer_len(c->ssl, BULK_BUFFER);
	}
	return TLS_IO_OK;
}

enum tls_io tls_client_write(struct tls_client *c, const void *p, size_t n, size_t *ret_n)
{
	int r;

	if (!c->established)
		return fail(c, TLS_TROUBLE_PROTOCOL, "write before the handshake");
	errors_clear();
	r = SSL_write_ex(c->ssl, p, n, ret_n);
	return r == 1 ? TLS_IO_OK : classify(c, r);
}

bool tls_client_has_pending(const struct tls_client *c)
{
	return SSL_has_pending(c->ssl) == 1;
}

bool tls_client_is_h2(const struct tls_client *c)
{
	const unsigned char *p;
	unsigned n;

	SSL_get0_alpn_selected(c->ssl, &p, &n);
	return str_eq(str_make(p, n), STR("h2"));
}

bool tls_client_resumed(const struct tls_client *c)
{
	return SSL_session_reused(c->ssl) == 1;
}

const char *tls_client_error(const struct tls_client *c, enum tls_trouble *ret_kind)
{
	if (ret_kind)
		*ret_kind = c->trouble;
	return c->error;
}
