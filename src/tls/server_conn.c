/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: OpenSSL reads and writes through a BIO of ours. Reading goes straight to the
 * socket, with a limit on what may come before the ClientHello is complete. Writing only gathers:
 * all records of one operation go into one scratch area, which is sent with one call at the end.
 * What the socket does not take is copied into the connection and blocks further writes until it is
 * sent. So a write is never half done inside OpenSSL, and an idle connection has no buffer of ours
 * except its session ticket, until the first bytes are sent.
 *
 * The ClientHello callback runs first without a certificate: it reads the name and asks to be
 * called again (SSL_CLIENT_HELLO_RETRY). The caller gets a certificate in its own time and calls
 * the handshake again. */
#include "tls/errors.h"
#include "tls/server_internal.h"

#include <errno.h>
#include <openssl/sha.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_error(struct tls_conn *c, const char *text)
{
	if (!c->error)
		c->error = text;
}

static int bio_read(BIO *b, char *p, int n)
{
	struct tls_conn *c = BIO_get_data(b);
	size_t want = (size_t)n;
	ssize_t got;

	BIO_clear_retry_flags(b);
	if (c->drained) { /* if more has come, the descriptor is still readable */
		c->drained = false;
		BIO_set_retry_read(b);
		return -1;
	}
	if (c->stage == TLS_STAGE_HELLO) {
		want = MIN(want, TLS_HELLO_MAX - buf_len(&c->taken));
		if (want == 0) {
			set_error(c, "ClientHello too large");
			return -1;
		}
	}
	do {
		got = recv(c->fd, p, want, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		BIO_set_retry_read(b);
	else if (got <= 0)
		c->eof = true;
	else if (c->stage == TLS_STAGE_HELLO && buf_add(&c->taken, p, (size_t)got) < 0)
		return -1;
	c->drained = got > 0 && (size_t)got < want;
	return (int)got;
}

/* Gives the gathered records to the socket; keeps what it does not take. */
static int send_scratch(struct tls_conn *c)
{
	struct tls_server *s = c->server;
	size_t n = s->scratch_n;
	ssize_t sent = 0;

	s->scratch_n = 0;
	if (n == 0 || c->broken)
		return c->broken ? -EPIPE : 0;
	if (buf_len(&c->kept) == 0) {
		do {
			sent = send(c->fd, s->scratch, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		} while (sent < 0 && errno == EINTR);
		if (sent < 0 && errno != EAGAIN) {
			c->broken = true;
			return -EPIPE;
		}
	}
	sent = MAX(sent, 0);
	if (buf_add(&c->kept, s->scratch + sent, n - (size_t)sent) < 0) {
		set_error(c, "peer makes us answer and reads nothing");
		c->broken = true;
		return -EPIPE;
	}
	return 0;
}

static int gather(struct tls_conn *c, const char *p, size_t n)
{
	struct tls_server *s = c->server;

	while (n > 0) {
		size_t some = MIN(n, TLS_OUT_SCRATCH - s->scratch_n);

		memcpy(s->scratch + s->scratch_n, p, some);
		s->scratch_n += some;
		p += some;
		n -= some;
		if (s->scratch_n == TLS_OUT_SCRATCH && send_scratch(c) < 0)
			return -1;
	}
	return 0;
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct tls_conn *c = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (buf_len(&c->ticket) > 0) {
		if (gather(c, buf_data(&c->ticket), buf_len(&c->ticket)) < 0)
			return -1;
		buf_done(&c->ticket);
	}
	return gather(c, p, (size_t)n) < 0 ? -1 : n;
}

/* A TLS 1.3 handshake ends with nothing but the session ticket. Alone it would cost both sides a
 * packet and a wake-up, so it is sent with the first record that follows. Then no packet of ours
 * carries the acknowledgement that the client may wait for before it sends its request: the owner
 * of the socket sends it (fd_acknowledge). */
static int hold_ticket(struct tls_conn *c)
{
	struct tls_server *s = c->server;
	size_t n = s->scratch_n;

	if (SSL_version(c->ssl) != TLS1_3_VERSION)
		return send_scratch(c);
	s->scratch_n = 0;
	return buf_add(&c->ticket, s->scratch, n);
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	const struct tls_conn *c = BIO_get_data(b);

	switch (cmd) {
	case BIO_CTRL_FLUSH: /* done when the operation ends */
		return 1;
	case BIO_CTRL_EOF:
		return c->eof;
	default:
		return 0;
	}
}

BIO_METHOD *tls_conn_bio_new(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "room");

	if (m && (!BIO_meth_set_read(m, bio_read) || !BIO_meth_set_write(m, bio_write) ||
			 !BIO_meth_set_ctrl(m, bio_ctrl))) {
		BIO_meth_free(m);
		return NULL;
	}
	return m;
}

static void read_offer(struct tls_conn *c)
{
	const unsigned char *ext;
	struct str list;
	size_t n;

	c->offer = TLS_OFFER_HTTP1;
	if (!SSL_client_hello_get0_ext(
		    c->ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext, &n))
		return;
	list = hello_alpn_list(str_make(ext, n));
	c->offer = hello_alpn_has(list, STR("http/1.1")) ? TLS_OFFER_HTTP1 : 0;
	if (hello_alpn_has(list, STR("h2")))
		c->offer |= TLS_OFFER_H2;
}

static int read_name(struct tls_conn *c, int *alert)
{
	const unsigned char *ext;
	enum hello_sni e;
	struct str name;
	size_t n;

	if (!SSL_client_hello_get0_ext(c->ssl, TLSEXT_TYPE_server_name, &ext, &n))
		return 0;
	e = hello_sni_parse(str_make(ext, n), &name);
	if (e != HELLO_SNI_OK) {
		set_error(c, hello_sni_text(e));
		*alert = e == HELLO_SNI_NAME ? SSL_AD_UNRECOGNIZED_NAME : SSL_AD_DECODE_ERROR;
		return -1;
	}
	memcpy(c->sni, name.p, name.n);
	c->sni_n = (unsigned char)name.n;
	return 0;
}

int tls_conn_on_hello(SSL *ssl, int *alert, void *arg)
{
	struct tls_conn *c = SSL_get_app_data(ssl);
	unsigned char context[SHA256_DIGEST_LENGTH];

	if (c->refused) {
		*alert = SSL_AD_ACCESS_DENIED;
		return SSL_CLIENT_HELLO_ERROR;
	}
	if (c->stage == TLS_STAGE_REST)
		return SSL_CLIENT_HELLO_SUCCESS;
	if (c->stage == TLS_STAGE_HELLO) {
		if (read_name(c, alert) < 0)
			return SSL_CLIENT_HELLO_ERROR;
		read_offer(c);
		/* A session is only resumed under the name that it was made for. */
		SHA256((const unsigned char *)c->sni, c->sni_n, context);
		if (!SSL_set_session_id_context(ssl, context, sizeof(context)))
			return SSL_CLIENT_HELLO_ERROR;
		c->stage = TLS_STAGE_LEAF;
	}
	return SSL_CLIENT_HELLO_RETRY;
}

int tls_conn_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
	const unsigned char *in, unsigned in_n, void *arg)
{
	struct tls_conn *c = SSL_get_app_data(ssl);
	struct str chosen = c->h2 ? STR("h2") : STR("http/1.1");

	if (c->offer & (c->h2 ? TLS_OFFER_H2 : TLS_OFFER_HTTP1)) {
		*out = (const unsigned char *)chosen.p;
		*out_n = (unsigned char)chosen.n;
		return SSL_TLSEXT_ERR_OK;
	}
	set_error(c, c->offer ? "client does not offer the protocol that was chosen"
			      : "client offers no protocol that we speak (HTTP/2, HTTP/1.1)");
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int tls_conn_on_cert(SSL *ssl, void *arg)
{
	const struct tls_conn *c = SSL_get_app_data(ssl);

	return SSL_use_certificate(ssl, c->cert);
}

struct tls_conn *tls_conn_new(struct tls_server *s, int fd)
{
	_cleanup_(tls_conn_freep) struct tls_conn *c = calloc(1, sizeof(*c));
	BIO *bio;

	if (!c)
		return NULL;
	c->server = s;
	c->fd = fd;
	c->kept = BUF_INIT(TLS_OUT_KEPT_MAX);
	c->taken = BUF_INIT(TLS_HELLO_MAX);
	c->ticket = BUF_INIT(TLS_OUT_SCRATCH);
	if (tls_server_prepare(s))
		c->ssl = SSL_new(s->ctx);
	if (!c->ssl)
		return NULL;
	bio = BIO_new(s->bio);
	if (!bio)
		return NULL;
	BIO_set_data(bio, c);
	BIO_set_init(bio, 1);
	SSL_set_bio(c->ssl, bio, bio);
	SSL_set_accept_state(c->ssl);
	if (!SSL_set_app_data(c->ssl, c))
		return NULL;
	return TAKE_PTR(c);
}

struct tls_conn *tls_conn_free(struct tls_conn *c)
{
	if (c) {
		/* Otherwise the session would be dropped if the client ended without close_notify;
		 * RFC 8446 6.1 does not ask for that. */
		if (c->ssl)
			SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
		SSL_free(c->ssl);
		X509_free(c->cert);
		buf_done(&c->kept);
		buf_done(&c->taken);
		buf_done(&c->ticket);
		free(c);
		ERR_clear_error();
	}
	return NULL;
}

struct str tls_conn_sni(const struct tls_conn *c)
{
	return c->sni_n ? str_make(c->sni, c->sni_n) : STR_NULL;
}

bool tls_conn_has_hello(const struct tls_conn *c)
{
	return c->stage != TLS_STAGE_HELLO;
}

unsigned tls_conn_offer(const struct tls_conn *c)
{
	return c->offer;
}

struct str tls_conn_taken(const struct tls_conn *c)
{
	return buf_str(&c->taken);
}

int tls_conn_set_leaf(struct tls_conn *c, const struct tls_leaf *leaf, bool h2)
{
	if (X509_up_ref(leaf->cert) != 1)
		return -ENOMEM;
	X509_free(c->cert);
	c->cert = leaf->cert;
	buf_done(&c->taken);
	c->h2 = h2;
	c->stage = TLS_STAGE_REST;
	return 0;
}

void tls_conn_refuse(struct tls_conn *c, const char *why)
{
	c->refused = true;
	set_error(c, why);
}

const char *tls_conn_error(const struct tls_conn *c)
{
	return c->error ? c->error : "connection ended";
}

/* Notes why OpenSSL gave up: its texts are constants. */
static void note_failure(struct tls_conn *c)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	if (c->eof)
		set_error(c, "client closed the connection");
	else if (text)
		set_error(c, text);
}

enum tls_hs tls_conn_handshake(struct tls_conn *c)
{
	int r, e;

	errors_clear();
	r = SSL_do_handshake(c->ssl);
	e = r == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, r);
	if (e == SSL_ERROR_SSL || e == SSL_ERROR_SYSCALL)
		note_failure(c);
	if ((e == SSL_ERROR_NONE ? hold_ticket(c) : send_scratch(c)) < 0)
		return TLS_HS_FAILED;
	switch (e) {
	case SSL_ERROR_NONE:
		return TLS_HS_DONE;
	case SSL_ERROR_WANT_READ:
		return TLS_HS_WANT_READ;
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
		return TLS_HS_WANT_LEAF;
	default:
		return TLS_HS_FAILED;
	}
}

ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n)
{
	size_t got = 0;
	int r, e;

	c->drained = false;
	errors_clear();
	r = SSL_read_ex(c->ssl, p, n, &got);
	e = r == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, r);
	if (e == SSL_ERROR_SSL || e == SSL_ERROR_SYSCALL)
		note_failure(c);
	if (send_scratch(c) < 0)
		return -EPIPE;
	if (got >= TLS_BULK && !c->bulk) {
		c->bulk = true;
		SSL_set_default_read_buffer_len(c->ssl, TLS_BULK_BUFFER);
	}
	switch (e) {
	case SSL_ERROR_NONE:
		return (ssize_t)got;
	case SSL_ERROR_WANT_READ:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		return c->eof ? -EPIPE : -EPROTO;
	}
}

