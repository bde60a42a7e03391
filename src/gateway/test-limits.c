/* SPDX-License-Identifier: Apache-2.0 */
/* What a room can and cannot take from the gateway: time, memory, connections; see testing.h. */
#include "base/clock.h"
#include "clockwork.h"
#include "gateway/testing.h"
#include "tap.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long to wait for what must come; it says nothing about how fast that is. */
#define EVENT_PATIENCE_MS 20000
#define MB ((size_t)1 << 20)
#define GET "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"

static struct rig rig;
static char filler[32 * 1024];

static void start(const struct gateway_limits *limits)
{
	rig_start(&rig, &(struct rig_config){.limits = limits});
}

static void drop_frames(int timeout_ms)
{
	struct rig_frame *f;

	while ((f = rig_recv(&rig, timeout_ms)))
		free(f);
}

/* The broker sends all that its window allows to a client that does not read; then it reads. */
static void test_reader_stalls(bool tls)
{
	const size_t total = 64 * MB;
	struct net_response m = {.status = 200, .body = NET_BODY_LENGTH, .length = total};
	size_t sent = 0, got = 0, before, most = 0;
	uint32_t window = NET_WINDOW;
	struct rig_frame *f;
	struct rig_open o;
	struct client c;

	start(NULL);
	if (tls)
		must(client_connect_tls(&c, &rig, "a.test"));
	else
		client_connect(&c, &rig);
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	before = rig_memory(&rig);
	while (got < total) {
		bool stalled = false;

		/* Until no credit comes: the kernel's buffers and the window are full. */
		while (!stalled && sent < total) {
			while (window >= sizeof(filler) && sent < total) {
				rig_data(&rig, m.stream, str_make(filler, sizeof(filler)));
				sent += sizeof(filler);
				window -= (uint32_t)sizeof(filler);
			}
			f = rig_recv(&rig, got == 0 ? 200 : 0);
			stalled = !f;
			if (f) {
				struct net_credit more;

				check(f->type == NET_CREDIT);
				check(net_get_credit(str_make(f->payload, f->n), &more));
				window += more.bytes;
			}
			free(f);
		}
		most = MAX(most, rig_memory(&rig));
		if (got == 0)
			check(sent < 32 * MB);
		/* If nothing has come the gateway may wait for us. */
		for (int i = 0; i < 16 && client_read(&c, 1); i++)
			;
		got += buf_len(&c.in);
		buf_clear(&c.in);
		if (c.ended)
			break;
	}
	check(got >= total);
	rig_end(&rig, m.stream, NULL);
	printf("# %s: memory grew by %zu KiB at most\n", tls ? "TLS" : "plain",
		(most - MIN(most, before)) / 1024);
#ifndef SANITIZED
	check(most < before + 4 * MB);
#endif
	rig_open_done(&o);
	client_close(&c);
	check(rig_stop(&rig));
}

static void test_reader_stalls_plain(void)
{
	test_reader_stalls(false);
}

static void test_reader_stalls_tls(void)
{
	test_reader_stalls(true);
}

/* An upload stops if the broker gives no window, and goes on when it does. */
static void test_broker_stalls(void)
{
	const size_t total = 32 * MB;
	size_t sent = 0, taken = 0, most, before;
	struct rig_open o;
	struct client c;
	struct response p;
	char head[128];
	bool ended = false;

	start(NULL);
	client_connect(&c, &rig);
	snprintf(head, sizeof(head),
		"PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %zu\r\n\r\n", total);
	client_send(&c, head);
	o = rig_expect_open(&rig);
	before = rig_memory(&rig);
	for (int quiet = 0; quiet < 20; quiet++) {
		size_t n = client_send_some(&c, str_make(filler, sizeof(filler)));

		sent += n;
		if (n > 0)
			quiet = 0;
		else
			usleep(5000);
	}
	check(sent < total);
	most = rig_memory(&rig);
	while (!ended) {
		struct rig_frame *f;
		struct str bytes;
		uint32_t id;

		if (sent < total)
			sent += client_send_some(
				&c, str_make(filler, MIN(sizeof(filler), total - sent)));
		f = rig_recv(&rig, sent < total ? 0 : 2000);
		if (!f)
			continue;
		ended = f->type == NET_END;
		if (f->type == NET_DATA && net_get_data(str_make(f->payload, f->n), &id, &bytes)) {
			taken += bytes.n;
			/* The window without credit is all that may come. */
			must(net_send_credit(&rig.broker, id, (uint32_t)bytes.n) == 0);
			must(chan_flush_wait(&rig.broker, 30000) == 0);
		}
		free(f);
	}
	most = MAX(most, rig_memory(&rig));
	check_int(taken, total);
	rig_answer(&rig, o.m.stream, "stored");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	printf("# memory grew by %zu KiB at most\n", (most - MIN(most, before)) / 1024);
#ifndef SANITIZED
	check(most < before + 4 * MB);
#endif
	rig_open_done(&o);
	client_close(&c);
	check(rig_stop(&rig));
}

