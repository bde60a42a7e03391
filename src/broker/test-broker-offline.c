/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way into a record, and answers out of one (INV-OFFLINE): the room goes away,
 * reads nothing, or sends without end. */
#include "base/fd.h"
#include "broker/test-world.h"
#include "http/limits.h"
#include "record/cassette.h"
#include "record/cassette_write.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

enum { PIECES = 64 };

static char piece[CASSETTE_PIECE_MAX];

static int new_file(void)
{
	int fd = memfd_create("cassette", MFD_CLOEXEC);

	must(fd >= 0);
	return fd;
}

static void get_none(const void *of, unsigned i, struct str *ret_name, struct str *ret_value)
{
}

static const struct cassette_headers none = {.get = get_none};

static void add_request(struct buf *b, uint64_t e, const char *method, const char *url)
{
	must(cassette_write_request(b, 1, e, str_from(method), str_from(url), &none) == 0);
	must(cassette_write_end(b, 1, e, "sent_end", NULL, NULL) == 0);
}

struct many {
	size_t name, value; /* bytes */
};

static void get_many(const void *of, unsigned i, struct str *ret_name, struct str *ret_value)
{
	static const char x[HTTP_HEAD_MAX] = {[0 ... HTTP_HEAD_MAX - 1] = 'x'};
	const struct many *m = of;

	*ret_name = str_make(x, m->name);
	*ret_value = str_make(x, m->value);
}

/* Heads and trailers at the limits of HTTP (http/limits.h), and beyond them. A line on the wire has
 * four bytes more. */
static const struct {
	const char *head, *trailer; /* the targets */
	unsigned n;
	struct many each;
	bool fits, fits_trailers;
} limits[] = {
	{"/head/most", "/trailer/1", 64, {10, 1010}, true, false},
	{"/head/more", "/trailer/2", 64, {10, 1011}, false, false},
	{"/head/100", "/trailer/3", 110, {10, 1500}, false, false},
	{"/head/fields", "/trailer/4", 128, {3, 5}, true, true},
	{"/head/1", "/trailer/most", 16, {10, 1010}, true, true},
	{"/head/2", "/trailer/more", 16, {10, 1011}, true, false},
};

static void add_limits(struct buf *b)
{
	uint64_t e = 10;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++, e += 2) {
		const struct cassette_headers many = {limits[i].n, get_many, &limits[i].each};
		char url[64];

		snprintf(url, sizeof(url), "https://a.site.test%s", limits[i].head);
		add_request(b, e, "GET", url);
		must(cassette_write_response(b, 1, e, 200, &many) == 0);
		must(cassette_write_end(b, 1, e, "end", NULL, NULL) == 0);
		snprintf(url, sizeof(url), "https://a.site.test%s", limits[i].trailer);
		add_request(b, e + 1, "GET", url);
		must(cassette_write_response(b, 1, e + 1, 200, &none) == 0);
		must(cassette_write_piece(b, 1, e + 1, "data", STR("body")) == 0);
		must(cassette_write_end(b, 1, e + 1, "end", &many, NULL) == 0);
	}
}

/* A small answer, a large one among the lines of which another one lies, one that breaks off, and
 * one that was never there. */
static int make_record(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(32 << 20);
	int fd = new_file();

	add_request(&b, 1, "GET", "https://a.site.test/small");
	must(cassette_write_response(&b, 1, 1, 200, &none) == 0);
	must(cassette_write_piece(&b, 1, 1, "data", STR("small")) == 0);
	must(cassette_write_end(&b, 1, 1, "end", NULL, NULL) == 0);
	add_request(&b, 2, "GET", "https://a.site.test/large");
	add_request(&b, 3, "GET", "https://a.site.test/apart");
	must(cassette_write_response(&b, 1, 2, 200, &none) == 0);
	must(cassette_write_response(&b, 1, 3, 200, &none) == 0);
	must(cassette_write_piece(&b, 1, 3, "data", STR("first ")) == 0);
	for (unsigned i = 0; i < PIECES; i++)
		must(cassette_write_piece(&b, 1, 2, "data", str_make(piece, sizeof(piece))) == 0);
	must(cassette_write_piece(&b, 1, 3, "data", STR("last")) == 0);
	for (uint64_t e = 2; e <= 3; e++)
		must(cassette_write_end(&b, 1, e, "end", NULL, NULL) == 0);
	add_request(&b, 4, "GET", "https://a.site.test/broken");
	must(cassette_write_response(&b, 1, 4, 200, &none) == 0);
	must(cassette_write_piece(&b, 1, 4, "data", STR("part")) == 0);
	must(cassette_write_end(&b, 1, 4, "end", NULL, "gone") == 0);
	add_request(&b, 5, "POST", "https://a.site.test/never");
	add_limits(&b);
	must(fd_write_all(fd, buf_data(&b), buf_len(&b)) == 0);
	return fd;
}