bool tls_conn_has_pending(const struct tls_conn *c)
{
	return SSL_has_pending(c->ssl);
}

ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n, bool last)
{
	size_t done = 0, some;

	if (c->broken)
		return -EPIPE;
	if (buf_len(&c->kept) > 0)
		return -EAGAIN;
	errors_clear();
	/* Take only as much as fits into the scratch area as records. */
	some = MIN(n, (size_t)TLS_OUT_SCRATCH - 8192);
	if (SSL_write_ex(c->ssl, p, some, &done) != 1) {
		note_failure(c);
		c->server->scratch_n = 0;
		return -EPROTO;
	}
	if (last && done == n)
		(void)SSL_shutdown(c->ssl);
	return send_scratch(c) < 0 ? -EPIPE : (ssize_t)done;
}

int tls_conn_flush(struct tls_conn *c)
{
	while (buf_len(&c->kept) > 0 && !c->broken) {
		ssize_t n = send(
			c->fd, buf_data(&c->kept), buf_len(&c->kept), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			c->broken = true;
		else
			buf_consume(&c->kept, (size_t)n);
	}
	if (buf_len(&c->kept) == 0)
		buf_done(&c->kept);
	return c->broken ? -EPIPE : 0;
}

size_t tls_conn_pending_out(const struct tls_conn *c)
{
	return c->broken ? 0 : buf_len(&c->kept);
}

void tls_conn_shutdown(struct tls_conn *c)
{
	if (c->broken || SSL_in_init(c->ssl) || SSL_get_shutdown(c->ssl) & SSL_SENT_SHUTDOWN)
		return;
	ERR_clear_error();
	(void)SSL_shutdown(c->ssl);
	(void)send_scratch(c);
}