/* An event stream is passed on byte by byte: each event is there before the next one is sent. */
static void test_events_are_not_delayed(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct rig_open o;
	struct client c;

	start(NULL);
	must(client_connect_tls(&c, &rig, "a.test"));
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, "Content-Type: text/event-stream\n");
	while (str_find(buf_str(&c.in), STR("\r\n\r\n")) == buf_len(&c.in))
		must(client_read(&c, EVENT_PATIENCE_MS));
	for (int i = 0; i < 20; i++) {
		char event[32], chunk[64];

		snprintf(event, sizeof(event), "data: %d\n\n", i);
		snprintf(chunk, sizeof(chunk), "%zx\r\n%s\r\n", strlen(event), event);
		buf_clear(&c.in);
		rig_data(&rig, m.stream, str_from(event));
		while (buf_len(&c.in) < strlen(chunk))
			must(client_read(&c, EVENT_PATIENCE_MS));
		check(str_eq(buf_str(&c.in), str_from(chunk)));
	}
	rig_end(&rig, m.stream, NULL);
	rig_open_done(&o);
	client_close(&c);
	check(rig_stop(&rig));
}

static void test_connections(void)
{
	struct gateway_limits limits = gateway_limits_default;
	struct client c[5];
	struct response p;
	struct rig_open o;

	limits.connections = 4;
	start(&limits);
	for (int i = 0; i < 4; i++) {
		client_connect(&c[i], &rig);
		client_send(&c[i], "GET ");
	}
	usleep(50000);
	client_connect(&c[4], &rig); /* waits in the listener's queue */
	client_send(&c[4], GET);
	check(strstr(rig_expect_event(&rig, NET_EVENT_LIMIT), "connections|too many at once"));
	check(rig_recv(&rig, 100) == NULL);
	client_close(&c[0]);
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "my turn");
	check_int(client_response(&c[4], &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	for (int i = 1; i < 5; i++)
		client_close(&c[i]);
	check(rig_stop(&rig));
}

static void expect_served(struct client *c)
{
	struct rig_open o = rig_expect_open(&rig);
	struct response p;

	rig_answer(&rig, o.m.stream, "my turn");
	check_int(client_response(c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
}

/* Those that come too fast wait for the next second. */
static void test_accept_rate(void)
{
	enum { RATE = 4096 };
	struct client c;

	start(NULL);
	for (int i = 1; i <= RATE; i++) {
		client_connect(&c, &rig);
		client_send(&c, GET);
		if (i == RATE)
			check(strstr(rig_expect_event(&rig, NET_EVENT_LIMIT),
				"connections|too many in one second"));
		expect_served(&c);
		client_close(&c);
	}
	client_connect(&c, &rig);
	client_send(&c, GET);
	check(rig_recv(&rig, 50) == NULL);
	clock_pass(rig.pid, USEC_PER_SEC);
	expect_served(&c);
	client_close(&c);
	check(rig_stop(&rig));
}

/* If no descriptor can be had, who is connected is served, and the others when there is one. */
static void test_no_descriptors(void)
{
	struct rlimit usual, none;
	struct client before, later;

	start(NULL);
	client_connect(&before, &rig);
	client_send(&before, GET);
	expect_served(&before);
	must(prlimit(rig.pid, RLIMIT_NOFILE, NULL, &usual) == 0);
	none = (struct rlimit){.rlim_cur = 1, .rlim_max = usual.rlim_max};
	must(prlimit(rig.pid, RLIMIT_NOFILE, &none, NULL) == 0);
	client_connect(&later, &rig);
	client_send(&later, GET);
	check(rig_recv(&rig, 300) == NULL);
	client_send(&before, GET);
	expect_served(&before);
	must(prlimit(rig.pid, RLIMIT_NOFILE, &usual, NULL) == 0);
	clock_pass(rig.pid, 100 * USEC_PER_MSEC);
	expect_served(&later);
	client_close(&before);
	client_close(&later);
	check(rig_stop(&rig));
}

static void test_event_flood(void)
{
	static const char bad[] = "GET / HTTP/1.1\r\nHost: a.test:1\r\n\r\n";
	struct rig_frame *f;
	struct client c;
	struct response p;
	unsigned events = 0;
	bool said = false;

	start(NULL);
	client_connect(&c, &rig);
	for (int i = 0; i <= 300; i++) {
		if (i == 300)
			clock_pass(rig.pid, USEC_PER_SEC);
		client_send(&c, bad);
		check_int(client_response(&c, &p, 0), 421);
		response_done(&p);
	}
	while ((f = rig_recv(&rig, 200))) {
		struct net_event e;

		must(f->type == NET_EVENT && net_get_event(str_make(f->payload, f->n), &e));
		said = said || (e.kind == NET_EVENT_LIMIT && str_starts(e.b, STR("100 ")) &&
				       str_ends(e.b, STR("logged")));
		events++;
		free(f);
	}
	check_int(events, 200 + 1 + 1);
	check(said);
	client_close(&c);
	check(rig_stop(&rig));
}

/* The one that was used longest ago is asked for again. */
static void test_leaves(void)
{
	struct client c;
	char name[32];

	start(NULL);
	for (int i = 0; i <= 512; i++) {
		snprintf(name, sizeof(name), "n%d.test", i);
		must(client_connect_tls(&c, &rig, name));
		client_close(&c);
	}
	check_int(rig.minted, 513);
	must(client_connect_tls(&c, &rig, "n1.test"));
	client_close(&c);
	check_int(rig.minted, 513);
	must(client_connect_tls(&c, &rig, "n0.test"));
	client_close(&c);
	check_int(rig.minted, 514);
	check(rig_stop(&rig));
}

/* Pipelined requests that are all refused, from a client that reads nothing. */
static void test_answers_are_bounded(void)
{
	static const char one[] = "GET / HTTP/1.1\r\nHost: a.test:1\r\n\r\n";
	static char many[1000 * (sizeof(one) - 1)];
	size_t sent = 0, before, after;
	struct client c;

	for (size_t i = 0; i < 1000; i++)
		memcpy(many + i * (sizeof(one) - 1), one, sizeof(one) - 1);
	start(NULL);
	client_connect(&c, &rig);
	before = rig_memory(&rig);
	for (int quiet = 0; quiet < 40 && sent < 256 * MB; quiet++) {
		size_t n = client_send_some(&c, str_make(many, sizeof(many)));

		sent += n;
		if (n > 0)
			quiet = 0;
		else
			usleep(5000);
		drop_frames(0);
	}
	after = rig_memory(&rig);
	printf("# %zu KiB of requests, memory grew by %zu KiB\n", sent / 1024,
		(after - MIN(before, after)) / 1024);
	check(sent < 256 * MB);
#ifndef SANITIZED
	check(after < before + 2 * MB);
#endif
	client_close(&c);
	check(rig_stop(&rig));
}

static void test_idle_connections_are_small(void)
{
	enum { N = 200 };
	static struct client c[N];
	struct rig_open o;
	struct response p;
	size_t before, each;

	start(NULL);
	must(client_connect_tls(&c[0], &rig, "a.test"));
	before = rig_memory(&rig);
	for (int i = 1; i < N; i++) {
		must(client_connect_tls(&c[i], &rig, "a.test"));
		client_send(&c[i], GET);
		o = rig_expect_open(&rig);
		rig_answer(&rig, o.m.stream, "x");
		check_int(client_response(&c[i], &p, 0), 200);
		response_done(&p);
		rig_open_done(&o);
	}
	each = (rig_memory(&rig) - before) / (N - 1);
	printf("# an idle TLS connection takes %zu bytes\n", each);
#ifndef SANITIZED
	check(each < 40 * 1024);
#endif
	for (int i = 0; i < N; i++)
		client_close(&c[i]);
	check(rig_stop(&rig));
}

int main(void)
{
	clock_hold();
	memset(filler, 'x', sizeof(filler));
	run_test(test_reader_stalls_plain);
	run_test(test_reader_stalls_tls);
	run_test(test_broker_stalls);
	run_test(test_events_are_not_delayed);
	run_test(test_connections);
	run_test(test_accept_rate);
	run_test(test_no_descriptors);
	run_test(test_event_flood);
	run_test(test_leaves);
	run_test(test_answers_are_bounded);
	run_test(test_idle_connections_are_small);
	return tap_done();
}
