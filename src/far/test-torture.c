/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation fails once: what a link is asked for then ends with ENOMEM, or is done, and what
 * is written next is still whole frames. */
#include "far/protocol.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>

static int on_message(struct link *l, uint16_t type, struct str payload)
{
	return 0;
}

static int on_data(struct link *l, struct link_channel *c, struct str bytes)
{
	return link_consumed(l, c, bytes.n);
}

static int on_end(struct link *l, struct link_channel *c)
{
	return link_end(l, c);
}

static void on_any(struct link *l, struct link_channel *c)
{
}

static const struct link_ops ops = {
	.message = on_message, .data = on_data, .end = on_end, .stop = on_any, .more = on_any};

static int carry(struct link *from, struct link *to)
{
	struct str next;
	int r = 0;

	while (r == 0 && (next = link_pending(from)).n > 0) {
		/* In two pieces, so that an incomplete frame is kept. */
		r = link_feed(to, str_prefix(next, next.n / 2), 1);
		if (r == 0)
			r = link_feed(to, str_from_index(next, next.n / 2), 1);
		link_written(from, next.n, 1);
	}
	return r;
}

static int carry_both(struct link *near, struct link *far)
{
	int r = 0;

	for (int i = 0; i < 4 && r == 0; i++) {
		r = carry(near, far);
		if (r == 0)
			r = carry(far, near);
	}
	return r;
}

static int restart(struct link *near, struct link *far)
{
	int r = link_restart(near, 1);

	return r < 0 ? r : link_restart(far, 1);
}

/* Send something of each kind, over two carriers. */
static int exchange(struct link *near, struct link *far)
{
	static char bytes[LINK_MAX_DATA];
	const struct far_kill kill = {.signo = 9};
	struct link_channel here = {0}, there = {0};
	int r = restart(near, far);

	if (r == 0)
		r = link_open(near, &here, link_new_number(near), true, true);
	if (r == 0)
		r = link_open(far, &there, here.number, true, true);
	if (r == 0)
		r = far_send(near, FAR_KILL, far_kill_message(), &kill);
	if (r == 0)
		r = link_data(near, &here, str_make(bytes, sizeof(bytes)));
	if (r == 0)
		r = carry_both(near, far);
	if (r == 0)
		r = restart(near, far);
	if (r == 0)
		r = link_data(far, &there, str_make(bytes, sizeof(bytes)));
	if (r == 0)
		r = link_end(near, &here);
	if (r == 0)
		r = carry_both(near, far);
	link_close(near, &here);
	link_close(far, &there);
	return r;
}

static void failing(void)
{
	static const uint8_t session[LINK_SESSION];
	struct link near, far;
	int r;

	link_init(&near, &ops, session);
	link_init(&far, &ops, NULL);
	r = exchange(&near, &far);
	/* What is owed to the other end may wait for memory. */
	if (torture_failed ? r != 0 && r != -ENOMEM : r != 0)
		tap_fail("answer %d", r);
	if (!torture_failed)
		check(buf_len(&near.kept) == 0 && buf_len(&far.kept) == 0);
	link_done(&near);
	link_done(&far);
}

static void test_each_allocation_fails_once(void)
{
	torture(failing);
}

int main(void)
{
	run_test(test_each_allocation_fails_once);
	return tap_done();
}
