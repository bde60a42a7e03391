/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"
#include "tap.h"

#include <errno.h>

static void a_sandbox_is_read(void)
{
	struct answer_sandbox s;

	check_int(answer_read_sandbox(
			  STR("{\"templateID\":\"base\",\"sandboxID\":\"i1-x\",\"clientID\":\"c\","
			      "\"envdVersion\":\"0.6.4\",\"envdAccessToken\":\"ea_1\","
			      "\"domain\":\"eu.e2b.app\",\"more\":[]}"),
			  &s),
		0);
	check_z(s.id, "i1-x");
	check_z(s.token, "ea_1");
	check_z(s.domain, "eu.e2b.app");
	check_int(answer_read_sandbox(STR("{\"sandboxID\":\"i1\",\"domain\":null}"), &s), 0);
	check_z(s.token, "");
	check_z(s.domain, "");
}

static void no_sandbox_is_read(void)
{
	static const char *const rows[] = {"", "{}", "[]", "null", "\"i1\"", "{\"sandboxID\":1}",
		"{\"sandboxID\":\"\"}", "{\"sandboxID\":\"../x\"}", "{\"sandboxID\":\"a b\"}",
		"{\"sandboxID\":\"i1\",\"envdAccessToken\":\"a\\r\\nb\"}",
		"{\"sandboxID\":\"i1\",\"envdAccessToken\":\"a b\"}",
		"{\"sandboxID\":\"i1\",\"domain\":\"a\\nb\"}", "{\"sandboxID\":\"i1\"",
		"{\"sandboxID\":\"i1\"} x"};
	struct answer_sandbox s;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(2 * ANSWER_MAX);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_int(answer_read_sandbox(str_from(rows[i]), &s), -EPROTO);
	must(buf_printf(&text, "{\"sandboxID\":\"i1\",\"envdAccessToken\":\"%0*d\"}",
		     ANSWER_TOKEN_MAX + 1, 0) == 0);
	check_int(answer_read_sandbox(buf_str(&text), &s), -EPROTO);
	buf_clear(&text);
	must(buf_printf(&text, "{\"sandboxID\":\"i1\"}%*s", ANSWER_MAX, "") == 0);
	check_int(answer_read_sandbox(buf_str(&text), &s), -EPROTO);
}

static int gather(void *user, const char *id)
{
	return buf_printf(user, "%s ", id);
}

/* A service that does not look for metadata lists everybody's. */
static void only_ours_are_found(void)
{
	_cleanup_(buf_donep) struct buf found = BUF_INIT(1024);

	check_int(answer_each_sandbox(
			  STR("[{\"sandboxID\":\"a\"},{\"sandboxID\":\"b\",\"metadata\":{}},"
			      "{\"sandboxID\":\"c\",\"metadata\":{\"k\":\"v\"}},7,"
			      "{\"sandboxID\":\"d\",\"metadata\":{\"k\":\"vv\"}},"
			      "{\"sandboxID\":\"e\",\"metadata\":{\"l\":\"v\",\"k\":\"v\"}}]"),
			  "k", "v", gather, &found),
		0);
	check_str(buf_str(&found), "c e ");
	check_int(answer_each_sandbox(STR("[]"), "k", "v", gather, &found), 0);
	check_int(answer_each_sandbox(STR("{}"), "k", "v", gather, &found), -EPROTO);
	check_int(answer_each_sandbox(STR("[{\"sandboxID\":\"/\",\"metadata\":{\"k\":\"v\"}}]"),
			  "k", "v", gather, &found),
		-EPROTO);
}

static void messages_are_printable(void)
{
	char said[ANSWER_TEXT_MAX + 1];

	answer_message(STR("{\"code\":404,\"message\":\"no \\u001b[31msuch\\n\"}"), said);
	check_z(said, "no ?[31msuch?");
	answer_message(STR("<html>"), said);
	check_z(said, "");
	answer_message(STR("{\"message\":[1]}"), said);
	check_z(said, "");
}

