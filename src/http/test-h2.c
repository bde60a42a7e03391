/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a server of ours, back to back. */
#include "chunked.h"
#include "tap.h"
#include "test-side.h"

#include <errno.h>
#include <torture.h>

static struct side c, s;
static unsigned most; /* bytes of one piece */

static void begin_with(uint32_t stream_window, uint32_t window)
{
	must(side_try(&c, H2_CLIENT, stream_window, window) == 0);
	must(side_try(&s, H2_SERVER, stream_window, window) == 0);
}

static void begin(void)
{
	begin_with(128 * 1024, 1024 * 1024);
}

static void settle(void)
{
	side_settle(&c, &s, most);
}

static void done(void)
{
	side_done(&c);
	side_done(&s);
}

static struct leg *ask_with(struct http_head *h, unsigned flags)
{
	struct leg *l = leg_new(&c);

	check_int(h2_request(c.h, h, flags, l, &l->st), 0);
	l->id = l->st ? h2_stream_id(l->st) : 0;
	return l;
}

static struct leg *ask(const char *method, const char *target, unsigned flags)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;

	must(http_head_set_request(&h, str_from(method), STR("https"), STR("Example.test"), 8443,
		     str_from(target)) == 0);
	must(http_fields_add(&h.fields, STR("X-Name"), STR("Value")) == 0);
	return ask_with(&h, flags);
}

static void answer(struct leg *l, unsigned status, uint64_t length, unsigned flags)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;

	must(http_head_set_response(&h, status, STR_NULL) == 0);
	if (length != UINT64_MAX)
		http_head_set_body(&h, HTTP_BODY_LENGTH, length);
	must(http_fields_add(&h.fields, STR("Server"), STR("s")) == 0);
	check_int(h2_respond(l->st, &h, flags), 0);
}

static void put(struct leg *l, size_t n)
{
	char *at;

	must(buf_reserve(&l->out, n, &at) == 0);
	memset(at, 'x', n);
	buf_commit(&l->out, n);
	h2_wake(l->st);
}

static void trailers(struct leg *l, const char *name, const char *value)
{
	_cleanup_(http_fields_donep) struct http_fields f = HTTP_FIELDS_INIT;

	if (name)
		must(http_fields_add(&f, str_from(name), str_from(value)) == 0);
	check_int(h2_end(l->st, name ? &f : NULL), 0);
}

static void test_exchange(void)
{
	static const unsigned cuts[] = {1, 3, 50, 100000};

	for (unsigned i = 0; i < ARRAY_SIZE(cuts); i++) {
		most = cuts[i];
		begin();
		ask("GET", "/a?b", H2_END | H2_TE_TRAILERS);
		settle();
		check_z(side_log(&s), "[1 GET https://example.test:8443/a?b body0 te|x-name:Value]"
				      "(1 end 0)");
		answer(&s.legs[0], 200, 5, 0);
		put(&s.legs[0], 5);
		trailers(&s.legs[0], NULL, NULL);
		settle();
		check_z(side_log(&c),
			"[1 200 body1=5|server:s|content-length:5](1 end 5){1 NO_ERROR}");
		check_z(side_log(&s), "{1 NO_ERROR}");
		check_int(h2_streams_open(c.h) + h2_streams_open(s.h), 0);
		check(c.settings > 0);
		check_int(h2_streams_free(c.h), 100);
		done();
	}
}

static void test_bodies_and_trailers(void)
{
	begin();
	ask("POST", "/", 0);
	put(&c.legs[0], 300000);
	settle();
	trailers(&c.legs[0], "X-Sum", "1");
	settle();
	check_z(side_log(&s), "[1 POST https://example.test:8443/ body2|x-name:Value]"
			      "(1 end 300000|x-sum:1)");
	answer(&s.legs[0], 200, UINT64_MAX, 0);
	trailers(&s.legs[0], "grpc-status", "0");
	settle();
	check_z(side_log(&c), "[1 200 body2|server:s](1 end 0|grpc-status:0){1 NO_ERROR}");
	/* Headers alone, as gRPC answers an error. */
	ask("POST", "/", H2_TE_TRAILERS);
	settle();
	answer(&s.legs[1], 200, UINT64_MAX, H2_END);
	settle();
	check_z(side_log(&c), "[3 200 body0|server:s](3 end 0){3 NO_ERROR}");
	done();
}

