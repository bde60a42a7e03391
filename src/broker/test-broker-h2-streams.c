/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that an origin of HTTP/2 keeps open: what goes both ways, and what the room does not
 * read. */
#include "broker/test-world.h"

#include <stdio.h>
#include <tap.h>

static uint32_t open_bidi(struct world *w, const char *target)
{
	return rig_open(&w->g,
		&(struct ask){HTTPS, .method = "POST", .target = target, .body = NET_BODY_STREAM});
}

/* Waits until so many bytes have come in all. */
static void await_bytes(struct world *w, uint32_t id, struct got *r, uint64_t n)
{
	while (r->bytes < n) {
		struct chan_frame f;
		struct str data;
		uint32_t of;

		must(chan_recv_wait(&w->g.net, &f, 30000) == 1);
		if (f.type == NET_DATA && net_get_data(f.payload, &of, &data)) {
			r->bytes += data.n;
			must(buf_add_str(&r->text, data) == 0);
			must(net_send_credit(&w->g.net, id, (uint32_t)data.n) == 0);
		}
		must(f.type != NET_RESET && f.type != NET_END);
		chan_frame_done(&f);
	}
}

/* Each side speaks as it likes. */
static void test_bidi(void)
{
	struct world w;
	struct got r = {.fields = BUF_INIT(1 << 18), .text = BUF_INIT(1 << 20)};
	uint32_t id;

	world_serve(&w);
	id = open_bidi(&w, "/bidi");
	for (unsigned i = 1; i <= 500; i++) {
		rig_data(&w.g, id, "0123456789", 10);
		await_bytes(&w, id, &r, (uint64_t)10 * i);
	}
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.ended && got_field(&r, "grpc-status: 0"));
	got_done(&r);
	world_stop(&w);
}

/* A message goes on whole, though its end may be a secret's beginning: what answers it may be what
 * the next one waits for. */
static void test_messages(void)
{
	static const struct {
		const char *target;
		struct str pieces[3];
	} rows[] = {
		{"/bidi/application/grpc", {STR("\0\0\0\0\7sk-real")}},
		{"/bidi/application/grpc+proto", {STR("\0\0\0\0"), STR("\0\1\0\0"), STR("\0\2xs")}},
		{"/bidi/application/grpc-web", {STR("\0\0\0\0\2as\0\0\0\0\2bs")}},
		{"/bidi/Application/Connect+json",
			{STR("\2\0\0\0\1s"), STR("\0\0\0\0\2"), STR("ss")}},
	};
	struct world w;

	world_serve(&w);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct got r = {.fields = BUF_INIT(1 << 18), .text = BUF_INIT(1 << 20)};
		uint32_t id = open_bidi(&w, rows[i].target);
		uint64_t n = 0;

		for (size_t k = 0; k < 3 && rows[i].pieces[k].n > 0; k++) {
			rig_data(&w.g, id, rows[i].pieces[k].p, rows[i].pieces[k].n);
			n += rows[i].pieces[k].n;
			await_bytes(&w, id, &r, n);
		}
		rig_data(&w.g, id, "\0\0\0\0\x18" REAL, 29);
		await_bytes(&w, id, &r, n + 29);
		check(got_has(&r, FAKE) && !got_has(&r, REAL));
		rig_end(&w.g, id);
		rig_collect(&w.g, id, &r, 5000);
		check(r.ended);
		got_done(&r);
	}
	world_stop(&w);
}

/* One stream that the room does not read: a window of it is held, others go on beside it. */
static void test_stalled(void)
{
	struct world w;
	struct got r = {0};
	uint32_t id;
	long before;

	world_serve(&w);
	check(world_fetches(&w, "/hello", "hello"));
	before = rig_rss_kib(&w.g);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){HTTPS, .target = "/big/50000000"});
	rig_collect(&w.g, id, &r, 500);
	check(!r.ended && !r.gone);
	check_int(r.bytes, NET_WINDOW);
	w.g.stalled = false;
	for (int i = 0; i < 5; i++)
		check(world_fetches(&w, "/hello", "hello"));
	printf("# memory: %ld KiB more while a stream stalls\n", rig_rss_kib(&w.g) - before);
#if !defined(__SANITIZE_ADDRESS__)
	check(rig_rss_kib(&w.g) - before < 4096);
#endif
	for (int i = 0; i < 4; i++)
		must(net_send_credit(&w.g.net, id, NET_WINDOW / 4) == 0);
	rig_collect(&w.g, id, &r, 10000);
	check(r.ended && r.bytes == 50000000);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

/* Many that stall together hold more than a connection's window, and no other one back. */
static void test_many_stalled(void)
{
	enum { STALLED = 30 };
	struct world w;
	struct got r = {0};
	uint32_t last = 0;
	long before;

	world_serve(&w);
	check(world_fetches(&w, "/hello", "hello"));
	before = rig_rss_kib(&w.g);
	w.g.stalled = true;
	for (int i = 0; i < STALLED; i++)
		last = rig_open(&w.g, &(struct ask){HTTPS, .target = "/big/5000000"});
	rig_collect(&w.g, last, &r, 500);
	check(!r.ended && !r.gone);
	got_done(&r);
	w.g.stalled = false;
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/big/5000000"}, &r);
	check(r.ended && r.bytes == 5000000);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1);
	printf("# memory: %ld KiB more while %d streams stall\n", rig_rss_kib(&w.g) - before,
		STALLED);
#if !defined(__SANITIZE_ADDRESS__)
	check(rig_rss_kib(&w.g) - before < 64 * 1024);
#endif
	world_stop(&w);
}

/* A connection that was not read, as too much was held in all, goes on when less is held elsewhere:
 * nothing else would wake it. */
static void test_held_up(void)
{
	enum { STALLED = 45 };
	const struct ask elsewhere = {
		.scheme = NET_HTTPS, .host = "b.site.test", .target = "/big/5000000"};
	uint32_t stalled[STALLED], here, waits;
	struct got r = {0};
	struct world w;

	world_serve(&w);
	rig_ask(&w.g, &elsewhere, &r);
	check(r.ended);
	got_done(&r);
	w.g.stalled = true;
	r = (struct got){0};
	here = rig_open(&w.g, &(struct ask){HTTPS, .target = "/big/5000000"});
	rig_collect(&w.g, here, &r, 300);
	got_done(&r);
	waits = rig_open(&w.g,
		&(struct ask){HTTPS, .method = "POST", .target = "/sink", .body = NET_BODY_STREAM});
	rig_data(&w.g, waits, "12345", 5);
	for (int i = 0; i < STALLED; i++)
		stalled[i] = rig_open(&w.g, &elsewhere);
	r = (struct got){0};
	rig_collect(&w.g, stalled[STALLED - 1], &r, 1000);
	got_done(&r);
	rig_end(&w.g, waits);
	r = (struct got){0};
	rig_collect(&w.g, waits, &r, 300);
	check_int(r.status, 0);
	for (int i = 0; i < STALLED; i++)
		must(net_send_reset(&w.g.net, stalled[i], NET_RESET_CANCELLED) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, waits, &r, 5000);
	check(r.status == 200 && r.ended);
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	world_h2 = true;
	run_test(test_bidi);
	run_test(test_messages);
	run_test(test_stalled);
	run_test(test_many_stalled);
	run_test(test_held_up);
	world_ca = test_ca_free(world_ca);
	return tap_done();
}