static void add_frame(struct buf *out, unsigned flags, const char *text)
{
	size_t n = strlen(text);
	const unsigned char head[] = {(unsigned char)flags, (unsigned char)(n >> 24),
		(unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};

	must(buf_add(out, head, sizeof(head)) == 0 && buf_add_str(out, str_from(text)) == 0);
}

/* Add what the next events are to ret. Return as answer_events_next(). */
static int take_events(struct answer_events *e, struct buf *ret)
{
	static const char *const names[] = {"nothing", "start", "out", "err", "end", "over"};
	enum answer_event event;
	int r;

	while ((r = answer_events_next(e, &event)) > 0)
		must(buf_printf(ret, "%s:%u:%.*s:%s\n", names[event],
			     event == ANSWER_START || event == ANSWER_END ? e->number : 0,
			     STR_FMT(buf_str(&e->data)), e->text) == 0);
	return r;
}

#define START "{\"event\":{\"start\":{\"pid\":42}}}"
#define END "{\"event\":{\"end\":{\"exitCode\":7,\"exited\":true,\"status\":\"exit status 7\"}}}"

static void events_come_in_pieces(void)
{
	_cleanup_(buf_donep) struct buf all = BUF_INIT(65536);

	add_frame(&all, 0, START);
	add_frame(&all, 0, "{\"event\":{\"data\":{\"stdout\":\"b3V0\"}}}");
	add_frame(&all, 0, "{\"event\":{\"keepalive\":{}}}");
	add_frame(&all, 0, "{\"event\":{\"data\":{\"stderr\":\"ZXJy\"}}}");
	add_frame(&all, 0, END);
	add_frame(&all, 2, "{}");
	for (size_t piece = 1; piece <= buf_len(&all); piece += 1 + piece / 4) {
		_cleanup_(answer_events_donep) struct answer_events e = ANSWER_EVENTS_INIT;
		_cleanup_(buf_donep) struct buf said = BUF_INIT(65536);

		for (size_t at = 0; at < buf_len(&all); at += piece) {
			struct str rest = str_from_index(buf_str(&all), at);

			check_int(answer_events_feed(&e, str_prefix(rest, piece)), 0);
			check_int(take_events(&e, &said), 0);
		}
		check_str(buf_str(&said),
			"start:42::\nout:0:out:\nnothing:0::\nerr:0:err:\nend:7::\nover:0::\n");
	}
}

static void ends_are_told(void)
{
	static const struct {
		const char *end;
		unsigned flags;
		const char *said;
	} rows[] = {
		{"{\"event\":{\"end\":{\"exited\":true}}}", 0, "end:0::\n"},
		{"{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\"}}}", 0,
			"end:255::\n"},
		{"{\"event\":{\"end\":{\"exitCode\":0,\"exited\":false}}}", 0, "end:255::\n"},
		{"{\"event\":{\"end\":{\"exitCode\":256,\"exited\":true,\"error\":\"e\\n\"}}}", 0,
			"end:255::e?\n"},
		{"{\"error\":{\"code\":\"not_found\",\"message\":\"no \\u0007\"}}", 2,
			"over:0::no ?\n"},
		{"{\"error\":{\"code\":\"unavailable\"}}", 2, "over:0::unavailable\n"},
		{"{\"error\":{}}", 2, "over:0::an error without a word\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(answer_events_donep) struct answer_events e = ANSWER_EVENTS_INIT;
		_cleanup_(buf_donep) struct buf said = BUF_INIT(65536), all = BUF_INIT(65536);

		add_frame(&all, 0, START);
		add_frame(&all, rows[i].flags, rows[i].end);
		check_int(answer_events_feed(&e, buf_str(&all)), 0);
		check_int(take_events(&e, &said), 0);
		check_str(str_from_index(buf_str(&said), strlen("start:42::\n")), rows[i].said);
	}
}

static void what_is_no_event_is_refused(void)
{
	static const struct {
		bool started;
		unsigned flags;
		const char *text;
	} rows[] = {
		{false, 0, END},
		{false, 0, "{\"event\":{\"data\":{\"stdout\":\"\"}}}"},
		{false, 0, "{\"event\":{\"keepalive\":{}}}"},
		{false, 0, "{\"event\":{\"start\":{}}}"},
		{false, 0, "{\"event\":{\"start\":{\"pid\":0}}}"},
		{false, 0, "{\"event\":{\"start\":{\"pid\":-1}}}"},
		{false, 0, "{\"event\":{\"start\":{\"pid\":4294967296}}}"},
		{false, 0, "{\"event\":{\"start\":{\"pid\":\"1\"}}}"},
		{false, 1, START},
		{false, 4, START},
		{true, 0, START},
		{true, 0, ""},
		{true, 0, "x"},
		{true, 0, "[]"},
		{true, 0, "{}"},
		{true, 0, "{\"event\":{}}"},
		{true, 0, "{\"event\":{\"data\":{}}}"},
		{true, 0, "{\"event\":{\"data\":{\"stdout\":1}}}"},
		{true, 0, "{\"event\":{\"data\":{\"stdout\":\"b\"}}}"},
		{true, 0, "{\"event\":{\"data\":{\"stdout\":\"b 3V0\"}}}"},
		{true, 0, "{\"event\":{\"data\":{\"pty\":\"b3V0\"}}}"},
		{true, 0, "{\"event\":{\"end\":{\"exitCode\":\"0\"}}}"},
		{true, 2, "{\"error\":\"x\"}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(answer_events_donep) struct answer_events e = ANSWER_EVENTS_INIT;
		_cleanup_(buf_donep) struct buf said = BUF_INIT(65536), all = BUF_INIT(65536);

		if (rows[i].started)
			add_frame(&all, 0, START);
		add_frame(&all, rows[i].flags, rows[i].text);
		check_int(answer_events_feed(&e, buf_str(&all)), 0);
		check_int(take_events(&e, &said), -EPROTO);
		check_str(buf_str(&said), rows[i].started ? "start:42::\n" : "");
	}
}

static void nothing_follows_an_end(void)
{
	static const char *const ends[] = {END, "{}"};

	for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
		_cleanup_(answer_events_donep) struct answer_events e = ANSWER_EVENTS_INIT;
		_cleanup_(buf_donep) struct buf said = BUF_INIT(65536), all = BUF_INIT(65536);

		add_frame(&all, 0, START);
		add_frame(&all, 2 * i, ends[i]);
		add_frame(&all, 0, "{\"event\":{\"data\":{\"stdout\":\"b3V0\"}}}");
		check_int(answer_events_feed(&e, buf_str(&all)), 0);
		check_int(take_events(&e, &said), -EPROTO);
	}
}

static void frames_are_bounded(void)
{
	_cleanup_(answer_events_donep) struct answer_events e = ANSWER_EVENTS_INIT;
	static const char huge[] = {0, 0x7f, 0, 0, 0};
	enum answer_event event;
	char *big = calloc(1, 3 * ANSWER_MAX);

	must(big);
	check_int(answer_events_feed(&e, str_make(huge, sizeof(huge))), 0);
	check_int(answer_events_next(&e, &event), -EPROTO);
	check_int(answer_events_feed(&e, str_make(big, 3 * ANSWER_MAX)), -E2BIG);
	free(big);
}

int main(void)
{
	run_test(a_sandbox_is_read);
	run_test(no_sandbox_is_read);
	run_test(only_ours_are_found);
	run_test(messages_are_printable);
	run_test(events_come_in_pieces);
	run_test(ends_are_told);
	run_test(what_is_no_event_is_refused);
	run_test(nothing_follows_an_end);
	run_test(frames_are_bounded);
	return tap_done();
}