/* Names that frame a message mean nothing in a trailer section and are left out. */
static void test_trailer_names(void)
{
	begin();
	ask("POST", "/", 0);
	trailers(&c.legs[0], "Content-Length", "7");
	settle();
	check_z(side_log(&s), "[1 POST https://example.test:8443/ body2|x-name:Value](1 end 0)");
	done();
	/* Some servers read _ as -. */
	check(!http_is_trailer_name(STR("Content_Length")));
	check(!http_is_trailer_name(STR("X_HTTP_Method-Override")));
	check(!http_is_trailer_name(STR("If_Match")));
	check(http_is_trailer_name(STR("X_Sum")) && http_is_trailer_name(STR("X_Amz_Sum")));
}

static void test_interim(void)
{
	begin();
	ask("GET", "/", H2_END);
	settle();
	answer(&s.legs[0], 103, UINT64_MAX, 0);
	answer(&s.legs[0], 103, UINT64_MAX, 0);
	answer(&s.legs[0], 204, UINT64_MAX, H2_END);
	settle();
	check_z(side_log(&c), "[1 103 body0|server:s][1 103 body0|server:s][1 204 body0|server:s]"
			      "(1 end 0){1 NO_ERROR}");
	ask("GET", "/", H2_END);
	settle();
	for (int i = 0; i < 20; i++)
		answer(&s.legs[1], 103, UINT64_MAX, 0);
	settle();
	check_int(c.legs[1].error, H2_PROTOCOL_ERROR);
	check_z(c.why, "interim responses without end");
	done();
}

static void test_bodiless(void)
{
	begin();
	ask("HEAD", "/", H2_END);
	settle();
	answer(&s.legs[0], 200, 1234, H2_END);
	settle();
	check_z(side_log(&c),
		"[1 200 body0=1234|server:s|content-length:1234](1 end 0){1 NO_ERROR}");
	ask("GET", "/", H2_END);
	settle();
	answer(&s.legs[1], 304, 99, H2_END);
	settle();
	check_z(side_log(&c), "[3 304 body0=99|server:s|content-length:99](3 end 0){3 NO_ERROR}");
	done();
}

/* The receiver gives nothing back: the sender stops at the window and goes on afterwards. */
static void test_flow_control(void)
{
	begin_with(100 * 1024, 150 * 1024);
	s.keeps = true;
	settle();
	ask("POST", "/1", 0);
	ask("POST", "/2", 0);
	put(&c.legs[0], 400000);
	put(&c.legs[1], 400000);
	settle();
	check_int(s.legs[0].received + s.legs[1].received, 150 * 1024);
	check(s.legs[0].received <= 100 * 1024 && s.legs[1].received <= 100 * 1024);
	/* What a closed stream had is the connection's again. */
	h2_consume(s.legs[0].st, s.legs[0].received);
	h2_reset(s.legs[1].st, H2_CANCEL);
	s.keeps = false;
	settle();
	check(c.legs[1].gone && c.legs[1].error == H2_CANCEL && !s.legs[1].gone);
	trailers(&c.legs[0], NULL, NULL);
	settle();
	check_int(s.legs[0].received, 400000);
	check(s.legs[0].ended);
	done();
}

/* A stream gets more credit than it has sent bytes: its window has grown. */
static void test_credit(void)
{
	begin_with(100 * 1024, 1 << 20);
	s.keeps = true;
	settle();
	ask("POST", "/", 0);
	put(&c.legs[0], 400000);
	settle();
	check_int(s.legs[0].received, 100 * 1024);
	h2_credit(s.legs[0].st, 30 * 1024);
	settle();
	check_int(s.legs[0].received, 130 * 1024);
	h2_credit(s.legs[0].st, 220 * 1024);
	settle();
	check_int(s.legs[0].received, 350 * 1024);
	h2_credit(s.legs[0].st, 250 * 1024);
	trailers(&c.legs[0], NULL, NULL);
	settle();
	check_int(s.legs[0].received, 400000);
	check(s.legs[0].ended);
	done();
}

static void keep_ahead(struct leg *l, size_t n)
{
	h2_consume_ahead(l->st, n);
}

/* Streams that stall take nothing from the others if their bytes are kept. */
static void test_stalled_streams(void)
{
	begin_with(100 * 1024, 150 * 1024);
	s.keeps = true;
	s.on_data = keep_ahead;
	settle();
	for (unsigned i = 0; i < 3; i++)
		put(ask("POST", "/", 0), 400000);
	settle();
	for (unsigned i = 0; i < 3; i++)
		check_int(s.legs[i].received, 100 * 1024);
	s.keeps = false;
	s.on_data = NULL;
	put(ask("POST", "/", 0), 400000);
	settle();
	check_int(s.legs[3].received, 400000);
	h2_consume(s.legs[0].st, 100 * 1024);
	h2_reset(s.legs[1].st, H2_CANCEL);
	settle();
	check_int(s.legs[0].received, 400000);
	/* All was given back once, not twice. */
	s.keeps = true;
	put(ask("POST", "/", 0), 400000);
	put(ask("POST", "/", 0), 400000);
	settle();
	check(s.legs[4].received + s.legs[5].received <= 150 * 1024);
	check(s.legs[4].received + s.legs[5].received > 75 * 1024);
	done();
}

