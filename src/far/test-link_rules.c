/* SPDX-License-Identifier: Apache-2.0 */
/* What breaks the rules is refused: frame by frame, and how a stream is taken up again. The other
 * end is a hostile one, whose bytes are written here. */
#include "far/link.h"
#include "ipc/wire.h"
#include "tap.h"

#include <errno.h>

enum { COUNTED = 7 }; /* the type of our messages */

static const uint8_t session[LINK_SESSION] = "sixteen bytes...";
static unsigned data_n, end_n, stop_n, more_n, message_n;

static int on_message(struct link *l, uint16_t type, struct str payload)
{
	message_n++;
	return 0;
}

static int on_data(struct link *l, struct link_channel *c, struct str bytes)
{
	data_n += (unsigned)bytes.n;
	return 0;
}

static int on_end(struct link *l, struct link_channel *c)
{
	end_n++;
	return 0;
}

static void on_stop(struct link *l, struct link_channel *c)
{
	stop_n++;
}

static void on_more(struct link *l, struct link_channel *c)
{
	more_n++;
}

static const struct link_ops ops = {
	.message = on_message, .data = on_data, .end = on_end, .stop = on_stop, .more = on_more};

/* --- bytes of the other end --- */

/* Add a frame whose header says that its payload has `said` bytes. */
static void add_frame(struct buf *b, unsigned type, size_t said, struct str payload)
{
	struct wire_out w = wire_out(b);

	wire_put_u32(&w, (uint32_t)said);
	wire_put_u32(&w, type);
	must(w.error == 0 && buf_add_str(b, payload) == 0);
}

static int feed(struct link *l, unsigned type, struct str payload)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);

	add_frame(&b, type, payload.n, payload);
	return link_feed(l, buf_str(&b), 1);
}

static int feed_hello(struct link *l, uint32_t version, const char *from, uint64_t received)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1024);
	struct wire_out w = wire_out(&b);

	wire_put_u32(&w, version);
	must(buf_add(&b, from, LINK_SESSION) == 0);
	wire_put_int(&w, received, 8);
	return feed(l, LINK_HELLO, buf_str(&b));
}

static int feed_ack(struct link *l, uint64_t received)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1024);
	struct wire_out w = wire_out(&b);

	wire_put_int(&w, received, 8);
	return feed(l, LINK_ACK, buf_str(&b));
}

/* Write everything that waits. */
static void write_all(struct link *l)
{
	struct str next;

	while ((next = link_pending(l)).n > 0)
		link_written(l, next.n, 1);
}

static void start_near(struct link *l)
{
	link_init(l, &ops, session);
	must(link_restart(l, 1) == 0);
	must(feed_hello(l, LINK_VERSION, (const char *)session, 0) == 0);
	write_all(l);
}

/* --- frames --- */

