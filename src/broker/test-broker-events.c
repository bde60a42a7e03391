/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of what a gateway reports, which may have been taken over (INV-NO-RAW-BYTES). */
#include "broker/testing.h"
#include "ipc/helper.h"

#include <tap.h>
#include <unistd.h>

/* The log when it has this text; the caller frees. */
static char *log_with(const struct rig *g, const char *text)
{
	char *log = rig_log(g, false);

	for (int i = 0; i < 2000 && !strstr(log, text); i++) {
		usleep(10000);
		free(log);
		log = rig_log(g, false);
	}
	return log;
}

static void test_events(void)
{
	static const struct {
		enum net_event_kind kind;
		const char *a, *b, *c, *line;
	} table[] = {
		{NET_EVENT_LIMIT, "connections", "1024", "",
			"\nWARNING: limit reached: connections 1024\n"},
		{NET_EVENT_DNS, "x\nALLOWED.test", "A", "198.18.0.1",
			"\nDNS A x%0AALLOWED.test -> 198.18.0.1\n"},
		{NET_EVENT_MALFORMED, "a.test", "two Host fields", "",
			"\nBLOCKED GET https://a.test/x%0AALLOWED -> 403 (malformed: two Host "
			"fields)\n"},
		{NET_EVENT_MISMATCH, "a.test", "b.test", "host",
			" -> 403 (host mismatch: header=b.test, url=a.test)\n"},
		{NET_EVENT_MISMATCH, "a.test", "a.test:8", "port",
			" -> 403 (port mismatch: header=a.test:8, url=a.test:443)\n"},
		{NET_EVENT_MISMATCH, "a.test", "http", "scheme",
			" -> 403 (scheme mismatch: target=http, url=https)\n"},
		{NET_EVENT_CONNECT, "CONNECT", "evil", "",
			"\nBLOCKED CONNECT evil:443 -> 403 (tunneling not allowed: CONNECT)\n"},
		{NET_EVENT_NOT_HTTP, "a.test (198.18.0.1:443)", "ssh", "",
			"\nBLOCKED CONNECT a.test:443 -> 403 (not HTTP: ssh)\n"},
		{NET_EVENT_METHOD, "a.test", "TRACE", "", " -> 403 (method not allowed: TRACE)\n"},
		{NET_EVENT_TLS, "a.test", "no SNI", "", "no SNI"},
		/* The last: the log has all when it has this. */
		{NET_EVENT_UPGRADE, "a.test", "websocket", "", "websocket"},
	};
	struct rig g;
	char *log;

	rig_start(&g);
	rig_allow(&g, "domains:\n  - \"*.test\"\n");
	rig_serve(&g);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct net_event e = {.kind = table[i].kind,
			.connection = 1,
			.status = 403,
			.port = 443,
			.scheme = NET_HTTPS,
			.a = str_from(table[i].a),
			.b = str_from(table[i].b),
			.c = str_from(table[i].c),
			.method = STR("GET"),
			.target = STR("/x\nALLOWED")};

		must(net_send_event(&g.net, &e) == 0);
	}
	rig_flush(&g);
	log = log_with(&g, "websocket");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strstr(log, table[i].line))
			tap_fail("missing: %s in %s", table[i].line, log);
	free(log);
	rig_stop(&g);
}

/* Whoever captured a connection may say whose it is: that is logged for what is refused, and nobody
 * is asked. */
static void test_owner_is_told(void)
{
	const struct net_client client = {.family = 4, .port = 1, .server_port = 443};
	const struct net_owner owner = {7, STR("cu\nrl"), STR("/usr/bin/curl")};
	const struct net_event e = {.kind = NET_EVENT_NOT_HTTP,
		.port = 443,
		.client = client,
		.owner = owner,
		.a = STR("a.test:443"),
		.b = STR("ssh")};
	struct got got;
	struct chan_frame f;
	struct rig g;
	char *log;

	rig_start(&g);
	rig_allow(&g, "domains:\n  - \"*.test\"\n");
	rig_serve(&g);
	rig_ask(&g,
		&(struct ask){
			.host = "no.example", .target = "/", .client = client, .owner = owner},
		&got);
	check_int(got.status, 403);
	got_done(&got);
	/* What policy allows has no owner, wherever it ends. */
	rig_ask(&g,
		&(struct ask){.host = "no.test", .target = "/", .client = client, .owner = owner},
		&got);
	check_int(got.status, 502);
	got_done(&got);
	must(net_send_event(&g.net, &e) == 0);
	rig_flush(&g);
	log = log_with(&g, "not HTTP: ssh");
	check(strstr(
		log, "\nBLOCKED GET http://no.example/ -> 403 [by: cu%0Arl 7 /usr/bin/curl]\n"));
	check(strstr(log, "(not HTTP: ssh) [by: cu%0Arl 7 /usr/bin/curl]\n"));
	check(strstr(log, "\nERROR GET http://no.test/ -> resolve no.test: no such host\n"));
	free(log);
	while (chan_recv_wait(&g.supervisor, &f, 50) == 1) {
		check(f.type != HELPER_WHO);
		chan_frame_done(&f);
	}
	rig_stop(&g);
}

int main(void)
{
	run_test(test_owner_is_told);
	run_test(test_events);
	return tap_done();
}
