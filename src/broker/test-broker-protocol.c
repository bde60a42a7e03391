/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker asks origins for itself: what they speak, and tokens. */
#include "base/clock.h"
#include "broker/test-world.h"
#include "clockwork.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

/* What the room's side is told to speak, when it offers both. */
static enum net_mode asks(struct world *w, const char *host, uint16_t port)
{
	struct chan_frame f;
	struct net_cert c = {0};

	must(net_send_mint(&w->g.net, &(struct net_mint){.request = 7,
					      .host = str_from(host),
					      .port = port,
					      .h2 = true,
					      .http1 = true}) == 0);
	rig_flush(&w->g);
	must(chan_recv_wait(&w->g.net, &f, 30000) == 1 && f.type == NET_CERT);
	must(net_get_cert(f.payload, &c) && c.request == 7);
	check(c.ok && c.leaf.n > 0);
	chan_frame_done(&f);
	return c.mode;
}

/* The origin is asked once, and the connection is the first request's. */
static void test_protocol_asked(void)
{
	struct world w;

	world_serve(&w);
	check_int(asks(&w, "a.site.test", 443), NET_MODE_H2);
	check_int(asks(&w, "a.site.test", 443), NET_MODE_H2);
	check_int(test_origin_accepted(w.tls), 1);
	check(!world_log_has(&w, true, "a.site.test"));
	check_int(w.tls_seen.requests, 0);
	check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

/* Many ask at once, and requests come before there is an answer. */
static void test_protocol_asked_by_many(void)
{
	enum { MANY = 20 };
	struct world w;
	unsigned certs = 0, ended = 0;

	world_serve(&w);
	for (unsigned i = 0; i < MANY; i++)
		must(net_send_mint(&w.g.net, &(struct net_mint){.request = i,
						     .host = STR("a.site.test"),
						     .port = 443,
						     .h2 = true,
						     .http1 = true}) == 0);
	for (unsigned i = 0; i < MANY; i++)
		rig_open(&w.g, &(struct ask){HTTPS, .target = "/hello", .more = i + 1 < MANY});
	while (certs < MANY || ended < MANY) {
		struct chan_frame f;
		struct net_cert c;

		must(chan_recv_wait(&w.g.net, &f, 30000) == 1 && f.type != NET_RESET);
		ended += f.type == NET_END;
		if (f.type == NET_CERT) {
			must(net_get_cert(f.payload, &c));
			check_int(c.mode, NET_MODE_H2);
			certs++;
		}
		chan_frame_done(&f);
	}
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

/* Nothing is dialled that policy does not list; what fails is HTTP/1.1, also after a while. */
static void test_protocol_not_asked(void)
{
	struct world w;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 1) == 0);
	must(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	world_start(&w, NULL);
	rig_connect_to(&w.g, "evil.example", 443, test_origin_port(w.tls));
	rig_connect_to(&w.g, "a.site.test", 444, test_origin_port(w.tls));
	rig_connect_to(&w.g, "closed.test", 443, 1);
	rig_connect_to(&w.g, "silent.test", 443, ntohs(a.sin_port));
	rig_serve(&w.g);
	check_int(asks(&w, "evil.example", 443), NET_MODE_HTTP1);
	check_int(asks(&w, "a.site.test", 444), NET_MODE_HTTP1);
	check_int(test_origin_accepted(w.tls), 0);
	check_int(asks(&w, "closed.test", 443), NET_MODE_HTTP1);
	check_int(asks(&w, "silent.test", 443), NET_MODE_HTTP1);
	world_stop(&w);
	close(fd);
}

static void test_protocol_http1(void)
{
	struct world w;

	world_h2 = false;
	world_serve(&w);
	world_h2 = true;
	check_int(asks(&w, "a.site.test", 443), NET_MODE_HTTP1);
	check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

/* A client that speaks HTTP/1.1 is not made one of HTTP/2, whatever the origin offers, and whatever
 * others speak with it; nor is one of HTTP/2 kept to HTTP/1.1 afterwards. */
static void test_protocol_of_client(void)
{
	const struct ask old = {HTTPS, .target = "/hello", .http1 = true, .keep_alive = true};
	struct world w;

	world_serve(&w);
	check(world_gets(&w, &old, "hello"));
	check(world_seen(&w.tls_seen, "GET /hello HTTP/1.1\r\n"));
	check(world_seen(&w.tls_seen, "Connection: keep-alive\r\n"));
	check_int(asks(&w, "a.site.test", 443), NET_MODE_H2);
	check(world_fetches(&w, "/hello", "hello"));
	check(world_seen(&w.tls_seen, "GET /hello HTTP/2\n"));
	check(world_gets(&w, &old, "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* The connection that it was asked on may have been closed before the first request comes. */
static void test_protocol_asked_and_closed(void)
{
	struct world w;

	world_h2 = false;
	world_serve(&w);
	world_h2 = true;
	check_int(asks(&w, "a.site.test", 443), NET_MODE_HTTP1);
	check(world_fetches(&w, "/mute", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* An answer to the broker does not wait for a gateway that is behind. */
static void test_own_request(void)
{
	char host[] = "b.site.test", *scopes[] = {host, NULL};
	struct buf key = BUF_INIT(8192);
	struct got r = {0};
	struct world w;
	uint32_t id;

	test_rsa_add_pem(&key);
	world_start(&w, NULL);
	must(netconf_send_github_app(&w.g.conf,
		     &(struct netconf_github_app){.name = STR("GH"),
			     .surrogate = STR("ghs_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
			     .app_id = STR("1"),
			     .installation_id = STR("67"),
			     .key = buf_str(&key),
			     .base_url = STR("https://a.site.test"),
			     .scopes = scopes}) == 0);
	rig_serve(&w.g);
	id = rig_open(&w.g, &(struct ask){.scheme = NET_HTTPS,
				    .host = host,
				    .target = "/hello",
				    .fields = {"Authorization",
					    "Bearer ghs_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"}});
	/* They fill the channel, which is not read, while the token is waited for. */
	for (int i = 0; i < 16; i++)
		rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/big/1000000"});
	usleep(1500000);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 200 && r.ended);
	check(world_seen(&w.tls_seen, "authorization: Bearer ghs_0123456789\n"));
	got_done(&r);
	buf_done(&key);
	world_stop(&w);
}

/* 256 are remembered, in the order in which they were met. */
static void test_protocols_remembered(void)
{
	enum { REMEMBERED = 256 };
	struct world w;
	char host[32];

	world_start(&w, NULL);
	for (int i = 0; i <= REMEMBERED; i++) {
		snprintf(host, sizeof(host), "n%d.site.test", i);
		rig_connect_to(&w.g, host, 443, test_origin_port(w.tls));
	}
	rig_serve(&w.g);
	for (int i = 0; i <= REMEMBERED; i++) {
		snprintf(host, sizeof(host), "n%d.site.test", i);
		check_int(asks(&w, host, 443), NET_MODE_H2);
	}
	check_int(test_origin_accepted(w.tls), REMEMBERED + 1);
	check_int(asks(&w, "n1.site.test", 443), NET_MODE_H2);
	check_int(test_origin_accepted(w.tls), REMEMBERED + 1);
	check_int(asks(&w, "n0.site.test", 443), NET_MODE_H2);
	check_int(test_origin_accepted(w.tls), REMEMBERED + 2);
	world_stop(&w);
}

static void ask_silent(struct world *w, uint32_t request)
{
	char host[32];

	snprintf(host, sizeof(host), "s%u.test", request);
	must(net_send_mint(&w->g.net, &(struct net_mint){.request = request,
					      .host = str_from(host),
					      .port = 443,
					      .h2 = true,
					      .http1 = true}) == 0);
	rig_flush(&w->g);
}

/* The next that is answered. */
static uint32_t answered(struct world *w)
{
	struct chan_frame f;
	struct net_cert c;

	must(chan_recv_wait(&w->g.net, &f, 30000) == 1 && f.type == NET_CERT);
	must(net_get_cert(f.payload, &c));
	check_int(c.mode, NET_MODE_HTTP1);
	chan_frame_done(&f);
	return c.request;
}

/* 64 at once wait for an origin, for five seconds. */
static void test_protocols_waited_for(void)
{
	enum { WAIT = 64 };
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);
	bool seen[WAIT] = {false};
	struct world w;
	char host[32];

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, WAIT) == 0);
	must(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	world_start(&w, NULL);
	for (int i = 0; i <= WAIT; i++) {
		snprintf(host, sizeof(host), "s%d.test", i);
		rig_connect_to(&w.g, host, 443, ntohs(a.sin_port));
	}
	rig_serve(&w.g);
	for (uint32_t i = 0; i <= WAIT; i++)
		ask_silent(&w, i);
	check_int(answered(&w), WAIT);
	clock_pass(w.g.pid, 5 * USEC_PER_SEC - USEC_PER_MSEC);
	ask_silent(&w, WAIT);
	check_int(answered(&w), WAIT);
	clock_pass(w.g.pid, USEC_PER_MSEC);
	for (int i = 0; i < WAIT; i++) {
		uint32_t request = answered(&w);

		must(request < WAIT);
		check(!seen[request]);
		seen[request] = true;
	}
	world_stop(&w);
	close(fd);
}

int main(void)
{
	world_h2 = true;
	run_test(test_protocol_asked);
	run_test(test_protocol_asked_by_many);
	run_test(test_protocol_not_asked);
	run_test(test_protocol_http1);
	run_test(test_protocol_of_client);
	run_test(test_protocol_asked_and_closed);
	run_test(test_own_request);
	run_test(test_protocols_remembered);
	clock_hold();
	run_test(test_protocols_waited_for);
	world_ca = test_ca_free(world_ca);
	return tap_done();
}
