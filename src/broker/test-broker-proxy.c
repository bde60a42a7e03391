/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy of a person's environment: what it is asked, what it may answer, how long it may take,
 * and which origins are judged before it is asked. The test is the proxy; its clock stands. */
#include "base/clock.h"
#include "broker/test-seen.h"

#include <fcntl.h>
#include <stdio.h>

#define SEC USEC_PER_SEC
#define ALLOW                                                                                      \
	"domains: [a.test, b.test, inner.test, here.test, 0.0.0.0, 10.1.2.4]\n"                    \
	"url_prefixes:\n"                                                                          \
	"  - {host: b.test, tunnel: true}\n"                                                       \
	"  - {host: localhost, ports: [%u], allow_private: true}\n"                                \
	"  - {host: 127.0.0.1, ports: [%u]}\n"                                                     \
	"  - {host: open.test, allow_private: true}\n"                                             \
	"  - {host: meta.test, allow_private: true}\n"
/* As far as this machine knows. */
#define HOSTS                                                                                      \
	"10.1.2.3 inner.test open.test\n169.254.169.254 meta.test\n127.0.0.1 here.test "           \
	"localhost\n"

static int proxy_listener;
static uint16_t proxy_port;

static void proxy_start(const char *none)
{
	char yaml[1024], url[64];
	struct netconf_proxy m = {.none = str_from(none)};

	proxy_listener = listen_at(8, &proxy_port);
	snprintf(yaml, sizeof(yaml), ALLOW, proxy_port, proxy_port);
	snprintf(url, sizeof(url), "http://joe:secret@127.0.0.1:%u", proxy_port);
	m.https = m.http = str_from(url);
	memset(seen, 0, sizeof(seen));
	rig_start(&g);
	rig_allow(&g, yaml);
	must(netconf_send_proxy(&g.conf, &m) == 0);
	rig_serve(&g);
}

static void proxy_stop(void)
{
	stop();
	close(proxy_listener);
}

static uint32_t ask_for(const char *host)
{
	return rig_open(&g, &(struct ask){.host = host, .target = "/"});
}

/* Nobody has connected to the proxy. */
static bool proxy_is_unasked(void)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);
	int fd;

	must(fcntl(proxy_listener, F_SETFL, O_NONBLOCK) == 0);
	fd = accept4(proxy_listener, (struct sockaddr *)&a, &n, SOCK_CLOEXEC);
	must(fd < 0 || close(fd) == 0);
	must(fcntl(proxy_listener, F_SETFL, 0) == 0);
	return fd < 0;
}