static void start(struct rig *g)
{
	int fd = make_record();

	rig_start(g);
	must(chan_send(&g->conf, NETCONF_OFFLINE, STR_NULL, &fd, 1) == 0);
	rig_serve(g);
	fd_close(fd);
}

static void stop(struct rig *g)
{
	int status = rig_stop(g);

	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void ask(struct rig *g, const char *target, unsigned status, const char *text, bool whole)
{
	const struct ask a = {HTTPS, .target = target};
	struct got r;

	rig_ask(g, &a, &r);
	check_int(r.status, status);
	check_int(r.ended, whole);
	check(!text || got_has(&r, text));
	got_done(&r);
}

static void test_answers(void)
{
	struct rig g;
	char *log;

	start(&g);
	for (unsigned i = 0; i < 3; i++) {
		ask(&g, "/small", 200, "small", true);
		ask(&g, "/apart", 200, "first last", true);
		ask(&g, "/broken", 200, "part", false);
		ask(&g, "/other", 403, "\"error\": \"not_recorded\"", true);
	}
	log = rig_log(&g, false);
	check(strstr(log, "BLOCKED GET https://a.site.test/other -> 403 (not recorded") != NULL);
	free(log);
	stop(&g);
}

/* A recorded head is held to the limits of one that an origin sends. */
static void test_limits(void)
{
	struct rig g;

	start(&g);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		ask(&g, limits[i].head, limits[i].fits ? 200 : 502,
			limits[i].fits ? NULL : "upstream_malformed", true);
		ask(&g, limits[i].trailer, 200, "body", limits[i].fits_trailers);
	}
	ask(&g, "/small", 200, "small", true);
	stop(&g);
}

/* What it has sent, and what comes of it. */
static void test_bodies(void)
{
	struct rig g;
	const struct ask post = {
		HTTPS, .method = "POST", .target = "/never", .body = NET_BODY_STREAM};
	struct got r = {0};
	uint32_t id;

	start(&g);
	id = rig_open(&g, &post);
	for (unsigned i = 0; i < PIECES; i++) {
		rig_data(&g, id, piece, NET_MAX_DATA);
		rig_flush(&g);
		/* It is all taken: there is credit for it. */
		if (i % 2)
			rig_collect(&g, id, &r, 20);
	}
	rig_end(&g, id);
	rig_flush(&g);
	rig_collect(&g, id, &r, 5000);
	check_int(r.status, 502);
	check(got_has(&r, "no answer to this"));
	check(r.credit >= (uint64_t)(PIECES - 4) * NET_MAX_DATA);
	got_done(&r);
	stop(&g);
}

