/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: two links in memory, and a wire in each direction, which delivers what was
 * written in pieces of any size. When the carrier is cut, what is on the wires is lost, and both
 * ends start anew. Byte number i of a channel is known, so each reader can tell whether it got that
 * one. */
#include "base/rand.h"
#include "far/link.h"
#include "seeded.h"
#include "tap.h"

#include <errno.h>

enum {
	ROUNDS = 20,
	STEPS = 4000,
	CHANNELS = 60, /* that a round opens, from both ends together */
	M_OPEN = 1,    /* u8 number */
	M_COUNT = 2,   /* u32: one more than in the message before */
	WIRE_MAX = 64 * 1024 * 1024,
	MSEC = 1000,
};

static const uint8_t session[LINK_SESSION] = "sixteen bytes...";

/* One end of a channel. */
struct stream {
	struct link_channel channel; /* first */
	uint64_t sent, got;
	bool is_stalled, has_ended, has_stopped;
	bool got_end, got_stop, is_over;
};

struct side {
	struct link link;
	struct side *other;
	struct buf wire; /* what this side has written and the other has not read */
	struct stream streams[2 * CHANNELS + 3];
	uint32_t counted, count_seen; /* messages */
	unsigned more;
};

static uint64_t now;

static struct side *side_of(struct link *l)
{
	return container_of(l, struct side, link);
}

static char byte_at(bool is_near, uint32_t number, uint64_t at)
{
	return (char)(at * 7 + at / 256 + number * 31 + is_near);
}

/* --- operations of the links --- */

static int on_message(struct link *l, uint16_t type, struct str payload)
{
	struct side *s = side_of(l);
	uint32_t v = 0;

	if (type == M_OPEN) {
		v = (uint8_t)payload.p[0];
		return link_open(l, &s->streams[v].channel, v, true, true);
	}
	must(type == M_COUNT && payload.n >= sizeof(v));
	memcpy(&v, payload.p, sizeof(v));
	check_int(v, ++s->count_seen);
	return 0;
}

static int on_data(struct link *l, struct link_channel *c, struct str bytes)
{
	struct stream *t = (struct stream *)c;

	for (size_t i = 0; i < bytes.n; i++, t->got++)
		if (bytes.p[i] != byte_at(!l->is_near, c->number, t->got))
			must(!"a byte is not the next one of its channel");
	return 0;
}

static int on_end(struct link *l, struct link_channel *c)
{
	struct stream *t = (struct stream *)c;

	check(!t->got_end);
	t->got_end = true;
	return 0;
}

static void on_stop(struct link *l, struct link_channel *c)
{
	struct stream *t = (struct stream *)c;

	check(!t->got_stop);
	t->got_stop = true;
}

static void on_more(struct link *l, struct link_channel *c)
{
	side_of(l)->more++;
	check(link_may_send(l, c) > 0);
}

static const struct link_ops ops = {
	.message = on_message, .data = on_data, .end = on_end, .stop = on_stop, .more = on_more};

/* --- the carrier --- */

static void carry_pair_init(struct side pair[2])
{
	for (int i = 0; i < 2; i++) {
		pair[i] = (struct side){.other = &pair[!i], .wire = BUF_INIT(WIRE_MAX)};
		link_init(&pair[i].link, &ops, i == 0 ? session : NULL);
	}
}

static void carry_pair_done(struct side pair[2])
{
	for (int i = 0; i < 2; i++) {
		link_done(&pair[i].link);
		buf_done(&pair[i].wire);
	}
}

static void carry_restart(struct side pair[2])
{
	for (int i = 0; i < 2; i++) {
		buf_clear(&pair[i].wire);
		must(link_restart(&pair[i].link, now) == 0);
	}
}

/* Put at most n bytes on the wire. Return whether there were any. */
static bool carry_write(struct side *s, size_t n)
{
	struct str next = link_pending(&s->link);

	next = str_prefix(next, MIN(n, next.n));
	if (next.n == 0)
		return false;
	must(buf_add_str(&s->wire, next) == 0);
	link_written(&s->link, next.n, now);
	return true;
}

/* Deliver at most n bytes of what s has written. */
static void carry_deliver(struct side *s, size_t n)
{
	struct str bytes = buf_str(&s->wire);

	bytes = str_prefix(bytes, MIN(n, bytes.n));
	if (bytes.n == 0)
		return;
	check_int(link_feed(&s->other->link, bytes, now), 0);
	buf_consume(&s->wire, bytes.n);
}