/* Channels of the near end: 2 is ours, 1 is the other end's, 3 was closed. */
static void test_malformed_frames(void)
{
	static const struct {
		const char *what;
		unsigned type;
		struct str payload;
		int want;
	} rows[] = {
		{"a type that is not known", 0, STR(""), -EPROTO},
		{"a type of carriers that is not known", 5, STR(""), -EPROTO},
		{"a type that counts and is not known", 21, STR(""), -EPROTO},
		{"the largest type", 255, STR(""), -EPROTO},
		{"bytes that are zero", 0x10000 | LINK_PING, STR(""), -EPROTO},
		{"a second hello", LINK_HELLO, STR("\1\0\0\0sixteen bytes...\0\0\0\0\0\0\0\0"),
			-EPROTO},
		{"an acknowledgement that is short", LINK_ACK, STR("\0\0\0\0\0\0\0"), -EPROTO},
		{"one that is long", LINK_ACK, STR("\0\0\0\0\0\0\0\0\0"), -EPROTO},
		{"one of what was not sent", LINK_ACK, STR("\1\0\0\0\0\0\0\0"), -EPROTO},
		{"one of nothing", LINK_ACK, STR("\0\0\0\0\0\0\0\0"), 0},
		{"a ping with a payload", LINK_PING, STR("x"), -EPROTO},
		{"a pong with a payload", LINK_PONG, STR("x"), -EPROTO},
		{"a pong without a ping", LINK_PONG, STR(""), 0},
		{"a message without a type", LINK_MESSAGE, STR("\1"), -EPROTO},
		{"a message of nothing", LINK_MESSAGE, STR(""), -EPROTO},
		{"a message", LINK_MESSAGE, STR("\1\0"), 0},
		{"data without a channel", LINK_DATA, STR("\2\0\0"), -EPROTO},
		{"no data", LINK_DATA, STR("\2\0\0\0"), -EPROTO},
		{"data", LINK_DATA, STR("\2\0\0\0x"), 0},
		{"data of channel 0", LINK_DATA, STR("\0\0\0\0x"), -EPROTO},
		{"data of a channel that is not open yet", LINK_DATA, STR("\5\0\0\0x"), -EPROTO},
		{"the same for one of ours", LINK_DATA, STR("\4\0\0\0x"), -EPROTO},
		{"data of the last channel", LINK_DATA, STR("\377\377\377\377x"), -EPROTO},
		{"data of a closed channel", LINK_DATA, STR("\3\0\0\0x"), 0},
		{"no data of a closed channel", LINK_DATA, STR("\3\0\0\0"), -EPROTO},
		{"an end with more behind it", LINK_END, STR("\2\0\0\0x"), -EPROTO},
		{"an end that is short", LINK_END, STR("\2\0"), -EPROTO},
		{"an end of a channel that is not open yet", LINK_END, STR("\7\0\0\0"), -EPROTO},
		{"an end of a closed channel", LINK_END, STR("\3\0\0\0"), 0},
		{"a stop with more behind it", LINK_STOP, STR("\2\0\0\0x"), -EPROTO},
		{"a stop of a channel that is not open yet", LINK_STOP, STR("\7\0\0\0"), -EPROTO},
		{"a credit of nothing", LINK_CREDIT, STR("\2\0\0\0\0\0\0\0"), -EPROTO},
		{"a credit that is short", LINK_CREDIT, STR("\2\0\0\0\1\0\0"), -EPROTO},
		{"a credit that is long", LINK_CREDIT, STR("\2\0\0\0\1\0\0\0\0"), -EPROTO},
		{"a credit", LINK_CREDIT, STR("\2\0\0\0\1\0\0\0"), 0},
		{"a credit above every window", LINK_CREDIT, STR("\2\0\0\0\1\0\x80\0"), -EPROTO},
		{"a credit for a closed channel", LINK_CREDIT, STR("\3\0\0\0\377\377\377\377"), 0},
		{"a credit for one that is not open yet", LINK_CREDIT, STR("\5\0\0\0\1\0\0\0"),
			-EPROTO},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct link_channel ours, theirs, closed;
		struct link l;
		int r;

		start_near(&l);
		must(link_open(&l, &theirs, 1, true, true) == 0);
		must(link_open(&l, &ours, link_new_number(&l), true, true) == 0);
		must(link_open(&l, &closed, 3, true, true) == 0);
		link_close(&l, &closed);
		r = feed(&l, rows[i].type, rows[i].payload);
		if (r != rows[i].want)
			tap_fail("%s: %d", rows[i].what, r);
		link_done(&l);
	}
}

static void test_data_is_bounded(void)
{
	static char bytes[4 + LINK_MAX_DATA + 1] = {2};
	struct link_channel c;
	struct link l;

	start_near(&l);
	must(link_open(&l, &c, 2, true, true) == 0);
	check_int(feed(&l, LINK_DATA, str_make(bytes, sizeof(bytes))), -EPROTO);
	link_done(&l);
	start_near(&l);
	must(link_open(&l, &c, 2, true, true) == 0);
	for (size_t n = 0; n < LINK_WINDOW; n += LINK_MAX_DATA)
		check_int(feed(&l, LINK_DATA, str_make(bytes, sizeof(bytes) - 1)), 0);
	check_int(c.held, LINK_WINDOW);
	check_int(feed(&l, LINK_DATA, str_make(bytes, 4 + 1)), -EPROTO);
	link_done(&l);
}

