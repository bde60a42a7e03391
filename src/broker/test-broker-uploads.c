/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a request may be under way: more if its origin takes what comes, and within bounds.
 * The gateway here counts its credit. */
#include "broker/test-world.h"

#include <stdio.h>
#include <tap.h>
#include <unistd.h>

enum { MIB = 1 << 20, UPLOADS = 8, MUCH = 32 * MIB };

static const char piece[NET_MAX_DATA];

struct upload {
	uint32_t id;
	uint64_t sent, most; /* most: that could be under way at once */
	struct got got;
};

static struct upload upload_begin(struct rig *g, const char *host)
{
	return (struct upload){.id = rig_open(g, &(struct ask){.scheme = NET_HTTPS,
							 .host = host,
							 .method = "POST",
							 .target = "/sink",
							 .body = NET_BODY_STREAM,
							 .more = true})};
}

static uint64_t upload_may_send(const struct upload *u)
{
	return NET_REQUEST_WINDOW + u->got.credit - u->sent;
}

/* Send all that may be sent, then take the credit for it, until n bytes were sent. */
static void upload_send(struct rig *g, struct upload *u, uint64_t n)
{
	while (u->sent < n && !u->got.gone && !u->got.reset) {
		while (upload_may_send(u) >= sizeof(piece) && u->sent < n) {
			rig_data(g, u->id, piece, sizeof(piece));
			u->sent += sizeof(piece);
		}
		rig_collect(g, u->id, &u->got, 5);
		u->most = MAX(u->most, upload_may_send(u));
	}
}

static void upload_end(struct rig *g, struct upload *u)
{
	char want[24];

	rig_end(g, u->id);
	rig_collect(g, u->id, &u->got, 30000);
	snprintf(want, sizeof(want), "%llu", (unsigned long long)u->sent);
	check_str(buf_str(&u->got.text), want);
	got_done(&u->got);
}

static void test_grows(void)
{
	struct world w;
	struct upload u;

	world_serve(&w);
	u = upload_begin(&w.g, "a.site.test");
	check_int(upload_may_send(&u), NET_REQUEST_WINDOW);
	upload_send(&w.g, &u, MUCH);
	check(u.most > NET_REQUEST_WINDOW_MAX / 4 * 3);
	check(u.most <= NET_REQUEST_WINDOW_MAX);
	upload_end(&w.g, &u);

	/* The next one begins as the first did. */
	u = upload_begin(&w.g, "a.site.test");
	upload_send(&w.g, &u, NET_REQUEST_WINDOW / 2);
	check(u.most <= NET_REQUEST_WINDOW);
	upload_end(&w.g, &u);
	world_stop(&w);
}

static void test_grows_h2(void)
{
	world_h2 = true;
	test_grows();
	world_h2 = false;
}

/* By what all windows grow has a bound, and an upload that is over gives its part back. */
static void test_many(void)
{
	struct upload u[UPLOADS], last;
	struct world w;
	uint64_t all = 0;

	world_serve(&w);
	for (unsigned i = 0; i < UPLOADS; i++) {
		u[i] = upload_begin(&w.g, i % 2 ? "a.site.test" : "b.site.test");
		upload_send(&w.g, &u[i], MUCH);
		all += u[i].most;
	}
	printf("# %llu KiB could be under way\n", (unsigned long long)all / 1024);
	check(all > NET_REQUESTS_GROWN_MAX / 4 * 3);
	check(all <= UPLOADS * NET_REQUEST_WINDOW + NET_REQUESTS_GROWN_MAX);
	for (unsigned i = 0; i < UPLOADS; i++)
		upload_end(&w.g, &u[i]);
	last = upload_begin(&w.g, "a.site.test");
	upload_send(&w.g, &last, MUCH);
	check(last.most > NET_REQUEST_WINDOW_MAX / 4 * 3);
	upload_end(&w.g, &last);
	world_stop(&w);
}

int main(void)
{
	run_test(test_grows);
	run_test(test_grows_h2);
	run_test(test_many);
	world_ca = test_ca_free(world_ca);
	return tap_done();
}