static void test_reset(void)
{
	begin();
	ask("GET", "/", H2_END);
	settle();
	(void)side_log(&s);
	h2_reset(c.legs[0].st, H2_CANCEL);
	settle();
	check_z(side_log(&s), "{1 CANCEL}");
	check_z(side_log(&c), "");
	check_int(h2_streams_open(c.h), 0);
	/* Before the request has gone at all. */
	ask("GET", "/", H2_END);
	h2_reset(c.legs[1].st, H2_CANCEL);
	settle();
	check_int(h2_streams_open(c.h), 0);
	/* An answer before the request is complete ends it. */
	ask("POST", "/", 0);
	settle();
	(void)side_log(&s);
	answer(&s.legs[s.legs_n - 1], 413, UINT64_MAX, H2_END);
	settle();
	check_z(side_log(&c), "[5 413 body0|server:s](5 end 0){5 NO_ERROR}");
	check_z(side_log(&s), "{5 NO_ERROR}");
	done();
}

static void test_streams_limit(void)
{
	unsigned n = 0;
	struct leg *l;

	begin();
	settle();
	while (h2_streams_free(c.h) > 0) {
		ask("GET", "/", H2_END);
		n++;
	}
	check_int(n, H2_STREAMS_MAX);
	l = leg_new(&c);
	{
		_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;

		must(http_head_set_request(&h, STR("GET"), STR("https"), STR("a"), 0, STR("/")) ==
			0);
		check_int(h2_request(c.h, &h, H2_END, l, &l->st), -EAGAIN);
	}
	settle();
	answer(&s.legs[0], 204, UINT64_MAX, H2_END);
	settle();
	check_int(h2_streams_free(c.h), 1);
	done();
}

static void test_streams_before_settings(void)
{
	static const struct h2_handlers none = {0};
	struct h2_config config = {.role = H2_CLIENT, .on = &none, .window = 65535};

	for (unsigned n = 0; n < 4; n++) {
		struct h2 *h;

		config.peer_streams = n;
		h = h2_new(&config);
		must(h);
		check_int(h2_streams_free(h), n ? n : 100);
		check_int(h2_streams_max(h), n ? n : 100);
		h2_free(h);
	}
}

/* What the server has not seen is told apart from what it was at. */
static void test_goaway(void)
{
	begin();
	ask("GET", "/", H2_END);
	settle();
	h2_goaway(s.h, H2_NO_ERROR);
	ask("GET", "/", H2_END);
	settle();
	check_int(c.goaways, 1);
	check_int(c.legs[1].error, H2_REFUSED_STREAM);
	check(!c.legs[0].gone);
	check_int(h2_streams_free(c.h), 0);
	answer(&s.legs[0], 204, UINT64_MAX, H2_END);
	settle();
	check_int(c.legs[0].error, H2_NO_ERROR);
	check(h2_is_done(s.h));
	check(h2_is_done(c.h));
	check_z(h2_error_text(c.h), "");
	done();
	begin();
	ask("GET", "/", H2_END);
	settle();
	h2_goaway(s.h, H2_INTERNAL_ERROR);
	settle();
	check(h2_is_done(s.h));
	check_int(h2_feed(s.h, STR("x")), -EPROTO);
	done();
}

/* The model decides: what belongs to a connection, or frames, is not copied. */
static void test_written_from_the_model(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	static const char *const fields[][2] = {{"Connection", "x"}, {"Host", "evil"},
		{"Transfer-Encoding", "chunked"}, {"Content-Length", "3"}, {"TE", "gzip"},
		{"Upgrade", "h2c"}, {"Keep-Alive", "1"}, {"Expect", "100-continue"},
		{"Cookie", "a=1; b=2"}, {"X-Empty", ""}};
	struct leg *l;

	begin();
	must(http_head_set_request(&h, STR("PUT"), STR("https"), STR("a.test"), 0, STR("/")) == 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fields); i++)
		must(http_fields_add(&h.fields, str_from(fields[i][0]), str_from(fields[i][1])) ==
			0);
	http_head_set_body(&h, HTTP_BODY_LENGTH, 2);
	l = ask_with(&h, H2_SECRET | H2_EXPECT);
	put(l, 2);
	trailers(l, NULL, NULL);
	settle();
	check_z(side_log(&s), "[1 PUT https://a.test:0/ body1=2 expect|x-empty:|content-length:2|"
			      "expect:100-continue|cookie:a=1; b=2](1 end 2)");
	h.flags |= HTTP_TRACE;
	check_int(h2_request(c.h, &h, 0, NULL, &l->st), -EINVAL);
	must(http_head_set_response(&h, 200, STR_NULL) == 0);
	check_int(h2_request(c.h, &h, 0, NULL, &l->st), -EINVAL);
	must(http_head_set_response(&h, 101, STR_NULL) == 0);
	check_int(h2_respond(s.legs[0].st, &h, 0), -EINVAL);
	done();
}