static void test_asked(void)
{
	char text[4096];
	uint32_t id;
	int fd;

	proxy_start("");
	id = ask_for("a.test");
	fd = accept_and_get(proxy_listener, text, sizeof(text));
	check_z(text, "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n"
		      "Proxy-Authorization: Basic am9lOnNlY3JldA==\r\n\r\n");
	/* In pieces, with fields that mean nothing here; nothing is sent before. */
	write_z(fd, "HTTP/1.0 200 Connection established\r\nContent-Length: 5\r\n");
	settle();
	check_int(recv(fd, text, sizeof(text), MSG_DONTWAIT), -1);
	write_z(fd, "Via: x\r\n\r\n");
	memset(text, 0, sizeof(text));
	must(read(fd, text, sizeof(text) - 1) > 0);
	check(str_starts(str_from(text), STR("GET / HTTP/1.1\r\nHost: a.test\r\n")));
	check(!strstr(text, "roxy"));
	write_z(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	wait_over(id);
	check_int(seen[id].status, 200);
	check_z(seen[id].text, "ok");
	/* The connection is kept for its origin. */
	id = ask_for("a.test");
	must(read(fd, text, sizeof(text)) > 0);
	check(str_starts(str_make(text, sizeof(text)), STR("GET / ")));
	write_z(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	wait_over(id);
	check_int(seen[id].status, 200);
	/* Another origin gets a connection of its own. */
	id = rig_open(&g, &(struct ask){.kind = NET_KIND_TUNNEL,
				  .scheme = NET_HTTPS,
				  .host = "b.test",
				  .method = "",
				  .target = "",
				  .body = NET_BODY_STREAM});
	close(fd);
	fd = accept_and_get(proxy_listener, text, sizeof(text));
	check(str_starts(str_from(text), STR("CONNECT b.test:443 HTTP/1.1\r\n")));
	/* What follows the head is the origin's. */
	write_z(fd, "HTTP/1.1 200 OK\r\n\r\nfirst word");
	while (seen[id].bytes < 10)
		must(take_frame(PATIENCE_MS));
	check_z(seen[id].text, "first word");
	proxy_stop();
	close(fd);
}

static const struct {
	const char *answer;
	const char *words; /* what the room gets to read */
} bad[] = {
	{"HTTP/1.1 407 Come again\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n",
		"it answered 407: it wants another user or password"},
	{"HTTP/1.1 403 secret-word\r\nContent-Length: 9\r\n\r\nforbidden",
		"it answered 403: it lets nobody through"},
	{"HTTP/1.1 502 x\r\n\r\n", "it answered 502"},
	{"HTTP/1.1 302 x\r\nLocation: http://a.test/\r\n\r\n", "it answered 302"},
	{"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "malformed"},
	{"SSH-2.0-OpenSSH_9.2\r\n\r\n", "malformed"},
	{"\x16\x03\x01\x02\x01\x01\xff\r\n\r\n", "malformed"},
	{"HTTP/1.1 999999 x\r\n\r\n", "malformed"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "malformed"},
	{"HTTP/2 200 OK\r\n\r\n", "malformed"},
	{"HTTP/1.1 200 OK\r\n", "closed the connection without an answer"},
	{"", "closed the connection without an answer"},
};

static void test_bad_answers(void)
{
	char *log;

	proxy_start("");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint32_t id = ask_for("a.test");
		int fd = accept_and_read(proxy_listener);

		printf("# answer %zu\n", i);
		write_z(fd, bad[i].answer);
		/* Who reads nonsense may have closed the connection already. */
		must(shutdown(fd, SHUT_WR) == 0 || errno == ENOTCONN);
		wait_over(id);
		check_int(seen[id].status, 502);
		check(strstr(seen[id].text, "\"upstream_proxy\""));
		check(strstr(seen[id].text, bad[i].words));
		check(!strstr(seen[id].text, "127.0.0.1") && !strstr(seen[id].text, "secret"));
		close(fd);
	}
	log = rig_log(&g, false);
	check(strstr(log, "it answered 407: it wants another user or password"));
	check(!strstr(log, "secret") && !strstr(log, "am9l") && !strstr(log, "joe"));
	free(log);
	proxy_stop();
}

/* Heads without end, of one answer and of many. */
static void test_endless(void)
{
	static const char *const piece[] = {
		"X-Header: 0123456789012345678901234567890123456789\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n", "x"};

	for (size_t i = 0; i < ARRAY_SIZE(piece); i++) {
		uint32_t id;
		ssize_t n = 1;
		int fd;

		proxy_start("");
		id = ask_for("a.test");
		fd = accept_and_read(proxy_listener);
		write_z(fd, i == 0 ? "HTTP/1.1 200 OK\r\n" : i == 1 ? "" : "HTTP/1.1 200 ");
		for (size_t k = 0; n > 0 && k < 1000000; k++)
			n = send(fd, piece[i], strlen(piece[i]), MSG_NOSIGNAL);
		check_int(n, -1); /* it has hung up */
		wait_over(id);
		check_int(seen[id].status, 502);
		check(strstr(seen[id].text, "malformed"));
		proxy_stop();
		close(fd);
	}
}

/* What comes meanwhile does not buy more time. */
static void test_silent(void)
{
	uint32_t id;
	int fd;

	proxy_start("");
	id = ask_for("a.test");
	fd = accept_and_read(proxy_listener);
	for (int i = 0; i < 9; i++) {
		pass(SEC);
		write_z(fd, i == 0 ? "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX:" : "y");
		settle();
	}
	check_may_take(id, SEC);
	wait_over(id);
	check_int(seen[id].status, 502);
	check(strstr(seen[id].text, "connecting took too long"));
	proxy_stop();
	close(fd);
}

/* What the name says by itself is judged before the proxy is asked (INV-ADDRESS-CHECKED). */
static void test_judged(void)
{
	static const struct {
		const char *host, *words;
	} refused[] = {
		{"inner.test", "private address"},
		{"meta.test", "metadata address"},
		{"here.test", "address of this host"},
		{"0.0.0.0", "unspecified address"},
	};
	/* What a rule opens goes through the proxy, which gets the name. */
	static const char *const asked[] = {"open.test", "10.1.2.4"};
	/* What means this machine does not: the proxy's loopback is another one. */
	static const char *const direct[] = {"localhost", "127.0.0.1"};
	char text[4096], line[64];
	uint32_t id;
	int fd;

	proxy_start("");
	rig_hosts(&g, HOSTS);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		id = ask_for(refused[i].host);
		wait_over(id);
		check_int(seen[id].status, 403);
		check(strstr(seen[id].text, "address_refused"));
		check(strstr(seen[id].text, refused[i].words));
		check(proxy_is_unasked());
	}
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		id = ask_for(asked[i]);
		fd = accept_and_get(proxy_listener, text, sizeof(text));
		snprintf(line, sizeof(line), "CONNECT %s:80 ", asked[i]);
		check(str_starts(str_from(text), str_from(line)));
		close(fd);
		wait_over(id);
	}
	for (size_t i = 0; i < ARRAY_SIZE(direct); i++) {
		id = rig_open(
			&g, &(struct ask){.host = direct[i], .port = proxy_port, .target = "/"});
		fd = accept_and_get(proxy_listener, text, sizeof(text));
		check(str_starts(str_from(text), STR("GET / HTTP/1.1\r\n")));
		close(fd);
		wait_over(id);
	}
	proxy_stop();
}

static void test_direct(void)
{
	uint32_t id;

	proxy_start("x, .test");
	id = ask_for("a.test");
	wait_over(id);
	check_int(seen[id].status, 502);
	check(strstr(seen[id].text, "name_not_resolved"));
	check(proxy_is_unasked());
	proxy_stop();
}

/* The broker judges what it is told by itself. */
static void test_refused(void)
{
	const struct netconf_proxy m = {.https = STR("socks5://joe:secret@h.test:1")};
	struct cloche_err err = CLOCHE_ERR_INIT;

	rig_start(&g);
	rig_allow(&g, "domains: [a.test]\n");
	must(netconf_send_proxy(&g.conf, &m) == 0);
	rig_refused(&g, &err);
	check(strstr(err.message, "HTTPS_PROXY names a proxy of the kind socks5://"));
	check(!strstr(err.message, "secret"));
	(void)rig_stop(&g);
}

int main(void)
{
	clock_hold();
	run_test(test_asked);
	run_test(test_bad_answers);
	run_test(test_endless);
	run_test(test_silent);
	run_test(test_judged);
	run_test(test_direct);
	run_test(test_refused);
	return tap_done();
}
