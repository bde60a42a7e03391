/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the client talks to, and whom it does not: every kind of certificate, over real sockets. */
#include "base/clock.h"
#include "base/fd.h"
#include "tls/client.h"
#include "tls/testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

static struct test_ca *ca, *stranger;
static struct tls_trust *trust;

static void echo(struct test_conn *c, void *arg)
{
	char b[256];
	long n;

	while ((n = test_conn_read(c, b, sizeof(b))) > 0)
		if (!test_conn_write(c, b, (size_t)n) || b[0] == '!')
			break;
	if (n > 0)
		test_conn_cut(c);
}

static int dial(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	must(fd_set_nonblock(fd, true) == 0);
	return fd;
}

static void wait_fd(int fd, enum tls_io io)
{
	struct pollfd p = {.fd = fd, .events = io == TLS_IO_WRITE ? POLLOUT : POLLIN};

	must(poll(&p, 1, 10000) == 1);
}

static enum tls_io handshake(struct tls_client *c, int fd)
{
	for (;;) {
		enum tls_io io = tls_client_handshake(c);

		if (io != TLS_IO_READ && io != TLS_IO_WRITE)
			return io;
		wait_fd(fd, io);
	}
}

static enum tls_io read_some(struct tls_client *c, int fd, char *p, size_t n, size_t *ret)
{
	for (;;) {
		enum tls_io io = tls_client_read(c, p, n, ret);

		if (io != TLS_IO_READ && io != TLS_IO_WRITE)
			return io;
		wait_fd(fd, io);
	}
}

/* Connects to an origin that shows this certificate; returns the trouble. */
static enum tls_trouble attempt(
	const struct test_cert *cert, const char *host, int max_tls, char text[128])
{
	struct test_origin_config config = {.cert = cert, .serve = echo, .max_tls = max_tls};
	struct test_origin *o = test_origin_start(&config);
	int fd = dial(test_origin_port(o));
	struct tls_client *c = NULL;
	enum tls_trouble trouble = TLS_TROUBLE_NONE;
	enum tls_io io;
	size_t n;

	must(tls_client_new(trust, fd, str_from(host), test_origin_port(o), &c, NULL) == 0);
	io = handshake(c, fd);
	snprintf(text, 128, "%s", tls_client_error(c, &trouble));
	if (io == TLS_IO_OK)
		check_int(trouble, TLS_TROUBLE_NONE);
	else
		/* Nothing can be written to whom we do not trust. */
		check(tls_client_write(c, "secret", 6, &n) == TLS_IO_FAILED);
	tls_client_free(c);
	close(fd);
	test_origin_stop(o);
	return trouble;
}

