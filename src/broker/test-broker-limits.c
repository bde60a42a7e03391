/* SPDX-License-Identifier: Apache-2.0 */
/* What a room can make the broker hold (docs/design/limits.md): to the bound. */
#include "base/clock.h"
#include "broker/test-seen.h"
#include "http/ws.h"
#include "ipc/helper.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

#define ALLOW "domains: [a.test, b.test, c.test]\n"

enum { CONNS_MAX = 128 };

static int listener;
static uint16_t port;
static int conns[CONNS_MAX]; /* that were accepted */
static unsigned conns_n;

static void start_listening(void)
{
	listener = listen_at(CONNS_MAX, &port);
	start(ALLOW, port);
}

static void stop_listening(void)
{
	stop();
	while (conns_n > 0)
		close(conns[--conns_n]);
	close(listener);
}

/* So many requests at once, each of which has come. */
static uint32_t ask_at_once(const char *host, unsigned n)
{
	uint32_t first = g.next;

	for (unsigned i = 0; i < n; i++)
		rig_open(&g, &(struct ask){.host = host, .target = "/", .more = i + 1 < n});
	for (unsigned i = 0; i < n; i++) {
		must(conns_n < CONNS_MAX);
		conns[conns_n++] = accept_and_read(listener);
	}
	return first;
}

