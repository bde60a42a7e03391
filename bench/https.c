/* SPDX-License-Identifier: Apache-2.0 */
/* usage: https full|resumed|kept CONNECTIONS SECONDS nagle|nodelay HOST PORT PATH [NAMED]. Makes
 * requests over TLS, so many at a time, and prints how many were answered and how long each took,
 * from connect() to the answer's end. full: each on a new connection with a whole handshake;
 * resumed: with the session of the one before; kept: on connections that stay. wrk, which always
 * resumes, can do only the last two. Certificates are not looked at. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 256, SAMPLES = 1 << 20 };

struct conn {
	int fd;
	SSL *ssl;
	size_t sent, got, want; /* want: bytes of the whole answer, once its head is there */
	double start;
	char answer[8192];
};

static enum { FULL, RESUMED, KEPT } mode;
static struct addrinfo *where;
static SSL_CTX *ctx;
static SSL_SESSION *session;
static int nodelay, epoll_fd;
static char request[512];
static const char *host;
static size_t request_n;
static float samples[SAMPLES];
static size_t done, failed, reused;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int keep_session(SSL *ssl, SSL_SESSION *s)
{
	SSL_SESSION_free(session);
	session = s;
	return 1;
}

static void conn_open(struct conn *c)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};

	c->sent = c->got = c->want = 0;
	c->start = now();
	c->fd = socket(where->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay));
	if (connect(c->fd, where->ai_addr, where->ai_addrlen) < 0 && errno != EINPROGRESS) {
		perror("https: connect");
		exit(1);
	}
	c->ssl = SSL_new(ctx);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_tlsext_host_name(c->ssl, host);
	if (mode == RESUMED && session)
		SSL_set_session(c->ssl, session);
	SSL_set_connect_state(c->ssl);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
}

static void conn_again(struct conn *c)
{
	if (mode == KEPT && c->want) {
		c->sent = c->got = c->want = 0;
		c->start = now();
		return;
	}
	reused += (size_t)SSL_session_reused(c->ssl);
	SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(c->ssl);
	close(c->fd);
	conn_open(c);
}

/* Whether the answer is complete. */
static int conn_take(struct conn *c, const char *p, size_t n)
{
	if (c->got < sizeof(c->answer) - 1)
		memcpy(c->answer + c->got, p,
			n < sizeof(c->answer) - 1 - c->got ? n : sizeof(c->answer) - 1 - c->got);
	c->got += n;
	if (!c->want) {
		const char *end = memmem(c->answer, c->got, "\r\n\r\n", 4);
		const char *length = end ? strcasestr(c->answer, "\r\ncontent-length:") : NULL;

		if (!end)
			return 0;
		if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0 || !length) {
			fprintf(stderr, "https: %.100s\n", c->answer);
			exit(1);
		}
		c->want = (size_t)(end + 4 - c->answer) + strtoul(length + 17, NULL, 10);
	}
	return c->got >= c->want;
}

/* Goes on as far as it gets. */
static void conn_step(struct conn *c)
{
	static char bytes[65536];
	size_t n = 0;

	for (;;) {
		int r = c->sent < request_n ? SSL_write_ex(c->ssl, request, request_n, &n)
					    : SSL_read_ex(c->ssl, bytes, sizeof(bytes), &n);

		if (r != 1) {
			int e = SSL_get_error(c->ssl, r);

			if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
				return;
			failed++;
			c->want = 0;
			conn_again(c);
			return;
		}
		if (c->sent < request_n) {
			c->sent += n;
		} else if (conn_take(c, bytes, n)) {
			if (done < SAMPLES)
				samples[done] = (float)(now() - c->start);
			done++;
			conn_again(c);
			if (mode != KEPT)
				return;
		}
	}
}

static int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct conn conns[MOST];
	const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	int n;
	double end;

	if ((argc != 8 && argc != 9) || (n = atoi(argv[2])) < 1 || n > MOST)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	mode = argv[1][0] == 'f' ? FULL : argv[1][0] == 'r' ? RESUMED : KEPT;
	nodelay = strcmp(argv[4], "nodelay") == 0;
	host = argv[5];
	if (getaddrinfo(host, argv[6], &hints, &where) != 0)
		return 1;
	request_n = (size_t)snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", argv[7], argc == 9 ? argv[8] : host,
		mode == KEPT ? "" : "Connection: close\r\n");
	ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (mode == FULL)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	else
		SSL_CTX_set_session_cache_mode(
			ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	if (mode == RESUMED)
		SSL_CTX_sess_set_new_cb(ctx, keep_session);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	end = now() + atof(argv[3]);
	for (int i = 0; i < n; i++)
		conn_open(&conns[i]);
	while (now() < end) {
		struct epoll_event events[MOST];
		int got = epoll_wait(epoll_fd, events, MOST, 100);

		for (int i = 0; i < got; i++)
			conn_step(events[i].data.ptr);
	}
	n = (int)(done < SAMPLES ? done : SAMPLES);
	qsort(samples, (size_t)n, sizeof(samples[0]), by_size);
	printf("answered %zu failed %zu resumed %zu", done, failed, reused);
	if (n > 0)
		printf(" median %.1f p99 %.1f us", samples[n / 2] * 1e6,
			samples[n * 99 / 100] * 1e6);
	printf("\n");
	return 0;
}