/* A room that reads nothing gets a window, and holds up nobody. */
static void test_flow(void)
{
	const struct ask large = {HTTPS, .target = "/large"};
	uint32_t ids[8];
	struct got r = {0};
	struct rig g;

	start(&g);
	g.stalled = true;
	for (unsigned i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = rig_open(&g, &large);
	rig_collect(&g, ids[0], &r, 500);
	check(r.bytes > 0 && r.bytes <= NET_WINDOW && !r.ended);
	got_done(&r);
	ask(&g, "/small", 200, "small", true);
	/* Half of them go away, and the network ends under the rest. */
	for (unsigned i = 0; i < ARRAY_SIZE(ids) / 2; i++)
		must(net_send_reset(&g.net, ids[i], NET_RESET_CANCELLED) == 0);
	rig_flush(&g);
	g.stalled = false;
	r = (struct got){0};
	rig_ask(&g, &large, &r);
	check(r.ended && r.bytes == (uint64_t)PIECES * sizeof(piece));
	got_done(&r);
	stop(&g);
}

static void test_other_kinds(void)
{
	static const struct ask kinds[] = {
		{HTTPS, .kind = NET_KIND_WEBSOCKET, .target = "/small", .body = NET_BODY_STREAM},
		{HTTPS, .kind = NET_KIND_TUNNEL, .method = "", .target = "",
			.body = NET_BODY_STREAM}};
	struct rig g;

	start(&g);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct got r;

		rig_ask(&g, &kinds[i], &r);
		check_int(r.status, 403);
		got_done(&r);
	}
	stop(&g);
}

static void test_refused(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct rig g;
	int fd = new_file();

	must(fd_write_all(fd, "[]\n", 3) == 0);
	rig_start(&g);
	must(chan_send(&g.conf, NETCONF_OFFLINE, STR_NULL, &fd, 1) == 0);
	rig_refused(&g, &err);
	check(strstr(err.message, "--offline: line 1: ") != NULL);
	fd_close(fd);
	(void)rig_stop(&g);
}

/* --- into a record --- */

static void check_recorded(int fd)
{
	_cleanup_(cassette_donep) struct cassette c = CASSETTE_INIT;
	_cleanup_(buf_donep) struct buf all = BUF_INIT(32 << 20);

	must(lseek(fd, 0, SEEK_SET) == 0 && fd_read_to_end(fd, &all) == 0);
	check(str_find(buf_str(&all), STR(FAKE)) < buf_len(&all));
	check(str_find(buf_str(&all), STR(REAL)) == buf_len(&all));
	must(cassette_load(&c, fd, NULL) == 0);
	check_int(c.n, 4);
	check(c.v[0].status == 200 && c.v[0].received.whole && c.v[0].sent.whole);
	check(c.v[1].status == 200 && c.v[1].sent.whole && c.v[1].sent.bytes == 5);
	check(c.v[2].refused && c.v[2].status == 403);
	check(!c.v[3].sent.whole && c.v[3].broken && c.v[3].sent.bytes == 3);
}

static void test_recorded(void)
{
	const struct ask post = {
		HTTPS, .method = "POST", .target = "/sink", .body = NET_BODY_STREAM};
	struct ask get = {HTTPS, .target = "/hello", .fields = {"Authorization", FAKE}};
	const struct netconf_record m = {.limit = 0};
	struct got r = {0};
	struct world w;
	uint32_t id;
	int fd = new_file();

	world_start(&w, NULL);
	must(netconf_send_record(&w.g.conf, &m, fd) == 0);
	rig_serve(&w.g);
	check(world_gets(&w, &get, "hello"));
	id = rig_open(&w.g, &post);
	rig_data(&w.g, id, "hello", 5);
	rig_end(&w.g, id);
	rig_flush(&w.g);
	rig_collect(&w.g, id, &r, 5000);
	check_int(r.status, 200);
	got_done(&r);
	get.host = "elsewhere.example";
	rig_ask(&w.g, &get, &r);
	check_int(r.status, 403);
	got_done(&r);
	id = rig_open(&w.g, &post);
	rig_data(&w.g, id, "cut", 3);
	must(net_send_reset(&w.g.net, id, NET_RESET_CANCELLED) == 0);
	rig_flush(&w.g);
	check(world_seen(&w.tls_seen, "GET /hello"));
	world_stop(&w);
	check_recorded(fd);
	fd_close(fd);
}

int main(void)
{
	run_test(test_answers);
	run_test(test_limits);
	run_test(test_bodies);
	run_test(test_flow);
	run_test(test_other_kinds);
	run_test(test_refused);
	run_test(test_recorded);
	return tap_done();
}