/* Move everything both ways until nothing is left. each: how long one way takes. */
static void carry_all(struct side pair[2], uint64_t each)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (int i = 0; i < 2; i++)
			while (carry_write(&pair[i], SIZE_MAX))
				moved = true;
		now += each;
		for (int i = 0; i < 2; i++)
			carry_deliver(&pair[i], SIZE_MAX);
	}
}

static void start_pair(struct side pair[2])
{
	carry_pair_init(pair);
	carry_restart(pair);
	carry_all(pair, 0);
}

/* --- what the owners do --- */

static struct stream *stream_open(struct side *s)
{
	uint32_t number = link_new_number(&s->link);
	struct stream *t = &s->streams[number];
	char name = (char)number;

	must(link_open(&s->link, &t->channel, number, true, true) == 0);
	must(link_send(&s->link, M_OPEN, str_make(&name, 1)) == 0);
	return t;
}

/* Send at most n bytes; return how many. */
static size_t stream_send(struct side *s, struct stream *t, size_t n)
{
	static char bytes[LINK_MAX_DATA];

	n = MIN(n, link_may_send(&s->link, &t->channel));
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(s->link.is_near, t->channel.number, t->sent + i);
	must(link_data(&s->link, &t->channel, str_make(bytes, n)) == 0);
	t->sent += n;
	return n;
}

static void stream_consume(struct side *s, struct stream *t, size_t n)
{
	must(link_consumed(&s->link, &t->channel, MIN(n, (size_t)t->channel.held)) == 0);
}

static void stream_end(struct side *s, struct stream *t)
{
	t->has_ended |= t->channel.sends;
	must(link_end(&s->link, &t->channel) == 0);
}

static void stream_stop(struct side *s, struct stream *t)
{
	t->has_stopped |= t->channel.receives;
	must(link_stop(&s->link, &t->channel) == 0);
}

static void count_message(struct side *s)
{
	static char bytes[5000];
	uint32_t v = ++s->counted;

	memcpy(bytes, &v, sizeof(v));
	must(link_send(&s->link, M_COUNT,
		     str_make(bytes, sizeof(v) + rand_below(sizeof(bytes) - sizeof(v)))) == 0);
}

/* --- every byte arrives once --- */

static void check_bounds(const struct side *s)
{
	check(HASH_COUNT(s->link.channels) <= LINK_MAX_CHANNELS);
	check(buf_len(&s->link.kept) <= LINK_MAX_KEPT);
	check(s->link.flight <= LINK_FLIGHT_MAX);
	check(s->link.grown <= LINK_GROWN_MAX);
	for (const struct link_channel *c = s->link.channels; c; c = c->hh.next) {
		check(c->held <= c->window);
		check(c->window <= LINK_WINDOW_MAX);
	}
}

/* An owner closes a channel when both directions are over. */
static void stream_settle(struct side *s, struct stream *t)
{
	if (!link_is_open(&t->channel) || t->channel.sends || t->channel.receives)
		return;
	link_close(&s->link, &t->channel);
	t->is_over = true;
}

static void step_of_owner(struct side *s)
{
	struct stream *t = &s->streams[1 + rand_below(ARRAY_SIZE(s->streams) - 1)];

	if (!link_is_open(&t->channel)) {
		if (rand_below(8) == 0 && link_new_number(&s->link) <= CHANNELS)
			t = stream_open(s);
		return;
	}
	switch (rand_below(24)) {
	case 0:
		stream_end(s, t);
		break;
	case 1:
		stream_stop(s, t);
		break;
	case 2:
		t->is_stalled = !t->is_stalled;
		break;
	case 3:
		count_message(s);
		break;
	case 4 ... 11:
		if (!t->is_stalled)
			stream_consume(s, t, rand_below(2 * LINK_MAX_DATA));
		break;
	default:
		(void)stream_send(s, t, rand_below(2 * LINK_MAX_DATA));
	}
	stream_settle(s, t);
}

static void step_of_carrier(struct side pair[2])
{
	struct side *s = &pair[rand_below(2)];

	now += rand_below(20 * MSEC);
	if (rand_below(100) == 0)
		carry_restart(pair);
	else if (rand_below(30) == 0)
		link_ping(&s->link);
	else if (rand_below(2))
		(void)carry_write(s, 1 + rand_below(rand_below(2) ? 20 : 100000));
	else
		carry_deliver(s, 1 + rand_below(rand_below(2) ? 20 : 100000));
}

