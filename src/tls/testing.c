/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/testing.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_THREADS = 4096, HOUR = 3600 };

struct test_ca {
	EVP_PKEY *key;
	X509 *cert;
};

struct test_origin {
	struct test_origin_config config;
	SSL_CTX *ctx;
	int fd;
	uint16_t port;
	pthread_t listener, threads[MAX_THREADS];
	unsigned n;
	atomic_uint accepted, resumed;
};

struct test_conn {
	struct test_origin *origin;
	int fd;
	SSL *ssl;
	bool cut;
	struct buf kept;
};

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	test_need(e);
	test_need(X509_add_ext(x, e, -1) == 1);
	X509_EXTENSION_free(e);
}

static X509 *make_cert(EVP_PKEY *key, const struct test_cert *spec, bool is_ca)
{
	static atomic_long serial = 1000;
	X509 *x = X509_new(), *issuer = spec->ca ? spec->ca->cert : x;
	bool now = spec->from == 0 && spec->to == 0;
	X509_NAME *name;
	char san[600] = "";

	test_need(x);
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), atomic_fetch_add(&serial, 1));
	X509_gmtime_adj(X509_getm_notBefore(x), now ? -HOUR : spec->from);
	X509_gmtime_adj(X509_getm_notAfter(x), now ? HOUR : spec->to);
	X509_set_pubkey(x, key);
	name = X509_get_subject_name(x);
	if (spec->cn)
		X509_NAME_add_entry_by_txt(
			name, "CN", MBSTRING_ASC, (const unsigned char *)spec->cn, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer));
	add_extension(x, issuer, NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "CA:FALSE");
	if (spec->dns || spec->ip) {
		snprintf(san, sizeof(san), "%s%s",
			spec->dns ? "DNS:" : "IP:", spec->dns ? spec->dns : spec->ip);
		add_extension(x, issuer, NID_subject_alt_name, san);
	}
	test_need(X509_sign(x, spec->ca ? spec->ca->key : key, EVP_sha256()) > 0);
	return x;
}

struct test_ca *test_ca_new(const char *common_name)
{
	struct test_ca *ca = calloc(1, sizeof(*ca));
	const struct test_cert spec = {.cn = common_name};

	test_need(ca);
	ca->key = EVP_EC_gen("P-256");
	test_need(ca->key);
	ca->cert = make_cert(ca->key, &spec, true);
	return ca;
}

struct test_ca *test_ca_free(struct test_ca *ca)
{
	if (ca) {
		X509_free(ca->cert);
		EVP_PKEY_free(ca->key);
		free(ca);
	}
	return NULL;
}

void test_ca_add_pem(const struct test_ca *ca, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *p;
	long n;

	test_need(bio && PEM_write_bio_X509(bio, ca->cert) == 1);
	n = BIO_get_mem_data(bio, &p);
	test_need(buf_add(out, p, (size_t)n) == 0);
	BIO_free(bio);
}

void test_rsa_add_pem(struct buf *out)
{
	EVP_PKEY *key = EVP_RSA_gen(2048);
	BIO *bio = BIO_new(BIO_s_mem());
	char *p;
	long n;

	test_need(key && bio &&
		  PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
	n = BIO_get_mem_data(bio, &p);
	test_need(buf_add(out, p, (size_t)n) == 0);
	BIO_free(bio);
	EVP_PKEY_free(key);
}

static SSL_CTX *make_ctx(const struct test_origin_config *config)
{
	static const unsigned char id[] = "test";
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = make_cert(key, config->cert, false);

	test_need(ctx && SSL_CTX_use_certificate(ctx, x) == 1 &&
		  SSL_CTX_use_PrivateKey(ctx, key) == 1);
	SSL_CTX_set_session_id_context(ctx, id, sizeof(id));
	/* Level 0, so that it can offer what a client must refuse. */
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
	if (config->max_tls)
		SSL_CTX_set_max_proto_version(ctx, config->max_tls);
	X509_free(x);
	EVP_PKEY_free(key);
	return ctx;
}

static int select_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
	const unsigned char *in, unsigned n, void *arg)
{
	static const unsigned char wanted[] = "\x02h2\x08http/1.1";
	unsigned char *at;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&at, ret_n, wanted, sizeof(wanted) - 1, in, n) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = at;
	return SSL_TLSEXT_ERR_OK;
}

bool test_conn_is_h2(const struct test_conn *c)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	if (c->ssl)
		SSL_get0_alpn_selected(c->ssl, &p, &n);
	return n == 2;
}

