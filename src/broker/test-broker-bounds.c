/* SPDX-License-Identifier: Apache-2.0 */
/* What all bodies together may take up (docs/design/limits.md): more streams than there is room
 * for, each of which may have a whole window. */
#include "broker/testing.h"
#include "http/ws.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

enum {
	STREAMS = 560, /* of an answer's window each: 70 MiB */
	MIB = 1 << 20,
	BODY = 200 * 1000,
	HEAD = 256,
};

static char filler[BODY];

struct listener {
	int fd;
	uint16_t port;
	bool answers;
	pthread_t thread;
	pthread_t answering[STREAMS + 8];
	int conns[STREAMS + 8];
	unsigned answering_n, n;
};

/* What stands before the body: a head, or one and that of a WebSocket's frame. */
static size_t write_head(char ret[HEAD], struct str request)
{
	size_t key = str_find(request, STR("Sec-WebSocket-Key: ")) + 19;
	char accept[WS_ACCEPT_LEN + 1];
	struct ws_frame f = {.fin = true, .opcode = WS_BINARY, .length = BODY};
	int n;

	if (key > request.n)
		return (size_t)snprintf(
			ret, HEAD, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);
	ws_accept(str_prefix(str_from_index(request, key), WS_KEY_LEN), accept);
	n = snprintf(ret, HEAD,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept);
	return (size_t)n + ws_write_head(ret + n, &f);
}

/* Reads the head, sends a body as far as anybody takes it, and stays until the other side goes. */
static void *serve_one(void *arg)
{
	int fd = (int)(intptr_t)arg;
	size_t at = 0;
	char b[4096], head[HEAD];
	ssize_t n = read(fd, b, sizeof(b));

	if (n > 0 && send(fd, head, write_head(head, str_make(b, (size_t)n)), MSG_NOSIGNAL) > 0)
		while (at < BODY && (n = send(fd, filler + at, BODY - at, MSG_NOSIGNAL)) > 0)
			at += (size_t)n;
	while (read(fd, b, sizeof(b)) > 0)
		continue;
	close(fd);
	return NULL;
}

static void *serve(void *arg)
{
	struct listener *l = arg;
	pthread_attr_t attr;
	int fd;

	must(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 64 * 1024) == 0);
	while ((fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (l->answers)
			must(l->answering_n < ARRAY_SIZE(l->answering) &&
				pthread_create(&l->answering[l->answering_n++], &attr, serve_one,
					(void *)(intptr_t)fd) == 0);
		else if (l->n < ARRAY_SIZE(l->conns))
			l->conns[l->n++] = fd; /* nothing is ever read from it */
	}
	pthread_attr_destroy(&attr);
	return NULL;
}

static void listener_start(struct listener *l, bool answers)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);

	*l = (struct listener){.answers = answers};
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(l->fd >= 0);
	must(bind(l->fd, (struct sockaddr *)&a, n) == 0 && listen(l->fd, STREAMS) == 0 &&
		getsockname(l->fd, (struct sockaddr *)&a, &n) == 0);
	l->port = ntohs(a.sin_port);
}

/* After the broker was started: there may be no threads before, as they may hold locks that the
 * child of a fork would wait for. */
static void listener_run(struct listener *l)
{
	must(pthread_create(&l->thread, NULL, serve, l) == 0);
}

static void listener_stop(struct listener *l)
{
	(void)shutdown(l->fd, SHUT_RDWR);
	pthread_join(l->thread, NULL);
	while (l->answering_n > 0)
		pthread_join(l->answering[--l->answering_n], NULL);
	close(l->fd);
	while (l->n > 0)
		close(l->conns[--l->n]);
}

static void start(struct rig *g, struct listener *l, bool answers)
{
	listener_start(l, answers);
	rig_start(g);
	rig_allow(g, "domains: [a.test]\n");
	rig_connect_to(g, "a.test", 80, l->port);
	rig_connect_to(g, "a.test", 443, l->port);
	rig_serve(g);
	listener_run(l);
}