/* Let everything end. */
static void finish(struct side pair[2])
{
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < ARRAY_SIZE(pair[i].streams); k++)
			if (link_is_open(&pair[i].streams[k].channel))
				stream_end(&pair[i], &pair[i].streams[k]);
	carry_all(pair, MSEC);
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < ARRAY_SIZE(pair[i].streams); k++)
			stream_settle(&pair[i], &pair[i].streams[k]);
}

static void check_arrived(const struct side *s)
{
	check_int(buf_len(&s->link.kept), 0);
	check_int(HASH_COUNT(s->link.channels), 0);
	check_int(s->count_seen, s->other->counted);
	check(s->link.received == s->other->link.acked);
	for (size_t k = 0; k < ARRAY_SIZE(s->streams); k++) {
		const struct stream *t = &s->streams[k], *from = &s->other->streams[k];

		/* A reader who wants no more may have missed the rest, and nobody else. */
		check(t->got == from->sent || (t->has_stopped && t->got < from->sent));
		check(t->got_end == (from->has_ended && !t->has_stopped) || t->has_stopped);
		check(!t->got_stop || from->has_stopped);
	}
}

static void test_every_byte_arrives_once(void)
{
	static struct side pair[2];

	for (unsigned round = tap_rounds(ROUNDS); round > 0 && tap_ok_now; round--) {
		carry_pair_init(pair);
		carry_restart(pair);
		for (int i = 0; i < STEPS && tap_ok_now; i++) {
			step_of_owner(&pair[rand_below(2)]);
			step_of_carrier(pair);
			check_bounds(&pair[0]);
			check_bounds(&pair[1]);
		}
		carry_restart(pair);
		finish(pair);
		check_arrived(&pair[0]);
		check_arrived(&pair[1]);
		carry_pair_done(pair);
	}
}

/* --- windows --- */

static void test_a_stalled_reader_stops_its_own_channel(void)
{
	static struct side pair[2];
	struct stream *slow, *fast;
	size_t sent = 0;

	start_pair(pair);
	slow = stream_open(&pair[0]);
	fast = stream_open(&pair[0]);
	carry_all(pair, 10);
	while (stream_send(&pair[0], slow, SIZE_MAX) > 0)
		carry_all(pair, 10);
	check_int(pair[1].streams[2].channel.held, LINK_WINDOW);
	while (sent < 4 * 1024 * 1024) {
		size_t n = stream_send(&pair[0], fast, SIZE_MAX);

		must(n > 0);
		sent += n;
		carry_all(pair, 10);
		stream_consume(&pair[1], &pair[1].streams[4], SIZE_MAX);
		carry_all(pair, 10);
	}
	check_int(link_may_send(&pair[0].link, &slow->channel), 0);
	pair[0].more = 0;
	stream_consume(&pair[1], &pair[1].streams[2], LINK_WINDOW);
	carry_all(pair, 10);
	check_int(pair[0].more, 1);
	check_int(link_may_send(&pair[0].link, &slow->channel), LINK_MAX_DATA);
	carry_pair_done(pair);
}

static void test_a_message_waits_for_little_data(void)
{
	static struct side pair[2];
	size_t before;

	start_pair(pair);
	for (int i = 0; i < CHANNELS / 2; i++)
		(void)stream_open(&pair[0]);
	carry_all(pair, 10);
	for (uint32_t n = 2; n <= CHANNELS; n += 2)
		while (stream_send(&pair[0], &pair[0].streams[n], SIZE_MAX) > 0)
			;
	before = buf_len(&pair[0].link.kept);
	check(before <= LINK_FLIGHT + 1000);
	count_message(&pair[0]);
	/* What is answered at once does not wait for any of it, but for one write. */
	(void)carry_write(&pair[0], 100);
	pair[0].link.owes_pong = true;
	(void)carry_write(&pair[0], SIZE_MAX);
	(void)carry_write(&pair[0], SIZE_MAX);
	check(!pair[0].link.owes_pong);
	check(buf_len(&pair[0].wire) <= 2 * LINK_MAX_DATA);
	carry_pair_done(pair);
}

