/* SPDX-License-Identifier: Apache-2.0 */
/* What connections are taken for, TLS, ports with a meaning, DNS; see testing.h. */
#include "base/fd.h"
#include "dns/message.h"
#include "gateway/testing.h"
#include "jail/netcapture.h"
#include "tap.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rig rig;
static bool own_network;

static void test_without_sni(void)
{
	struct rig_open o;
	struct client c;
	struct response p;
	char wrong[] = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

	must(client_connect_tls(&c, &rig, "127.0.0.1"));
	client_send(&c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	o = rig_expect_open(&rig);
	check_str(o.m.host, "127.0.0.1");
	check(o.m.scheme == NET_HTTPS);
	rig_answer(&rig, o.m.stream, "explained");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_send(&c, wrong);
	check_int(client_response(&c, &p, 0), 421);
	(void)rig_expect_event(&rig, NET_EVENT_MISMATCH);
	response_done(&p);
	client_close(&c);
}

static void test_mint_refused(void)
{
	unsigned before = rig.minted;
	struct client c;

	rig.refuse_mint = true;
	check(!client_connect_tls(&c, &rig, "refused.test"));
	check_z(rig_expect_event(&rig, NET_EVENT_TLS),
		"refused.test|no certificate for this name||0");
	client_close(&c);
	rig.refuse_mint = false;
	/* A refusal is not kept. */
	check(client_connect_tls(&c, &rig, "refused.test"));
	check_int(rig.minted, before + 2);
	client_close(&c);
}

/* Another policy may want a name to go on in another way: it is asked again. */
static void test_forget(void)
{
	unsigned before = rig.minted;
	struct client c;

	for (int i = 0; i < 3; i++) {
		must(client_connect_tls(&c, &rig, "forget.test"));
		client_close(&c);
		check_int(rig.minted, before + 1 + (i == 2));
		if (i < 1)
			continue;
		must(net_send_forget(&rig.broker) == 0);
		must(chan_flush_wait(&rig.broker, 30000) == 0);
	}
}

/* Sends bytes; the connection is closed with an event "destination|why". */
static void check_not_http(const char *bytes, size_t n, enum net_event_kind kind, const char *why)
{
	struct client c;
	const char *got;

	client_connect(&c, &rig);
	client_send_str(&c, str_make(bytes, n));
	check(client_expect_end(&c, 2000));
	got = rig_expect_event(&rig, kind);
	if (!strstr(got, why))
		tap_fail("event is %s, want %s", got, why);
	client_close(&c);
}

/* Its program says what the packet says: the packet is one of RFC 4253 6 and 11.1. */
static void test_ssh_is_told(void)
{
	static const char version[] = "SSH-2.0-cloche\r\n";
	uint32_t packet, text, code;
	struct client c;
	struct str got;

	client_connect(&c, &rig);
	client_send(&c, "SSH-2.0-x\r\n");
	while (client_read(&c, 20000))
		continue;
	check(c.ended);
	(void)rig_expect_event(&rig, NET_EVENT_TCP);
	got = buf_str(&c.in);
	must(str_starts(got, str_from(version)));
	got = str_from_index(got, sizeof(version) - 1);
	must(got.n >= 14);
	memcpy(&packet, got.p, 4);
	memcpy(&code, got.p + 6, 4);
	memcpy(&text, got.p + 10, 4);
	check_int(ntohl(packet) + 4, got.n);
	check_int(got.n % 8, 0);
	check(got.p[5] == 1 && ntohl(code) == 7);
	check_int(4 + 1 + 1 + 4 + 4 + ntohl(text) + 4 + (unsigned char)got.p[4], got.n);
	check(got.p[4] >= 4);
	check(str_starts(str_from_index(got, 14), STR("cloche: SSH to an address is not")));
	client_close(&c);
}

static void test_other_protocols(void)
{
	check_not_http("SSH-2.0-x\r\n", 11, NET_EVENT_TCP, "|SSH|");
	check_not_http("\5\1\0", 3, NET_EVENT_CONNECT, "SOCKS5|127.0.0.1|");
	check_not_http("\4\1\0\120", 4, NET_EVENT_CONNECT, "SOCKS4|");
	check_not_http("\0\0\0\10\4\322\26\57", 8, NET_EVENT_TCP, "|PostgreSQL|");
	check_not_http("*1\r\n$4\r\nPING\r\n", 14, NET_EVENT_TCP, "|neither TLS nor HTTP|");
	check_not_http("\26\3\1\0\5hello", 10, NET_EVENT_TLS, "127.0.0.1:");
}

/* Asks over UDP; returns the length of the answer. */
static size_t ask(const char *query, size_t n, char answer[DNS_UDP_MAX])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(rig.dns_port)};
	struct pollfd p;
	ssize_t got = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	must(send(fd, query, n, 0) == (ssize_t)n);
	p = (struct pollfd){.fd = fd, .events = POLLIN};
	if (poll(&p, 1, 1000) == 1)
		got = recv(fd, answer, DNS_UDP_MAX, 0);
	close(fd);
	return got > 0 ? (size_t)got : 0;
}

#define QUERY(id) id "\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1"