/* Large heads go both ways, in several frames. */
static void test_large_head(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	static char value[20000];

	begin();
	memset(value, '~', sizeof(value)); /* 13 bits in the code: no smaller */
	must(http_head_set_request(&h, STR("GET"), STR("https"), STR("a.test"), 0, STR("/")) == 0);
	for (unsigned i = 0; i < 3; i++)
		must(http_fields_add(&h.fields, STR("x"), str_make(value, sizeof(value))) == 0);
	ask_with(&h, H2_END);
	settle();
	check_int(s.legs_n, 1);
	must(http_fields_add(&h.fields, STR("x"), str_make(value, sizeof(value))) == 0);
	ask_with(&h, H2_END);
	settle();
	check_int(s.legs_n, 1);
	check_z(s.why, "the head is too large");
	check_int(c.legs[1].error, H2_PROTOCOL_ERROR);
	done();
}

/* Many at once, answered in another order, in pieces. */
static void test_many(void)
{
	begin_with(64 * 1024, 256 * 1024);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 60; i++) {
			struct leg *l = ask("POST", "/", 0);

			put(l, h2_random(100000));
			trailers(l, i % 2 ? "x-a" : NULL, "b");
		}
		side_move(&c, &s, most);
		settle();
		for (unsigned i = round * 60 + 60; i-- > round * 60;) {
			size_t n = h2_random(200000);

			answer(&s.legs[i], 200, n, n ? 0 : H2_END);
			if (n) {
				put(&s.legs[i], n);
				trailers(&s.legs[i], NULL, NULL);
			}
		}
		settle();
	}
	for (unsigned i = 0; i < c.legs_n; i++) {
		check_int(c.legs[i].error, H2_NO_ERROR);
		check(c.legs[i].gone && s.legs[i].gone && c.legs[i].ended && s.legs[i].ended);
		check_int(c.legs[i].sent, s.legs[i].received);
		check_int(s.legs[i].sent, c.legs[i].received);
	}
	check_int(h2_streams_open(c.h) + h2_streams_open(s.h), 0);
	done();
}

static void exchange_without_memory(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	struct leg *l;

	memset(&c, 0, sizeof(c));
	memset(&s, 0, sizeof(s));
	if (side_try(&c, H2_CLIENT, 65536, 65536) < 0 || side_try(&s, H2_SERVER, 65536, 65536) < 0)
		goto out;
	c.quiet = s.quiet = true;
	if (http_head_set_request(&h, STR("GET"), STR("https"), STR("a"), 0, STR("/")) < 0)
		goto out;
	l = leg_new(&c);
	if (h2_request(c.h, &h, H2_END, l, &l->st) < 0)
		goto out;
	l->id = 1;
	for (int i = 0; i < 4; i++) {
		if (h2_output(c.h, &c.out, OUT_ENOUGH) < 0 || h2_feed(s.h, buf_str(&c.out)) < 0)
			break;
		buf_clear(&c.out);
		if (i == 1 && s.legs_n && s.legs[0].st &&
			(http_head_set_response(&h, 204, STR_NULL) < 0 ||
				h2_respond(s.legs[0].st, &h, H2_END) < 0))
			break;
		if (h2_output(s.h, &s.out, OUT_ENOUGH) < 0 || h2_feed(c.h, buf_str(&s.out)) < 0)
			break;
		buf_clear(&s.out);
	}
	check(torture_failed || (l->gone && l->error == H2_NO_ERROR));
out:
	side_done(&c);
	side_done(&s);
}

static void test_without_memory(void)
{
	torture(exchange_without_memory);
}

int main(void)
{
	most = 1000;
	run_test(test_exchange);
	most = 1000;
	run_test(test_bodies_and_trailers);
	run_test(test_trailer_names);
	run_test(test_interim);
	run_test(test_bodiless);
	run_test(test_flow_control);
	run_test(test_credit);
	run_test(test_stalled_streams);
	run_test(test_reset);
	run_test(test_streams_limit);
	run_test(test_streams_before_settings);
	run_test(test_goaway);
	run_test(test_written_from_the_model);
	run_test(test_large_head);
	run_test(test_many);
	run_test(test_without_memory);
	return tap_done();
}