static void conn_free(struct test_conn *c)
{
	if (c->ssl) {
		if (!c->cut)
			(void)SSL_shutdown(c->ssl);
		SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
		SSL_free(c->ssl);
	}
	ERR_clear_error();
	buf_done(&c->kept);
	close(c->fd);
	free(c);
}

static void *serve(void *arg)
{
	struct test_conn *c = arg;
	struct test_origin *o = c->origin;

	if (o->ctx) {
		c->ssl = SSL_new(o->ctx);
		test_need(c->ssl && SSL_set_fd(c->ssl, c->fd) == 1);
		if (SSL_accept(c->ssl) != 1) {
			c->cut = true;
			conn_free(c);
			return NULL;
		}
		if (SSL_session_reused(c->ssl))
			atomic_fetch_add(&o->resumed, 1);
	}
	o->config.serve(c, o->config.arg);
	conn_free(c);
	return NULL;
}

static void *listen_loop(void *arg)
{
	struct test_origin *o = arg;
	const struct timeval limit = {.tv_sec = 20};
	const int one = 1;

	for (;;) {
		int fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC);
		struct test_conn *c;

		if (fd < 0)
			return NULL;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		c = calloc(1, sizeof(*c));
		test_need(c && o->n < MAX_THREADS);
		c->origin = o;
		c->fd = fd;
		c->kept = BUF_INIT(1 << 20);
		atomic_fetch_add(&o->accepted, 1);
		test_need(pthread_create(&o->threads[o->n++], NULL, serve, c) == 0);
	}
}

struct test_origin *test_origin_start(const struct test_origin_config *config)
{
	struct test_origin *o = calloc(1, sizeof(*o));
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(a.v4);

	test_need(o);
	o->config = *config;
	if (config->v6) {
		a.v6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
		n = sizeof(a.v6);
	}
	o->fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	test_need(o->fd >= 0 && bind(o->fd, &a.sa, n) == 0 && listen(o->fd, 256) == 0);
	test_need(getsockname(o->fd, &a.sa, &n) == 0);
	o->port = ntohs(config->v6 ? a.v6.sin6_port : a.v4.sin_port);
	if (config->cert)
		o->ctx = make_ctx(config);
	if (o->ctx && config->h2)
		SSL_CTX_set_alpn_select_cb(o->ctx, select_alpn, NULL);
	test_need(pthread_create(&o->listener, NULL, listen_loop, o) == 0);
	return o;
}

struct test_origin *test_origin_stop(struct test_origin *o)
{
	if (!o)
		return NULL;
	(void)shutdown(o->fd, SHUT_RDWR);
	pthread_join(o->listener, NULL);
	close(o->fd);
	for (unsigned i = 0; i < o->n; i++)
		pthread_join(o->threads[i], NULL);
	SSL_CTX_free(o->ctx);
	free(o);
	return NULL;
}

uint16_t test_origin_port(const struct test_origin *o)
{
	return o->port;
}

unsigned test_origin_accepted(const struct test_origin *o)
{
	return atomic_load(&o->accepted);
}

unsigned test_origin_resumed(const struct test_origin *o)
{
	return atomic_load(&o->resumed);
}

static long read_raw(struct test_conn *c, void *p, size_t n)
{
	int r;

	if (!c->ssl)
		return recv(c->fd, p, n, 0);
	r = SSL_read(c->ssl, p, (int)n);
	return r > 0 ? r : SSL_get_error(c->ssl, r) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

long test_conn_read(struct test_conn *c, void *p, size_t n)
{
	size_t kept = MIN(n, buf_len(&c->kept));

	if (kept == 0)
		return read_raw(c, p, n);
	memcpy(p, buf_data(&c->kept), kept);
	buf_consume(&c->kept, kept);
	return (long)kept;
}

bool test_conn_write(struct test_conn *c, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t done = c->ssl ? SSL_write(c->ssl, at, (int)MIN(n, (size_t)1 << 20))
				      : send(c->fd, at, n, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

bool test_conn_write_z(struct test_conn *c, const char *z)
{
	return test_conn_write(c, z, strlen(z));
}

void test_conn_cut(struct test_conn *c)
{
	c->cut = true;
}

bool test_conn_read_head(struct test_conn *c, struct buf *ret)
{
	for (;;) {
		size_t end = str_find(buf_str(&c->kept), STR("\r\n\r\n"));
		char *at;
		long n;

		if (end < buf_len(&c->kept)) {
			test_need(buf_add(ret, buf_data(&c->kept), end + 4) == 0);
			buf_consume(&c->kept, end + 4);
			return true;
		}
		test_need(buf_reserve(&c->kept, 4096, &at) == 0);
		n = read_raw(c, at, 4096);
		if (n <= 0)
			return false;
		buf_commit(&c->kept, (size_t)n);
	}
}