/* How many the broker has not closed. */
static unsigned count_open(void)
{
	unsigned n = 0;
	char c;

	settle();
	for (unsigned i = 0; i < conns_n; i++)
		n += recv(conns[i], &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
	return n;
}

/* Leaves so many connections that serve nobody. */
static void make_idle(const char *host, unsigned n)
{
	uint32_t first = ask_at_once(host, n);

	for (unsigned i = conns_n - n; i < conns_n; i++)
		write_z(conns[i], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	for (unsigned i = 0; i < n; i++)
		wait_over(first + i);
}

static void test_pool(void)
{
	start_listening();
	make_idle("a.test", 33);
	check_int(count_open(), 32);
	make_idle("b.test", 32);
	check_int(count_open(), 64);
	make_idle("c.test", 1);
	check_int(count_open(), 64);
	check(recv(conns[conns_n - 1], &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
	pass(60 * USEC_PER_SEC);
	check_int(count_open(), 64);
	pass(5 * USEC_PER_SEC); /* looked at so often */
	check_int(count_open(), 0);
	stop_listening();
}

/* Reads a head and so many bytes of a body. */
static void read_request(int fd, size_t body)
{
	static char bytes[1 << 17];
	size_t n = 0, head = sizeof(bytes);

	while (n < head || n < head + body) {
		ssize_t got = read(fd, bytes + n, sizeof(bytes) - n);

		must(got > 0);
		n += (size_t)got;
		head = str_find(str_make(bytes, n), STR("\r\n\r\n"));
		head = head < n ? head + 4 : sizeof(bytes);
	}
}

static bool is_readable(int fd)
{
	settle();
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

static void answer_once(int fd, uint32_t id)
{
	write_z(fd, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n");
	wait_over(id);
}

/* A connection is used for a second less than the origin keeps it. */
static void test_origin_says_how_long(void)
{
	const struct ask ask = {.host = "a.test", .target = "/"};
	uint32_t id;

	start_listening();
	id = ask_at_once("a.test", 1);
	answer_once(conns[0], id);
	pass(3900 * USEC_PER_MSEC);
	id = rig_open(&g, &ask);
	must(is_readable(conns[0]));
	read_request(conns[0], 0);
	answer_once(conns[0], id);
	pass(4 * USEC_PER_SEC);
	rig_open(&g, &ask);
	check(is_readable(listener));
	check(!is_readable(conns[0])); /* it is not used, and is closed at the next look */
	pass(5 * USEC_PER_SEC);
	check(is_readable(conns[0]));
	stop_listening();
}

/* A request that goes out on a connection which then turns out to be dead. */
static uint32_t upload_in_vain(size_t n)
{
	static const char bytes[NET_WINDOW];
	uint32_t id;

	make_idle("a.test", 1);
	id = rig_open(&g, &(struct ask){.host = "a.test",
				  .method = "PUT",
				  .target = "/",
				  .body = NET_BODY_LENGTH,
				  .length = n});
	rig_data(&g, id, bytes, n);
	rig_end(&g, id);
	read_request(conns[conns_n - 1], n);
	settle();
	close(conns[--conns_n]);
	return id;
}

/* 64 KiB of a request are kept for that. */
static void test_sent_again(void)
{
	uint32_t id;
	int fd;

	start_listening();
	id = upload_in_vain(64 * 1024);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	read_request(fd, 64 * 1024);
	write_z(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	wait_over(id);
	check_int(seen[id].status, 200);
	close(fd);
	id = upload_in_vain(64 * 1024 + 1);
	wait_over(id);
	check_int(seen[id].status, 502);
	stop_listening();
}

/* The origin closes a connection, and a request comes before the broker has seen that: it goes out
 * on another one, as no POST may be sent a second time. */
static void test_closed_unseen(void)
{
	uint32_t id;
	int fd;

	start_listening();
	make_idle("a.test", 1);
	tap_stop(g.pid);
	id = rig_open(&g, &(struct ask){.host = "a.test", .method = "POST", .target = "/"});
	close(conns[--conns_n]);
	must(kill(g.pid, SIGCONT) == 0);
	must(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, PATIENCE_MS) == 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	read_request(fd, 0);
	write_z(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	wait_over(id);
	check_int(seen[id].status, 200);
	close(fd);
	stop_listening();
}

/* Decoders take 8 MiB and more each: a zstd frame with a window of that, and a block. */
static void test_decoders(void)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n"
				     "e\r\n\x28\xb5\x2f\xfd\0\x68\x28\0\0hello\r\n";
	enum { MANY = 20 };
	uint32_t first, last = 0;
	unsigned decoded = 0;

	memset(seen, 0, sizeof(seen));
	listener = listen_at(CONNS_MAX, &port);
	rig_start(&g);
	rig_allow(&g, ALLOW);
	rig_connect_to(&g, "a.test", 80, port);
	rig_secret(&g, "TOKEN", "sk-real-0123456789abcdef", "sk-fake-ABCDEFGHIJKLMNOP", "a.test",
		"authorization");
	rig_serve(&g);
	first = ask_at_once("a.test", MANY);
	for (unsigned i = 0; i < MANY; i++)
		must(write(conns[i], answer, sizeof(answer) - 1) == sizeof(answer) - 1);
	for (uint32_t id = first; id < first + MANY; id++) {
		while (seen[id].bytes == 0 && !seen[id].over)
			must(take_frame(PATIENCE_MS));
		if (seen[id].status != 200 || seen[id].reset)
			continue;
		check(seen[id].text[0] == 'h' && !seen[id].over);
		last = id;
		decoded++;
	}
	printf("# %u decoders of 8 MiB at once\n", decoded);
	check(decoded >= 12 && decoded < 16);
	/* One goes: there is room for another. */
	must(net_send_reset(&g.net, last, NET_RESET_CANCELLED) == 0);
	rig_flush(&g);
	first = ask_at_once("a.test", 1);
	must(write(conns[conns_n - 1], answer, sizeof(answer) - 1) == sizeof(answer) - 1);
	while (seen[first].bytes == 0)
		must(take_frame(PATIENCE_MS));
	check_int(seen[first].status, 200);
	stop_listening();
}

/* Chunks that come together go on together. */
static void test_small_chunks(void)
{
	enum { CHUNKS = 5000, FEW = 20 };
	_cleanup_(buf_donep) struct buf answer = BUF_INIT(6 * CHUNKS + 100);
	uint32_t id;

	start_listening();
	id = ask_at_once("a.test", 1);
	must(buf_add_str(&answer, STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")) ==
		0);
	for (unsigned i = 0; i < CHUNKS; i++)
		must(buf_printf(&answer, "1\r\n%c\r\n", 'a' + i % 26) == 0);
	must(buf_add_str(&answer, STR("0\r\n\r\n")) == 0);
	must(write(conns[conns_n - 1], buf_data(&answer), buf_len(&answer)) ==
		(ssize_t)buf_len(&answer));
	wait_over(id);
	check(!seen[id].reset);
	check_int(seen[id].bytes, CHUNKS);
	check(strncmp(seen[id].text, "abcdefghijklmnopqrstuvwxyzab", 28) == 0);
	check(seen[id].pieces <= FEW);
	stop_listening();
}

/* Becomes a WebSocket with the origin; returns its end. */
static int accept_websocket(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char request[4096], accept[WS_ACCEPT_LEN + 1], answer[512];
	ssize_t n = read(fd, request, sizeof(request));
	struct str key;

	must(n > 0);
	key = str_make(request, (size_t)n);
	key = str_from_index(key, str_find(key, STR("Sec-WebSocket-Key: ")) + 19);
	ws_accept(str_prefix(key, WS_KEY_LEN), accept);
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept);
	write_z(fd, answer);
	return fd;
}

/* However many frames come at once, each gets a mask that nobody can guess from another. */
static void test_masks(void)
{
	enum { FRAMES = 200, FRAME = 7 };
	static char in[FRAMES][FRAME], out[FRAMES][FRAME];
	uint32_t id;
	size_t have = 0;
	int fd;

	start_listening();
	id = rig_open(&g, &(struct ask){.kind = NET_KIND_WEBSOCKET,
				  .host = "a.test",
				  .target = "/",
				  .body = NET_BODY_STREAM});
	fd = accept_websocket();
	for (unsigned i = 0; i < FRAMES; i++) {
		memcpy(in[i], "\x82\x81mask", FRAME - 1);
		in[i][FRAME - 1] = (char)(i ^ 'm');
	}
	rig_data(&g, id, in[0], sizeof(in));
	while (have < sizeof(out)) {
		ssize_t n = read(fd, out[0] + have, sizeof(out) - have);

		must(n > 0);
		have += (size_t)n;
	}
	for (unsigned i = 0; i < FRAMES; i++) {
		check(memcmp(out[i], "\x82\x81", 2) == 0);
		check_int((uint8_t)(out[i][FRAME - 1] ^ out[i][2]), i);
		for (unsigned k = 0; k < i; k++)
			check(memcmp(out[k] + 2, out[i] + 2, 4) != 0);
	}
	close(fd);
	stop_listening();
}

static const struct ask refused = {.host = "no.example",
	.target = "/",
	.client = {.family = 4, .port = 1, .server_port = 80},
	.more = true};

/* So many refusals at once. */
static void ask_refused(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rig_open(&g, &refused);
	rig_flush(&g);
	settle();
}

static unsigned count_questions(void)
{
	struct chan_frame f;
	unsigned n = 0;

	while (chan_recv_wait(&g.supervisor, &f, MOMENT_MS) == 1) {
		n += f.type == HELPER_WHO;
		chan_frame_done(&f);
	}
	return n;
}

/* To so much before a second of the broker's clock ends. */
static void pass_to(uint64_t before)
{
	pass(2 * USEC_PER_SEC - before - clock_held() % USEC_PER_SEC);
}

/* Refusals that wait until it is known whose they are; nobody says so here. */
static void test_questions(void)
{
	uint32_t first;

	start(ALLOW, 1);
	pass_to(900 * USEC_PER_MSEC);
	first = g.next;
	ask_refused(21);
	check_int(count_questions(), 20);
	check_int(count_over(first, first + 20), 1);
	check(seen[first + 20].over);
	pass(99 * USEC_PER_MSEC);
	settle();
	check_int(count_over(first, first + 20), 1);
	pass(USEC_PER_MSEC);
	settle();
	check_int(count_over(first, first + 20), 21);
	ask_refused(1);
	check_int(count_questions(), 0); /* the second is the same */

	/* Those of two seconds. */
	pass_to(50 * USEC_PER_MSEC);
	first = g.next;
	ask_refused(20);
	pass(50 * USEC_PER_MSEC);
	ask_refused(13);
	check_int(count_questions(), 32);
	check_int(count_over(first, g.next - 1), 1 + 4);
	pass(50 * USEC_PER_MSEC);
	settle();
	check_int(count_over(first, g.next - 1), 20 + 1 + 4 + 2);
	stop();
}

/* How many of n certificates for names of this kind are made. */
static unsigned count_minted(const char *kind, unsigned n)
{
	unsigned ok = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct chan_frame f;
		struct net_cert c;
		char host[32];

		snprintf(host, sizeof(host), "n%u.%s", i, kind);
		must(net_send_mint(&g.net,
			     &(struct net_mint){
				     .request = i, .host = str_from(host), .port = 443}) == 0);
		rig_flush(&g);
		must(chan_recv_wait(&g.net, &f, PATIENCE_MS) == 1 && f.type == NET_CERT);
		must(net_get_cert(f.payload, &c) && c.request == i);
		ok += c.ok;
		chan_frame_done(&f);
	}
	return ok;
}

static void test_certificates(void)
{
	start("domains: [\"*.test\"]\n", 1);
	check_int(count_minted("example", 60), 50);
	check_int(count_minted("test", 2010), 2000);
	pass(USEC_PER_SEC);
	check_int(count_minted("example", 20), 10);
	check_int(count_minted("test", 510), 500);
	stop();
}

int main(void)
{
	clock_hold();
	run_test(test_pool);
	run_test(test_origin_says_how_long);
	run_test(test_sent_again);
	run_test(test_closed_unseen);
	run_test(test_decoders);
	run_test(test_small_chunks);
	run_test(test_masks);
	run_test(test_questions);
	run_test(test_certificates);
	return tap_done();
}
