/* SPDX-License-Identifier: Apache-2.0 */
/* How long an origin may take, and for what (docs/design/limits.md): to the bound, in time that the
 * test moves. */
#include "base/clock.h"
#include "broker/test-seen.h"
#include "http/ws.h"

#include <stdio.h>

#define SEC USEC_PER_SEC
#define HOUR (3600 * SEC)
/* What is not done by a timer is looked at so often. */
#define SWEEP (5 * SEC)
#define ALLOW "domains: [a.test]\nurl_prefixes:\n  - host: b.test\n    tunnel: true\n"

static bool log_has(const char *text)
{
	char *log = rig_log(&g, false);
	bool has = strstr(log, text) != NULL;

	free(log);
	return has;
}

static void test_connecting(void)
{
	struct busy b;
	uint32_t id;

	make_busy(&b);
	start(ALLOW, b.port);
	id = rig_open(&g, &(struct ask){.host = "a.test", .target = "/"});
	settle();
	check_may_take(id, 10 * SEC);
	wait_over(id);
	check_int(seen[id].status, 502);
	check(strstr(seen[id].text, "connecting took too long"));
	stop();
	busy_done(&b);
}

/* The origin says nothing to a ClientHello. What the room sends meanwhile does not buy more time.
 */
static void test_handshake(void)
{
	uint16_t port;
	int listener = listen_at(8, &port), fd;
	uint32_t id;

	start(ALLOW, port);
	id = rig_open(&g, &(struct ask){.scheme = NET_HTTPS,
				  .host = "a.test",
				  .method = "POST",
				  .target = "/",
				  .body = NET_BODY_STREAM});
	fd = accept_and_read(listener);
	for (int i = 0; i < 10; i++) {
		pass(SEC);
		rig_data(&g, id, "x", 1);
		settle();
	}
	check(!seen[id].over);
	pass(SWEEP);
	wait_over(id);
	check_int(seen[id].status, 502);
	check(strstr(seen[id].text, "handshake took too long"));
	stop();
	close(fd);
	close(listener);
}

/* The stream gets an hour from now on, and not more. */
static void check_hour(uint32_t id)
{
	settle();
	pass(HOUR);
	settle();
	check(!seen[id].over);
	pass(SWEEP);
	wait_over(id);
	check(seen[id].reset);
	check(log_has("nothing moved for an hour"));
}

static void wait_bytes(uint32_t id, size_t n)
{
	while (seen[id].bytes < n)
		must(take_frame(PATIENCE_MS));
}

static void test_answer(void)
{
	uint16_t port;
	int listener = listen_at(8, &port), fd;
	uint32_t id;

	start(ALLOW, port);
	id = rig_open(&g, &(struct ask){.host = "a.test", .target = "/"});
	fd = accept_and_read(listener);
	pass(HOUR);
	write_z(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\npiece\r\n");
	wait_bytes(id, 5);
	pass(HOUR);
	write_z(fd, "5\r\npiece\r\n");
	wait_bytes(id, 10);
	check_hour(id);
	stop();
	close(fd);
	close(listener);
}

static void test_tunnel(void)
{
	uint16_t port;
	int listener = listen_at(8, &port), fd;
	uint32_t id;

	start(ALLOW, port);
	id = rig_open(&g, &(struct ask){.kind = NET_KIND_TUNNEL,
				  .scheme = NET_HTTPS,
				  .host = "b.test",
				  .method = "",
				  .target = "",
				  .body = NET_BODY_STREAM});
	rig_data(&g, id, "hello", 5);
	fd = accept_and_read(listener);
	settle();
	check_int(seen[id].status, 200);
	pass(HOUR);
	write_z(fd, "piece");
	wait_bytes(id, 5);
	check_hour(id);
	stop();
	close(fd);
	close(listener);
}

static int accept_websocket(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char accept[WS_ACCEPT_LEN + 1], bytes[4096], answer[256];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	struct str head = str_make(bytes, n > 0 ? (size_t)n : 0);
	size_t key = str_find(head, STR("Sec-WebSocket-Key: ")) + 19;

	must(key < head.n);
	ws_accept(str_prefix(str_from_index(head, key), WS_KEY_LEN), accept);
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept);
	write_z(fd, answer);
	return fd;
}

static void test_websocket(void)
{
	uint16_t port;
	int listener = listen_at(8, &port), fd;
	uint32_t id;

	start(ALLOW, port);
	id = rig_open(&g, &(struct ask){.kind = NET_KIND_WEBSOCKET,
				  .host = "a.test",
				  .target = "/",
				  .body = NET_BODY_STREAM});
	fd = accept_websocket(listener);
	while (seen[id].status != 101)
		must(take_frame(PATIENCE_MS));
	pass(HOUR);
	write_z(fd, "\x81\x05piece");
	wait_bytes(id, 7);
	check_hour(id);
	stop();
	close(fd);
	close(listener);
}

int main(void)
{
	clock_hold();
	run_test(test_connecting);
	run_test(test_handshake);
	run_test(test_answer);
	run_test(test_tunnel);
	run_test(test_websocket);
	return tap_done();
}