static void test_verification(void)
{
	const struct {
		struct test_cert cert;
		const char *host;
		int max_tls;
		enum tls_trouble want;
		const char *text;
	} table[] = {
		{{.ca = ca, .dns = "a.test"}, "a.test", 0, TLS_TROUBLE_NONE, ""},
		{{.ca = ca, .dns = "a.test"}, "a.test", TLS1_2_VERSION, TLS_TROUBLE_NONE, ""},
		{{.ca = ca, .dns = "*.a.test"}, "x.a.test", 0, TLS_TROUBLE_NONE, ""},
		{{.ca = ca, .ip = "127.0.0.1"}, "127.0.0.1", 0, TLS_TROUBLE_NONE, ""},
		{{.ca = ca, .dns = "b.test"}, "a.test", 0, TLS_TROUBLE_CERTIFICATE, "hostname"},
		{{.ca = ca, .dns = "x*.a.test"}, "xy.a.test", 0, TLS_TROUBLE_CERTIFICATE,
			"hostname"},
		{{.ca = ca, .dns = "*.a.test"}, "x.y.a.test", 0, TLS_TROUBLE_CERTIFICATE,
			"hostname"},
		{{.ca = ca, .cn = "a.test"}, "a.test", 0, TLS_TROUBLE_CERTIFICATE, "hostname"},
		{{.ca = ca, .ip = "127.0.0.2"}, "127.0.0.1", 0, TLS_TROUBLE_CERTIFICATE, "IP"},
		{{.ca = ca, .dns = "127.0.0.1"}, "127.0.0.1", 0, TLS_TROUBLE_CERTIFICATE, "IP"},
		{{.ca = ca, .dns = "a.test", .from = -7200, .to = -3600}, "a.test", 0,
			TLS_TROUBLE_CERTIFICATE, "expired"},
		{{.ca = ca, .dns = "a.test", .from = 3600, .to = 7200}, "a.test", 0,
			TLS_TROUBLE_CERTIFICATE, "not yet valid"},
		{{.dns = "a.test", .cn = "a.test"}, "a.test", 0, TLS_TROUBLE_CERTIFICATE,
			"self-signed"},
		{{.ca = stranger, .dns = "a.test"}, "a.test", 0, TLS_TROUBLE_CERTIFICATE,
			"unable to get"},
		{{.ca = ca, .dns = "a.test"}, "a.test", TLS1_1_VERSION, TLS_TROUBLE_PROTOCOL, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char text[128];
		enum tls_trouble got =
			attempt(&table[i].cert, table[i].host, table[i].max_tls, text);

		if (got != table[i].want || !strstr(text, table[i].text))
			tap_fail("row %zu: got %d \"%s\", want %d \"%s\"", i, (int)got, text,
				(int)table[i].want, table[i].text);
	}
}

static void test_not_tls(void)
{
	struct test_origin_config config = {.serve = echo};
	struct test_origin *o = test_origin_start(&config);
	int fd = dial(test_origin_port(o));
	struct tls_client *c = NULL;
	enum tls_trouble trouble;

	must(tls_client_new(trust, fd, STR("a.test"), 443, &c, NULL) == 0);
	check_int(handshake(c, fd), TLS_IO_FAILED);
	check(*tls_client_error(c, &trouble));
	check_int(trouble, TLS_TROUBLE_PROTOCOL);
	tls_client_free(c);
	close(fd);
	test_origin_stop(o);
}

/* One exchange; whether the session was resumed. end: what the origin does after it. */
static bool exchange(uint16_t port, const char *host, const char *text, enum tls_io *end)
{
	int fd = dial(port);
	struct tls_client *c = NULL;
	size_t n = 0;
	char b[64];
	bool resumed;

	must(tls_client_new(trust, fd, str_from(host), port, &c, NULL) == 0);
	check_int(handshake(c, fd), TLS_IO_OK);
	check_int(tls_client_write(c, text, strlen(text), &n), TLS_IO_OK);
	check_int(read_some(c, fd, b, sizeof(b), &n), TLS_IO_OK);
	check(n == strlen(text) && memcmp(b, text, n) == 0);
	resumed = tls_client_resumed(c);
	if (end)
		*end = read_some(c, fd, b, sizeof(b), &n);
	tls_client_free(c);
	close(fd);
	return resumed;
}

/* More than HTTP/1.1 only if it is offered, and agreed on. */
static void test_alpn(void)
{
	const struct test_cert cert = {.ca = ca, .dns = "good.test"};

	for (unsigned i = 0; i < 4; i++) {
		bool server = i & 1, client = i & 2;
		struct test_origin_config config = {.cert = &cert, .serve = echo, .h2 = server};
		struct test_origin *o = test_origin_start(&config);
		_cleanup_(tls_client_freep) struct tls_client *c = NULL;
		int fd = dial(test_origin_port(o));

		check_int(tls_client_new(trust, fd, STR("good.test"), 443, &c, NULL), 0);
		if (client)
			check_int(tls_client_offer_h2(c, NULL), 0);
		check_int(handshake(c, fd), TLS_IO_OK);
		check_int(tls_client_is_h2(c), server && client);
		c = tls_client_free(c);
		close(fd);
		test_origin_stop(o);
	}
}

static void test_sessions(void)
{
	const struct test_cert cert = {.ca = ca, .dns = "*.s.test"};
	struct test_origin_config config = {.cert = &cert, .serve = echo};

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct test_origin *o;
		unsigned again = 0;

		config.max_tls = version;
		o = test_origin_start(&config);
		for (int i = 0; i < 20; i++)
			again += exchange(test_origin_port(o), "a.s.test", "hi", NULL);
		check_int(again, 19);
		/* Never for another name, even at the same address. */
		check(!exchange(test_origin_port(o), "b.s.test", "hi", NULL));
		test_origin_stop(o);
	}
}

/* A connection that ends without close_notify is not a clean end. */
static void test_cut(void)
{
	const struct test_cert cert = {.ca = ca, .dns = "a.test"};
	struct test_origin_config config = {.cert = &cert, .serve = echo};
	struct test_origin *o = test_origin_start(&config);
	enum tls_io end = TLS_IO_OK;

	exchange(test_origin_port(o), "a.test", "!", &end);
	check_int(end, TLS_IO_CUT);
	test_origin_stop(o);
}

static void test_pem(void)
{
	struct tls_trust *t = NULL;
	struct buf pem = BUF_INIT(8192);
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(tls_trust_new(false, &t, NULL) == 0);
	check_int(tls_trust_add_pem(t, STR(""), "x.pem", &err), -E_CONFIG);
	check(strstr(err.message, "x.pem"));
	check_int(tls_trust_add_pem(t,
			  STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
			  "x.pem", NULL),
		-E_CONFIG);
	check_int(tls_trust_add_pem(t, STR("-----BEGIN CERTIFICATE-----\nAAAA\n"), "x.pem", NULL),
		-E_CONFIG);
	test_ca_add_pem(ca, &pem);
	test_ca_add_pem(stranger, &pem);
	check_int(tls_trust_add_pem(t, buf_str(&pem), "x.pem", NULL), 0);
	buf_done(&pem);
	tls_trust_free(t);
}