/* A frame is refused by its header: nobody waits for what will not come. */
static void test_a_long_frame_is_refused_at_once(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1024);
	struct link l;

	start_near(&l);
	add_frame(&b, LINK_MESSAGE, LINK_MAX_PAYLOAD + 1, STR_NULL);
	check_int(link_feed(&l, buf_str(&b), 1), -EPROTO);
	link_done(&l);
}

static void test_a_long_message_comes_in_pieces(void)
{
	static char bytes[LINK_MAX_PAYLOAD] = "\1";
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * sizeof(bytes));
	struct link l;

	message_n = 0;
	start_near(&l);
	add_frame(&b, LINK_MESSAGE, sizeof(bytes), str_make(bytes, sizeof(bytes)));
	while (buf_len(&b)) {
		size_t n = MIN(buf_len(&b), (size_t)100000);

		check_int(message_n, 0);
		check_int(link_feed(&l, str_make(buf_data(&b), n), 1), 0);
		buf_consume(&b, n);
	}
	check_int(message_n, 1);
	link_done(&l);
}

static void test_nothing_comes_after_an_end(void)
{
	struct link_channel c;
	struct link l;

	data_n = end_n = stop_n = 0;
	start_near(&l);
	must(link_open(&l, &c, 2, true, true) == 0);
	for (int i = 0; i < 2; i++) {
		check_int(feed(&l, LINK_END, STR("\2\0\0\0")), 0);
		check_int(feed(&l, LINK_DATA, STR("\2\0\0\0x")), 0);
		check_int(feed(&l, LINK_STOP, STR("\2\0\0\0")), 0);
	}
	check_int(end_n, 1);
	check_int(stop_n, 1);
	check_int(data_n, 0);
	check_int(link_may_send(&l, &c), 0);
	link_done(&l);
}

/* It was named, and could not be opened here, or was not wanted. */
static void test_a_channel_that_was_skipped_is_ignored(void)
{
	struct link_channel c;
	struct link l;

	data_n = 0;
	start_near(&l);
	check_int(feed(&l, LINK_DATA, STR("\7\0\0\0x")), -EPROTO);
	check_int(link_skip(&l, 7), 0);
	check_int(feed(&l, LINK_DATA, STR("\7\0\0\0x")), 0);
	check_int(feed(&l, LINK_DATA, STR("\5\0\0\0x")), 0);
	check_int(feed(&l, LINK_END, STR("\7\0\0\0")), 0);
	check_int(data_n, 0);
	check_int(link_skip(&l, 7), -EPROTO);
	check_int(link_skip(&l, 0), -EPROTO);
	check_int(link_open(&l, &c, 7, true, true), -EPROTO);
	link_done(&l);
}

/* Of pings without end, one answer is owed. */
static void test_pings_fill_nothing(void)
{
	struct link l;

	start_near(&l);
	for (int i = 0; i < 100000; i++)
		must(feed(&l, LINK_PING, STR_NULL) == 0);
	check_int(link_pending(&l).n, LINK_HEADER);
	write_all(&l);
	check_int(link_pending(&l).n, 0);
	link_done(&l);
}

/* --- hello, and what is said of what was received --- */

static void test_hello_comes_first(void)
{
	struct link l;

	link_init(&l, &ops, session);
	must(link_restart(&l, 1) == 0);
	check_int(feed(&l, LINK_PING, STR_NULL), -EPROTO);
	link_done(&l);
}

