/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "tap.h"
#include "tls/ca.h"
#include "tls/server.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tls_server *server;
static struct tls_ca *ca;

/* A client with settings of its own, and the server's end, over a socket pair. */
struct pair {
	int fds[2];
	SSL_CTX *ctx;
	SSL *client;
	struct tls_conn *conn;
	unsigned leaves;
	bool h2; /* choose it */
};

static struct tls_leaf *leaf_for(struct str name)
{
	_cleanup_(buf_donep) struct buf der = BUF_INIT(TLS_CERT_MAX);
	struct tls_subject subject = {.name = name};
	struct tls_leaf *leaf;

	must(tls_ca_mint(ca, tls_server_spki(server), &subject, clock_real_usec(), &der, NULL) ==
		0);
	leaf = tls_leaf_new(server, buf_str(&der));
	must(leaf);
	return leaf;
}

static void pair_start(struct pair *p, const char *sni, int version)
{
	*p = (struct pair){.ctx = SSL_CTX_new(TLS_client_method())};
	must(fd_socketpair(SOCK_STREAM, p->fds) == 0);
	for (int i = 0; i < 2; i++)
		must(fd_set_nonblock(p->fds[i], true) == 0);
	SSL_CTX_set_security_level(p->ctx, 0);
	must(SSL_CTX_set_min_proto_version(p->ctx, version) == 1);
	must(SSL_CTX_set_max_proto_version(p->ctx, version) == 1);
	p->client = SSL_new(p->ctx);
	p->conn = tls_conn_new(server, p->fds[0]);
	must(p->client && p->conn && SSL_set_fd(p->client, p->fds[1]) == 1);
	SSL_set_connect_state(p->client);
	if (sni) {
		char name[256]; /* OpenSSL's macro would cast const away */

		snprintf(name, sizeof(name), "%s", sni);
		must(SSL_set_tlsext_host_name(p->client, name) == 1);
	}
}

static void pair_stop(struct pair *p)
{
	tls_conn_free(p->conn);
	SSL_free(p->client);
	SSL_CTX_free(p->ctx);
	fd_close(p->fds[0]);
	fd_close(p->fds[1]);
}

static enum tls_hs server_step(struct pair *p)
{
	enum tls_hs r = tls_conn_handshake(p->conn);

	if (r == TLS_HS_WANT_LEAF) {
		struct str sni = tls_conn_sni(p->conn);
		struct tls_leaf *leaf = leaf_for(sni.n ? sni : STR("none.test"));

		p->leaves++;
		must(tls_conn_set_leaf(p->conn, leaf, p->h2) == 0);
		tls_leaf_free(leaf);
		r = tls_conn_handshake(p->conn);
	}
	return r;
}

/* Runs the handshake to its end on both sides; whether it succeeded. */
static bool handshake(struct pair *p)
{
	enum tls_hs r = TLS_HS_WANT_READ;

	for (int i = 0; i < 20; i++) {
		int c = SSL_do_handshake(p->client);

		r = r == TLS_HS_DONE ? r : server_step(p);
		if (r == TLS_HS_FAILED)
			return false;
		if (c == 1 && r == TLS_HS_DONE)
			return true;
	}
	return false;
}