/* The host's bundle: found by SSL_CERT_FILE, parsed when it is needed. */
static void test_bundle(void)
{
	const struct test_cert good = {.ca = ca, .dns = "a.test"};
	const struct test_cert bad = {.ca = stranger, .dns = "a.test"};
	struct tls_trust *old = trust;
	struct buf pem = BUF_INIT(1 << 16);
	char path[TAP_DIR_BYTES], text[128];
	struct test_ca *others[8];
	int fd = tap_file(path);

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = test_ca_new("some other root");
		test_ca_add_pem(others[i], &pem);
	}
	test_ca_add_pem(ca, &pem);
	must(fd_write_all(fd, buf_data(&pem), buf_len(&pem)) == 0);
	setenv("SSL_CERT_FILE", path, 1);
	trust = NULL;
	must(tls_trust_new(true, &trust, NULL) == 0);
	unlink(path);
	check_int(attempt(&good, "a.test", 0, text), TLS_TROUBLE_NONE);
	check_int(attempt(&bad, "a.test", 0, text), TLS_TROUBLE_CERTIFICATE);
	check_int(attempt(&good, "a.test", 0, text), TLS_TROUBLE_NONE);
	tls_trust_free(trust);
	trust = NULL;
	check(tls_trust_new(true, &trust, NULL) < 0); /* named, and gone */
	unsetenv("SSL_CERT_FILE");
	trust = old;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		test_ca_free(others[i]);
	buf_done(&pem);
	close(fd);
}

/* The beginning of a handshake over a socket of its own. */
static size_t read_hello(int fd, uint8_t *b, size_t max)
{
	ssize_t n = recv(fd, b, max, 0);

	must(n > 100 && b[0] == 22 && b[5] == 1);
	return (size_t)n;
}

/* What follows the length of two bytes at b; moves b behind it. */
static struct str take_list(const uint8_t **b)
{
	size_t n = (size_t)(*b)[0] << 8 | (*b)[1];
	struct str list = str_make(*b + 2, n);

	*b += 2 + n;
	return list;
}

/* Ciphers and groups (RFC 8446 4.1.2, 4.2.7). */
static void read_offer(const uint8_t *hello, struct str *ret_ciphers, struct str *ret_groups)
{
	const uint8_t *b = hello + 5 + 4 + 2 + 32, *end;
	struct str extensions;

	b += 1 + *b; /* session */
	*ret_ciphers = take_list(&b);
	b += 1 + *b; /* compression */
	extensions = take_list(&b);
	*ret_groups = STR_NULL;
	end = b;
	for (b = (const uint8_t *)extensions.p; b < end;) {
		bool groups = b[0] == 0 && b[1] == 10;
		struct str body;

		b += 2;
		body = take_list(&b);
		if (groups)
			*ret_groups = body;
	}
}

/* An origin sees the offer of any program that leaves it to OpenSSL. */
static void test_offer(void)
{
	struct tls_client *c = NULL;
	uint8_t ours[4096], usual[4096];
	struct str ciphers[2], groups[2];
	SSL_CTX *ctx;
	SSL *ssl;
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0 && fd_set_nonblock(pair[0], true) == 0);
	must(tls_client_new(trust, pair[0], STR("a.test"), 443, &c, NULL) == 0);
	check_int(tls_client_handshake(c), TLS_IO_READ);
	(void)read_hello(pair[1], ours, sizeof(ours));
	tls_client_free(c);
	ctx = SSL_CTX_new(TLS_client_method());
	must(ctx && (ssl = SSL_new(ctx)) && SSL_set_fd(ssl, pair[0]) == 1);
	check_int(SSL_connect(ssl), -1);
	(void)read_hello(pair[1], usual, sizeof(usual));
	read_offer(ours, &ciphers[0], &groups[0]);
	read_offer(usual, &ciphers[1], &groups[1]);
	check(str_eq(ciphers[0], ciphers[1]) && ciphers[0].n > 0);
	check(str_eq(groups[0], groups[1]) && groups[0].n > 0);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	struct buf pem = BUF_INIT(8192);

	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	ca = test_ca_new("Test root");
	stranger = test_ca_new("Stranger");
	test_ca_add_pem(ca, &pem);
	must(tls_trust_new(false, &trust, NULL) == 0);
	must(tls_trust_add_pem(trust, buf_str(&pem), "test", NULL) == 0);
	run_test(test_verification);
	run_test(test_not_tls);
	run_test(test_alpn);
	run_test(test_sessions);
	run_test(test_cut);
	run_test(test_pem);
	run_test(test_bundle);
	run_test(test_offer);
	tls_trust_free(trust);
	test_ca_free(ca);
	test_ca_free(stranger);
	buf_done(&pem);
	return tap_done();
}