/* Send n bytes to a reader who takes them at once, over a way of that length. */
static void send_over(struct side pair[2], uint64_t each, size_t n)
{
	struct stream *from = stream_open(&pair[0]), *to = &pair[1].streams[from - pair[0].streams];

	carry_all(pair, each);
	while (from->sent < n) {
		while (stream_send(&pair[0], from, n) > 0)
			;
		while (carry_write(&pair[0], SIZE_MAX))
			;
		now += each;
		carry_deliver(&pair[0], SIZE_MAX);
		stream_consume(&pair[1], to, SIZE_MAX);
		while (carry_write(&pair[1], SIZE_MAX))
			;
		now += each;
		carry_deliver(&pair[1], SIZE_MAX);
	}
}

static void test_windows_grow_with_the_way(void)
{
	static struct side pair[2];

	start_pair(pair);
	send_over(pair, 40 * MSEC, 64 * 1024 * 1024);
	check_int(pair[1].streams[2].channel.window, LINK_WINDOW_MAX);
	check(pair[0].link.flight > 4 * LINK_FLIGHT);
	check_bounds(&pair[0]);
	check_bounds(&pair[1]);
	/* What grew is given back. */
	check_int(pair[1].link.grown, LINK_WINDOW_MAX - LINK_WINDOW);
	link_close(&pair[1].link, &pair[1].streams[2].channel);
	check_int(pair[1].link.grown, 0);
	carry_pair_done(pair);
}

/* Large enough that not each piece has to be waited for, and no more. */
static void test_windows_grow_little_on_a_short_way(void)
{
	static struct side pair[2];

	start_pair(pair);
	send_over(pair, 100, 64 * 1024 * 1024);
	check_int(pair[1].streams[2].channel.window, LINK_FLIGHT);
	check_int(pair[1].link.grown, LINK_FLIGHT - LINK_WINDOW);
	check_bounds(&pair[0]);
	check_bounds(&pair[1]);
	carry_pair_done(pair);
}

static void test_all_windows_together_are_bounded(void)
{
	static struct side pair[2];

	start_pair(pair);
	for (int i = 0; i < 10; i++)
		send_over(pair, 40 * MSEC, 32 * 1024 * 1024);
	check(pair[1].link.grown <= LINK_GROWN_MAX);
	check(pair[1].link.grown > LINK_GROWN_MAX - LINK_WINDOW_MAX);
	carry_pair_done(pair);
}

static void test_channels_are_bounded(void)
{
	static struct link_channel channels[LINK_MAX_CHANNELS + 1];
	static struct link l;
	uint32_t n = 0;

	link_init(&l, &ops, session);
	for (; n < LINK_MAX_CHANNELS; n++)
		must(link_open(&l, &channels[n], 2 * n + 1, true, true) == 0);
	check_int(link_open(&l, &channels[n], 2 * n + 1, true, true), -E2BIG);
	link_close(&l, &channels[0]);
	link_close(&l, &channels[0]);
	check_int(link_open(&l, &channels[n], 1, true, true), -EPROTO);
	check_int(link_open(&l, &channels[n], 0, true, true), -EPROTO);
	check_int(link_open(&l, &channels[n], UINT32_MAX, true, true), -EPROTO);
	/* That number was used, although there was no room for it. */
	check_int(link_open(&l, &channels[n], 2 * n + 1, true, true), -EPROTO);
	check_int(link_open(&l, &channels[n], 2 * n + 3, true, true), 0);
	link_done(&l);
}

static void test_what_waits_is_bounded(void)
{
	static struct side pair[2];
	static char text[LINK_MAX_PAYLOAD];
	int r = 0, n = 0;

	start_pair(pair);
	check_int(link_send(&pair[0].link, 9, str_make(text, sizeof(text) - 1)), -E2BIG);
	for (; r == 0 && n < 100; n++)
		r = link_send(&pair[0].link, 9, str_make(text, sizeof(text) - 2));
	check_int(r, -E2BIG);
	check(n > 4);
	check(buf_len(&pair[0].link.kept) <= LINK_MAX_KEPT);
	carry_pair_done(pair);
}

int main(void)
{
	seeded_begin();
	run_test(test_every_byte_arrives_once);
	run_test(test_a_stalled_reader_stops_its_own_channel);
	run_test(test_a_message_waits_for_little_data);
	run_test(test_windows_grow_with_the_way);
	run_test(test_windows_grow_little_on_a_short_way);
	run_test(test_all_windows_together_are_bounded);
	run_test(test_channels_are_bounded);
	run_test(test_what_waits_is_bounded);
	return tap_done();
}
