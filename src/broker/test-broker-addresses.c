/* SPDX-License-Identifier: Apache-2.0 */
/* Tries to break INV-ADDRESS-CHECKED: addresses that one rule opens, and others do not. The test
 * has a network of its own, so that it can give the machine an address. */
#include "broker/test-reload.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

#define LATER "93.184.216.77" /* an address of the open internet */

static bool own_network;

static unsigned status_at(struct rig *g, const char *host, uint16_t port, const char *target)
{
	struct got r;
	unsigned status;

	rig_ask(g, &(struct ask){.host = host, .port = port, .target = target}, &r);
	status = r.status;
	if (status == 403)
		check(got_has(&r, "address_refused"));
	got_done(&r);
	return status;
}

/* The first rule of the first policy is a rule like any other: what it opens is its own
 * (INV-ADDRESS-CHECKED). */
static void test_pool_of_first_rule(void)
{
	struct origin_seen seen = {.heads = BUF_INIT(1 << 20)};
	struct test_origin *o;
	struct rig g;
	char yaml[256];
	uint16_t port;

	rig_start(&g);
	o = test_origin_start(&(struct test_origin_config){.serve = origin_serve, .arg = &seen});
	port = test_origin_port(o);
	snprintf(yaml, sizeof(yaml),
		"url_prefixes:\n"
		"- {host: localhost, ports: [%u], path: /hello, allow_private: true}\n"
		"- {host: localhost, ports: [%u], path: /echo}\n",
		port, port);
	rig_allow(&g, yaml);
	rig_serve(&g);
	check_int(status_at(&g, "localhost", port, "/echo"), 403);
	check_int(status_at(&g, "localhost", port, "/hello"), 200);
	check_int(status_at(&g, "localhost", port, "/echo"), 403);
	check_int(status_at(&g, "localhost", port, "/hello"), 200);
	check_int(test_origin_accepted(o), 1);
	check(rig_stop(&g) == 0);
	test_origin_stop(o);
	buf_done(&seen.heads);
}

/* --- addresses that the machine gets while the broker runs --- */

static void set_interface(const char *name, const char *address)
{
	struct ifreq r = {0};
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	memcpy(r.ifr_name, name, strlen(name));
	if (address) {
		must(inet_pton(AF_INET, address, &a.sin_addr) == 1);
		memcpy(&r.ifr_addr, &a, sizeof(a));
		must(ioctl(fd, SIOCSIFADDR, &r) == 0);
	} else {
		r.ifr_flags = IFF_UP;
		must(ioctl(fd, SIOCSIFFLAGS, &r) == 0);
	}
	close(fd);
}

/* A listener at every address of the machine, which answers nothing. */
static uint16_t listen_everywhere(int *ret_fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000}; /* accept4() waits no longer */
	socklen_t n = sizeof(a);

	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(*ret_fd >= 0 && bind(*ret_fd, (struct sockaddr *)&a, n) == 0);
	must(setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	must(listen(*ret_fd, 8) == 0 && getsockname(*ret_fd, (struct sockaddr *)&a, &n) == 0);
	return ntohs(a.sin_port);
}

/* Ranges that a rule opens say nothing about other addresses. */
static void test_own_later(void)
{
	struct netconf_replaced m = {0};
	struct world w; /* only its broker */
	struct got r = {0};
	int fd;
	uint16_t port = listen_everywhere(&fd);
	char yaml[256];
	uint32_t id;

	if (!own_network) {
		tap_skip("no network of our own here");
		close(fd);
		return;
	}
	snprintf(yaml, sizeof(yaml),
		"url_prefixes:\n"
		"- {host: h.test, ports: [%u], path: /ranges, allow_private: [10.0.0.0/8]}\n"
		"- {host: h.test, ports: [%u], path: /none}\n"
		"- {host: h.test, ports: [%u], path: /, allow_private: [" LATER "/32]}\n",
		port, port, port);
	rig_start(&w.g);
	rig_allow(&w.g, yaml);
	rig_serve(&w.g);
	set_interface("lo:1", LATER);
	rig_hosts(&w.g, LATER " h.test\n");
	check_int(status_at(&w.g, "h.test", port, "/none"), 403);
	check_int(status_at(&w.g, "h.test", port, "/ranges"), 403);
	id = rig_open(&w.g, &(struct ask){.host = "h.test", .port = port, .target = "/"});
	rig_collect(&w.g, id, &r, 300);
	check_int(r.status, 0); /* it is connected, and waits */
	/* A new policy that does not list the address ends what leads there. */
	snprintf(yaml, sizeof(yaml),
		"url_prefixes: [{host: h.test, ports: [%u], allow_private: [10.0.0.0/8]}]\n", port);
	check_int(set_policy(&w, yaml, &m, NULL), 0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check_int(r.status, 503);
	got_done(&r);
	check(rig_stop(&w.g) == 0);
	close(fd);
}

#define SURROGATE "ghs_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* A request of the broker itself goes to an address that a rule opens for it, and no longer. */
static void test_own_request(void)
{
	char host[] = "b.test", *scopes[] = {host, NULL}, yaml[256], url[64];
	struct buf key = BUF_INIT(8192);
	struct netconf_replaced m = {0};
	struct got r = {0};
	struct world w;
	int fd, at;
	uint16_t port = listen_everywhere(&fd);
	uint32_t id;

	test_rsa_add_pem(&key);
	snprintf(url, sizeof(url), "https://g.test:%u", port);
	snprintf(yaml, sizeof(yaml),
		"domains: [b.test]\n"
		"url_prefixes: [{host: g.test, ports: [%u], allow_private: true}]\n",
		port);
	rig_start(&w.g);
	rig_allow(&w.g, yaml);
	must(netconf_send_github_app(&w.g.conf, &(struct netconf_github_app){.name = STR("GH"),
							.surrogate = STR(SURROGATE),
							.app_id = STR("1"),
							.installation_id = STR("67"),
							.key = buf_str(&key),
							.base_url = str_from(url),
							.scopes = scopes}) == 0);
	rig_serve(&w.g);
	rig_hosts(&w.g, "127.0.0.1 g.test\n");
	id = rig_open(&w.g, &(struct ask){.scheme = NET_HTTPS,
				    .host = host,
				    .target = "/",
				    .fields = {"Authorization", "Bearer " SURROGATE}});
	at = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	must(at >= 0);
	check_int(set_policy(&w, yaml, &m, NULL), 0);
	rig_collect(&w.g, id, &r, 300);
	check_int(r.status, 0);
	check_int(set_policy(&w, "domains: [b.test, g.test]\n", &m, NULL), 0);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.status == 502 && got_has(&r, "the policy was replaced"));
	got_done(&r);
	check(rig_stop(&w.g) == 0);
	buf_done(&key);
	close(at);
	close(fd);
}

int main(void)
{
	own_network = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
	if (own_network)
		set_interface("lo", NULL);
	run_test(test_pool_of_first_rule);
	run_test(test_own_later);
	run_test(test_own_request);
	return tap_done();
}