struct seen {
	unsigned status;
	size_t bytes;
	bool ended;
};

/* Takes what comes until nothing has come for so long, or `until` has ended. Returns the bytes of
 * all bodies. */
static size_t take(struct rig *g, struct seen seen[], uint32_t until, int ms)
{
	struct chan_frame f;
	size_t all = 0;

	while (!seen[until].ended && chan_recv_wait(&g->net, &f, ms) > 0) {
		struct wire_in in = wire_in(f.payload);
		uint32_t id = wire_get_u32(&in);
		struct net_response m;
		struct str bytes;

		must(id <= 2 * STREAMS);
		if (f.type == NET_HEAD && net_get_response(f.payload, &m, &in)) {
			seen[id].status = m.status;
		} else if (f.type == NET_DATA && net_get_data(f.payload, &id, &bytes)) {
			seen[id].bytes += bytes.n;
			all += bytes.n;
		} else if (f.type == NET_END || f.type == NET_RESET) {
			seen[id].ended = true;
		}
		chan_frame_done(&f);
	}
	return all;
}

/* Answers that nobody takes: they stop at a total, each stream has had a share, and whoever takes
 * his gets all of it while the others still stand. */
static void test_answers(void)
{
	static struct seen seen[2 * STREAMS + 1];
	struct listener l;
	struct rig g;
	size_t all, credited = 0;

	start(&g, &l, true);
	for (unsigned i = 0; i < STREAMS; i++)
		rig_open(&g, &(struct ask){.host = "a.test", .target = "/", .more = true});
	rig_flush(&g);
	all = take(&g, seen, 0, 1000);
	printf("# %zu MiB under way\n", all / MIB);
	check(all > (size_t)31 * MIB);
	check(all <= (size_t)32 * MIB + STREAMS * (size_t)NET_WINDOW / 4);
	for (unsigned i = 1; i <= STREAMS; i++) {
		check(seen[i].status == 200);
		check(seen[i].bytes >= NET_WINDOW / 4 - 1);
	}
	while (!seen[STREAMS].ended && credited < seen[STREAMS].bytes) {
		uint32_t n = (uint32_t)(seen[STREAMS].bytes - credited);

		must(net_send_credit(&g.net, STREAMS, n) == 0);
		rig_flush(&g);
		credited += n;
		take(&g, seen, STREAMS, 1000);
	}
	check(seen[STREAMS].ended);
	check_int(seen[STREAMS].bytes, BODY);
	rig_stop(&g);
	listener_stop(&l);
}

/* The same of WebSockets. */
static void test_websockets(void)
{
	static struct seen seen[2 * STREAMS + 1];
	struct listener l;
	struct rig g;
	size_t all;

	start(&g, &l, true);
	for (unsigned i = 0; i < STREAMS; i++)
		rig_open(&g, &(struct ask){.kind = NET_KIND_WEBSOCKET,
				     .host = "a.test",
				     .target = "/",
				     .body = NET_BODY_STREAM,
				     .more = true});
	rig_flush(&g);
	all = take(&g, seen, 0, 1000);
	printf("# %zu MiB under way\n", all / MIB);
	check(all > (size_t)31 * MIB);
	check(all <= (size_t)32 * MIB + STREAMS * (size_t)NET_WINDOW / 4);
	for (unsigned i = 1; i <= STREAMS; i++)
		check(seen[i].status == 101 && seen[i].bytes > 0);
	rig_stop(&g);
	listener_stop(&l);
}

static uint32_t open_upload(struct rig *g, enum net_scheme scheme)
{
	return rig_open(g, &(struct ask){.scheme = scheme,
				   .host = "a.test",
				   .method = "POST",
				   .target = "/",
				   .body = NET_BODY_STREAM,
				   .more = true});
}