static void test_versions(void)
{
	static const struct {
		int version;
		bool ok;
	} all[] = {{TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct pair p;

		pair_start(&p, "a.test", all[i].version);
		check(handshake(&p) == all[i].ok);
		check_str(tls_conn_sni(p.conn), "a.test");
		if (!all[i].ok)
			check_z(tls_conn_error(p.conn), "unsupported protocol");
		pair_stop(&p);
	}
}

static void test_no_name(void)
{
	struct pair p;

	pair_start(&p, NULL, TLS1_3_VERSION);
	check(handshake(&p));
	check(tls_conn_sni(p.conn).n == 0);
	check_int(p.leaves, 1);
	pair_stop(&p);
	pair_start(&p, "a\x01.test", TLS1_3_VERSION);
	check(!handshake(&p));
	check_z(tls_conn_error(p.conn), "server_name is not a host name");
	pair_stop(&p);
}

static void test_refused(void)
{
	struct pair p;

	pair_start(&p, "a.test", TLS1_3_VERSION);
	(void)SSL_do_handshake(p.client);
	check(tls_conn_handshake(p.conn) == TLS_HS_WANT_LEAF);
	tls_conn_refuse(p.conn, "because");
	check(tls_conn_handshake(p.conn) == TLS_HS_FAILED);
	check_z(tls_conn_error(p.conn), "because");
	check(SSL_do_handshake(p.client) == -1);
	pair_stop(&p);
}

static void test_alpn(void)
{
	static const struct {
		const char *protos;
		unsigned offer;
		bool h2;
		const char *chosen; /* NULL: none, and the handshake fails */
	} all[] = {
		{"", TLS_OFFER_HTTP1, false, ""},
		{"\2h2\10http/1.1", TLS_OFFER_H2 | TLS_OFFER_HTTP1, false, "http/1.1"},
		{"\2h2\10http/1.1", TLS_OFFER_H2 | TLS_OFFER_HTTP1, true, "h2"},
		{"\10http/1.0\10http/1.1", TLS_OFFER_HTTP1, false, "http/1.1"},
		{"\2h2", TLS_OFFER_H2, true, "h2"},
		{"\2h2", TLS_OFFER_H2, false, NULL},
		{"\10http/1.1", TLS_OFFER_HTTP1, true, NULL},
		{"\2h3", 0, false, NULL},
		{"\2H2\3h2c", 0, true, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const unsigned char *got;
		struct pair p;
		unsigned n;

		pair_start(&p, "a.test", TLS1_3_VERSION);
		p.h2 = all[i].h2;
		must(SSL_set_alpn_protos(p.client, (const unsigned char *)all[i].protos,
			     (unsigned)strlen(all[i].protos)) == 0);
		check(handshake(&p) == (all[i].chosen != NULL));
		check_int(tls_conn_offer(p.conn), all[i].offer);
		SSL_get0_alpn_selected(p.client, &got, &n);
		check_str(str_make(got, n), all[i].chosen ? all[i].chosen : "");
		if (!all[i].offer)
			check(strstr(tls_conn_error(p.conn), "HTTP/2, HTTP/1.1") != NULL);
		pair_stop(&p);
	}
}

/* Whoever passes the connection on undecrypted has to have every byte of it. */
static void test_taken(void)
{
	char hello[4096];
	struct pair p;
	ssize_t n;

	pair_start(&p, "a.test", TLS1_3_VERSION);
	(void)SSL_do_handshake(p.client);
	n = recv(p.fds[0], hello, sizeof(hello) - 1, 0);
	must(n > 100);
	hello[n++] = 'x'; /* what comes behind it */
	must(send(p.fds[1], hello, (size_t)n, 0) == n);
	check(tls_conn_handshake(p.conn) == TLS_HS_WANT_LEAF);
	check(str_eq(tls_conn_taken(p.conn), str_make(hello, (size_t)n)));
	pair_stop(&p);
}

/* The ClientHello arrives byte by byte; and one that never ends. */
static void test_hello_in_pieces(void)
{
	char hello[4096], junk[TLS_HELLO_MAX];
	enum tls_hs r = TLS_HS_WANT_READ;
	struct pair p;
	ssize_t n;

	pair_start(&p, "a.test", TLS1_3_VERSION);
	(void)SSL_do_handshake(p.client);
	n = recv(p.fds[0], hello, sizeof(hello), 0);
	must(n > 100);
	for (ssize_t i = 0; i < n; i++) {
		check(r == TLS_HS_WANT_READ && !tls_conn_has_hello(p.conn));
		must(send(p.fds[1], hello + i, 1, 0) == 1);
		r = i + 1 < n ? tls_conn_handshake(p.conn) : r;
	}
	check(handshake(&p));
	pair_stop(&p);

	pair_start(&p, NULL, TLS1_3_VERSION);
	memset(junk, 'x', sizeof(junk));
	memcpy(junk, "\x16\3\1\x3f\xff\1\0\x7f\0\3\3", 11);
	must(send(p.fds[1], junk, sizeof(junk), 0) == (ssize_t)sizeof(junk));
	for (int i = 0; i < 4 && r != TLS_HS_FAILED; i++)
		r = tls_conn_handshake(p.conn);
	check(r == TLS_HS_FAILED);
	check_z(tls_conn_error(p.conn), "ClientHello too large");
	pair_stop(&p);
}

/* That a client has whose connection then ends without close_notify. */
static SSL_SESSION *new_session(int version)
{
	SSL_SESSION *session;
	struct pair p;
	char byte;

	pair_start(&p, "a.test", version);
	check(handshake(&p));
	check(tls_conn_write(p.conn, "x", 1, false) == 1);
	check(SSL_read(p.client, &byte, 1) == 1);
	session = SSL_get1_session(p.client);
	must(session);
	SSL_set_shutdown(p.client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	pair_stop(&p);
	return session;
}

static bool is_resumed(SSL_SESSION *session, const char *name, int version)
{
	struct pair p;
	bool r;

	pair_start(&p, name, version);
	must(SSL_set_session(p.client, session) == 1);
	r = handshake(&p) && SSL_session_reused(p.client);
	pair_stop(&p);
	return r;
}

/* A ticket is good for the name that it was given for, and for no other. */
static void test_resumption(void)
{
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		SSL_SESSION *session = new_session(version);

		check(is_resumed(session, "a.test", version));
		check(!is_resumed(session, "b.test", version));
		SSL_SESSION_free(session);
	}
}

/* The oldest goes, and its client begins anew. */
static void test_sessions_are_bounded(void)
{
	SSL_SESSION *first = new_session(TLS1_3_VERSION);

	for (int i = 0; i < TLS_SESSIONS_MAX - 2; i++)
		SSL_SESSION_free(new_session(TLS1_3_VERSION));
	check(is_resumed(first, "a.test", TLS1_3_VERSION));
	for (int i = 0; i < 2; i++)
		SSL_SESSION_free(new_session(TLS1_3_VERSION));
	check(!is_resumed(first, "a.test", TLS1_3_VERSION));
	SSL_SESSION_free(first);
}

static void test_data_and_end(void)
{
	static char out[512 * 1024], in[512 * 1024];
	size_t sent = 0, got = 0;
	struct pair p;
	ssize_t n = 0;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 7);
	pair_start(&p, "a.test", TLS1_3_VERSION);
	check(handshake(&p));
	/* More than the socket takes: what it does not take is kept, and then -EAGAIN. */
	while ((n = tls_conn_write(p.conn, out + sent, sizeof(out) - sent, false)) > 0)
		sent += (size_t)n;
	check_int(n, -EAGAIN);
	check(tls_conn_pending_out(p.conn) > 0);
	while (got < sizeof(out)) {
		n = SSL_read(p.client, in + got, (int)(sizeof(in) - got));
		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		must(tls_conn_flush(p.conn) == 0);
		if (sent < sizeof(out)) {
			n = tls_conn_write(p.conn, out + sent, sizeof(out) - sent, false);
			must(n > 0 || n == -EAGAIN);
			sent += n > 0 ? (size_t)n : 0;
		}
	}
	check(memcmp(in, out, sizeof(out)) == 0);
	check_int(tls_conn_read(p.conn, in, 10), -EAGAIN);
	check(SSL_write(p.client, "hello", 5) == 5);
	check_int(tls_conn_read(p.conn, in, 2), 2);
	check(tls_conn_has_pending(p.conn));
	check_int(tls_conn_read(p.conn, in, 10), 3);
	tls_conn_shutdown(p.conn);
	check(SSL_read(p.client, in, 1) <= 0);
	check_int(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
	check(SSL_shutdown(p.client) >= 0);
	check_int(tls_conn_read(p.conn, in, 1), 0);
	pair_stop(&p);

	/* An end without close_notify is not an end of the stream. */
	pair_start(&p, "a.test", TLS1_3_VERSION);
	check(handshake(&p));
	p.fds[1] = fd_close(p.fds[1]);
	check_int(tls_conn_read(p.conn, in, 1), -EPIPE);
	pair_stop(&p);
}

/* Whether there is something for the client that it has not taken from its socket. */
static bool has_mail(const struct pair *p)
{
	char c;

	return recv(p->fds[0], &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Nothing goes by itself that can go with bytes: the ticket with the first, close_notify with the
 * last. */
static void test_one_flight(void)
{
	static char out[256 * 1024], in[256 * 1024];
	struct pair p;
	ssize_t n;

	pair_start(&p, "a.test", TLS1_3_VERSION);
	check(handshake(&p));
	check(!has_mail(&p));
	check(!SSL_SESSION_has_ticket(SSL_get0_session(p.client)));
	check_int(tls_conn_write(p.conn, "bye", 3, true), 3);
	check_int(SSL_read(p.client, in, 100), 3);
	check(SSL_SESSION_has_ticket(SSL_get0_session(p.client)));
	check(SSL_read(p.client, in, 1) <= 0);
	check_int(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
	tls_conn_shutdown(p.conn);
	check(!has_mail(&p));
	pair_stop(&p);

	/* Those that are not all taken are not the last. */
	pair_start(&p, "a.test", TLS1_3_VERSION);
	check(handshake(&p));
	n = tls_conn_write(p.conn, out, sizeof(out), true);
	check(n > 0 && (size_t)n < sizeof(out));
	for (ssize_t got = 0; got < n;) {
		int r = SSL_read(p.client, in, sizeof(in));

		must(r > 0 || tls_conn_flush(p.conn) == 0);
		got += MAX(r, 0);
	}
	check(SSL_read(p.client, in, 1) <= 0);
	check_int(SSL_get_shutdown(p.client), 0);
	pair_stop(&p);
}

static void test_foreign_leaf(void)
{
	struct tls_server *other;
	_cleanup_(buf_donep) struct buf der = BUF_INIT(TLS_CERT_MAX);
	const struct tls_subject subject = {.name = STR("a.test")};

	must(tls_server_new(&other, NULL) == 0);
	must(tls_ca_mint(ca, tls_server_spki(other), &subject, clock_real_usec(), &der, NULL) == 0);
	check(!tls_leaf_new(server, buf_str(&der)));
	check(!tls_leaf_new(other, str_prefix(buf_str(&der), buf_len(&der) - 1)));
	check(!tls_leaf_new(other, STR("junk")));
	tls_server_free(other);
}

int main(void)
{
	must(tls_server_new(&server, NULL) == 0);
	must(tls_ca_new(clock_real_usec(), &ca, NULL) == 0);
	run_test(test_versions);
	run_test(test_no_name);
	run_test(test_refused);
	run_test(test_alpn);
	run_test(test_taken);
	run_test(test_hello_in_pieces);
	run_test(test_resumption);
	run_test(test_sessions_are_bounded);
	run_test(test_data_and_end);
	run_test(test_one_flight);
	run_test(test_foreign_leaf);
	tls_server_free(server);
	tls_ca_free(ca);
	return tap_done();
}