static void test_dns_udp(void)
{
	static const char query[] = QUERY("\x12\x34");
	static const char bad[] = "\x12\x35\1\0\0\1\0\0\0\0\0\0\4a\n[]\0\0\1\0\1";
	char answer[DNS_UDP_MAX];
	size_t n = ask(query, sizeof(query) - 1, answer);

	/* One A record in 198.18.0.0/15 at the end. */
	check_int(n, 12 + 12 + 16);
	check(n && memcmp(answer, "\x12\x34", 2) == 0 && (answer[3] & 15) == 0);
	check(n && memmem(answer, n, "\0\4\xc6\x12", 4) != NULL);
	check(strncmp(rig_expect_event(&rig, NET_EVENT_DNS), "a.test|A|198.18.", 16) == 0);
	/* Asked again it has the same address, and is not logged. */
	check_int(ask(query, sizeof(query) - 1, answer), n);
	check(rig_recv(&rig, 50) == NULL);
	n = ask(bad, sizeof(bad) - 1, answer);
	check(n >= 12 && (answer[3] & 15) == 1);
	check(strstr(rig_expect_event(&rig, NET_EVENT_DNS), "|FORMERR|") != NULL);
	check_int(ask("junk", 4, answer), 0);
}

static void test_dns_tcp(void)
{
	static const char query[] = "\0\x18" QUERY("\x12\x34") "\0\x18" QUERY("\x56\x78");
	struct client c;

	client_connect(&c, &rig);
	for (size_t i = 0; i < sizeof(query) - 1; i++) {
		client_send_str(&c, str_make(query + i, 1));
		usleep(100);
	}
	while (buf_len(&c.in) < 2 * (2 + 24 + 16) && client_read(&c, 1000))
		;
	check(buf_len(&c.in) >= 2 * (2 + 24 + 16));
	check(buf_len(&c.in) > 4 && memcmp(buf_data(&c.in) + 2, "\x12\x34", 2) == 0);
	check(str_find(buf_str(&c.in), STR("\x56\x78")) < buf_len(&c.in));
	(void)rig_expect_event(&rig, NET_EVENT_DNS);
	client_send(&c, "\0\3abc");
	client_send_str(&c, STR("\0\3abc"));
	check(client_expect_end(&c, 2000));
	client_close(&c);
}

/* A gateway whose room connected to this port. */
static void with_port(uint16_t port, void (*fn)(void))
{
	rig_start(&rig, &(struct rig_config){.port = port});
	fn();
	check(rig_stop(&rig));
}

static void plain_on_443(void)
{
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
	check_int(client_response(&c, &p, 0), 400);
	check(str_find(buf_str(&p.body), STR("plain_http")) < buf_len(&p.body));
	check(strstr(rig_expect_event(&rig, NET_EVENT_NOT_HTTP), "plain HTTP on port 443|"));
	check(client_expect_end(&c, 2000));
	response_done(&p);
	client_close(&c);
}

static void tls_on_80(void)
{
	struct client c;

	check(!client_connect_tls(&c, &rig, "a.test"));
	check(strstr(rig_expect_event(&rig, NET_EVENT_NOT_HTTP), "TLS on port 80|"));
	client_close(&c);
}

static void nothing_on_853(void)
{
	struct client c;

	client_connect(&c, &rig);
	check(client_expect_end(&c, 2000));
	(void)rig_expect_event(&rig, NET_EVENT_NOT_HTTP);
	client_close(&c);
}

static void own_address(void)
{
	struct client c;

	client_connect(&c, &rig);
	check(client_expect_end(&c, 2000));
	check(rig_recv(&rig, 50) == NULL);
	client_close(&c);
}

static void test_ports(void)
{
	if (!own_network) {
		tap_skip("no network of our own here, low ports are not tested");
		return;
	}
	with_port(443, plain_on_443);
	with_port(80, tls_on_80);
	with_port(853, nothing_on_853);
	with_port(53, test_dns_tcp);
	rig_start(&rig, &(struct rig_config){.port = NETCAPTURE_PORT});
	own_address();
	check(rig_stop(&rig));
}

static void test_broker_gone(void)
{
	struct client c;

	rig_start(&rig, &(struct rig_config){0});
	client_connect(&c, &rig);
	client_send(&c, "GET / HT");
	usleep(20000);
	must(shutdown(rig.broker.fd, SHUT_RDWR) == 0);
	check(client_expect_end(&c, 2000));
	client_close(&c);
	check(rig_stop(&rig));
}

static void test_broker_breaks_protocol(void)
{
	rig_start(&rig, &(struct rig_config){0});
	rig_reset(&rig, 77, NET_RESET_LIMIT); /* never opened */
	check(rig_recv(&rig, 2000) == NULL);  /* it has ended */
	check(!rig_stop(&rig));
}

int main(void)
{
	own_network = rig_own_network();
	rig_start(&rig, &(struct rig_config){0});
	run_test(test_without_sni);
	run_test(test_mint_refused);
	run_test(test_forget);
	run_test(test_other_protocols);
	run_test(test_ssh_is_told);
	run_test(test_dns_udp);
	must(rig_stop(&rig));
	run_test(test_ports);
	run_test(test_broker_gone);
	run_test(test_broker_breaks_protocol);
	return tap_done();
}