/* How many of n uploads of a whole window are refused. */
static unsigned upload(struct rig *g, unsigned n)
{
	static struct seen seen[2 * STREAMS + 1];
	static const char bytes[NET_REQUEST_WINDOW];
	uint32_t first = g->next;
	unsigned refused = 0;

	for (unsigned i = 0; i < n; i++)
		rig_data(g, open_upload(g, NET_HTTPS), bytes, NET_REQUEST_WINDOW);
	take(g, seen, 0, 1000);
	for (uint32_t i = first; i < first + n; i++) {
		check(seen[i].status == 0 || seen[i].status == 503);
		refused += seen[i].status == 503;
	}
	return refused;
}

/* Requests that no origin takes: those that pass the total are refused, and when the others have
 * gone there is room again. The origin never answers the handshake, so all that comes waits. */
static void test_requests(void)
{
	struct listener l;
	unsigned refused;
	struct rig g;

	start(&g, &l, false);
	refused = upload(&g, STREAMS);
	printf("# %u refused, %ld MiB resident\n", refused, rig_rss_kib(&g) / 1024);
	check_int(refused, STREAMS - 64 * MIB / NET_REQUEST_WINDOW);
	for (uint32_t i = 1; i <= STREAMS; i++)
		must(net_send_reset(&g.net, i, NET_RESET_CANCELLED) == 0);
	rig_flush(&g);
	check_int(upload(&g, 8), 0);
	rig_stop(&g);
	listener_stop(&l);
}

/* Waits until the stream gets credit: what it sent has gone. */
static void wait_for_credit(struct rig *g, uint32_t stream)
{
	struct chan_frame f;
	bool credit = false;

	while (!credit) {
		struct wire_in in;

		must(chan_recv_wait(&g->net, &f, 30000) > 0);
		in = wire_in(f.payload);
		credit = wire_get_u32(&in) == stream && f.type == NET_CREDIT;
		chan_frame_done(&f);
	}
}

/* Requests that the kernel has taken keep no memory here. */
static void test_memory(void)
{
	struct listener l;
	struct rig g;
	long before;

	start(&g, &l, false);
	before = rig_rss_kib(&g);
	for (unsigned i = 0; i < STREAMS; i++) {
		uint32_t id = open_upload(&g, NET_HTTP);

		rig_data(&g, id, filler, NET_WINDOW / 2);
		wait_for_credit(&g, id);
	}
	printf("# %ld MiB resident, %ld before\n", rig_rss_kib(&g) / 1024, before / 1024);
#if !defined(__SANITIZE_ADDRESS__)
	check(rig_rss_kib(&g) - before < 40 * 1024);
#endif
	rig_stop(&g);
	listener_stop(&l);
}

/* A stream too many is refused alone: a gateway that is whole may be brought to it, as it forgets a
 * stream before the last bytes of it have reached the origin. */
static void test_streams_at_once(void)
{
	const struct ask upload = {
		.host = "a.test", .method = "POST", .target = "/", .body = NET_BODY_STREAM};
	struct rig g;
	struct got r;
	uint32_t id;

	rig_start(&g);
	rig_allow(&g, "domains: [a.test]\n");
	rig_connect_to(&g, "a.test", 80, 1); /* nobody listens there */
	rig_serve(&g);
	for (int i = 0; i < NET_MAX_STREAMS; i++) {
		rig_ask(&g, &upload, &r); /* its body goes on */
		check_int(r.status, 502);
		got_done(&r);
	}
	r = (struct got){0};
	id = rig_open(&g, &upload);
	rig_data(&g, id, "x", 1);
	rig_end(&g, id);
	rig_collect(&g, id, &r, 5000);
	check(r.reset && !r.gone);
	got_done(&r);
	rig_end(&g, 1);
	rig_ask(&g, &upload, &r);
	check_int(r.status, 502);
	got_done(&r);
	rig_stop(&g);
}

int main(void)
{
	run_test(test_answers);
	run_test(test_websockets);
	run_test(test_requests);
	run_test(test_memory);
	run_test(test_streams_at_once);
	return tap_done();
}