static void test_wrong_hellos(void)
{
	struct link l;

	start_near(&l);
	must(link_restart(&l, 1) == 0);
	check_int(feed_hello(&l, LINK_VERSION + 1, (const char *)session, 0), -EPROTO);
	check_int(feed_hello(&l, LINK_VERSION, "sixteen bytes,,,", 0), -EPROTO);
	check_int(feed(&l, LINK_HELLO, STR("\1\0\0\0sixteen bytes...")), -EPROTO);
	check_int(feed_hello(&l, LINK_VERSION, (const char *)session, 0), 0);
	check_int(feed_hello(&l, LINK_VERSION, (const char *)session, 0), -EPROTO);
	link_done(&l);
}

/* Who has not heard the first carrier's session is nobody's next carrier. */
static void test_the_far_end_keeps_to_its_session(void)
{
	struct link l;

	link_init(&l, &ops, NULL);
	must(link_restart(&l, 1) == 0);
	check_int(link_pending(&l).n, 0);
	check_int(feed_hello(&l, LINK_VERSION, "the first of all", 0), 0);
	write_all(&l);
	must(link_restart(&l, 1) == 0);
	check_int(feed_hello(&l, LINK_VERSION, "another of these", 0), -EPROTO);
	check_int(link_pending(&l).n, 0);
	must(link_restart(&l, 1) == 0);
	check_int(feed_hello(&l, LINK_VERSION, "the first of all", 0), 0);
	check(link_pending(&l).n > 0);
	link_done(&l);
}

/* Make a link that has written two messages of 10 and 20 bytes, and queued another. */
static void start_with_messages(struct link *l)
{
	static const char bytes[20] = "\377\377\377\177 like a header";

	start_near(l);
	must(link_send(l, COUNTED, str_make(bytes, 10 - 2)) == 0);
	must(link_send(l, COUNTED, str_make(bytes, 20 - 2)) == 0);
	write_all(l);
	must(link_send(l, COUNTED, str_make(bytes, 10)) == 0);
}

static void test_what_was_received_is_whole_frames(void)
{
	enum { FIRST = LINK_HEADER + 10, BOTH = FIRST + LINK_HEADER + 20 };

	for (uint64_t said = 0; said <= BOTH + 100; said++) {
		const int want = said == 0 || said == FIRST || said == BOTH ? 0 : -EPROTO;
		struct link l;

		start_with_messages(&l);
		check_int(feed_ack(&l, said), want);
		link_done(&l);
		start_with_messages(&l);
		must(link_restart(&l, 1) == 0);
		check_int(feed_hello(&l, LINK_VERSION, (const char *)session, said), want);
		if (want == 0)
			write_all(&l);
		link_done(&l);
	}
}

static void test_nothing_is_received_less_than_before(void)
{
	struct link l;

	start_with_messages(&l);
	check_int(feed_ack(&l, LINK_HEADER + 10), 0);
	check_int(feed_ack(&l, 0), -EPROTO);
	check_int(feed_ack(&l, UINT64_MAX), -EPROTO);
	must(link_restart(&l, 1) == 0);
	check_int(feed_hello(&l, LINK_VERSION, (const char *)session, 0), -EPROTO);
	check_int(feed_hello(&l, LINK_VERSION, (const char *)session, UINT64_MAX), -EPROTO);
	check_int(feed_hello(&l, LINK_VERSION, (const char *)session, LINK_HEADER + 10), 0);
	link_done(&l);
}

int main(void)
{
	run_test(test_malformed_frames);
	run_test(test_data_is_bounded);
	run_test(test_a_long_frame_is_refused_at_once);
	run_test(test_a_long_message_comes_in_pieces);
	run_test(test_nothing_comes_after_an_end);
	run_test(test_a_channel_that_was_skipped_is_ignored);
	run_test(test_pings_fill_nothing);
	run_test(test_hello_comes_first);
	run_test(test_wrong_hellos);
	run_test(test_the_far_end_keeps_to_its_session);
	run_test(test_what_was_received_is_whole_frames);
	run_test(test_nothing_is_received_less_than_before);
	return tap_done();
}
