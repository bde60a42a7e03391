/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/test-origin.h"
#include "http/h2.h"

#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

enum { OUT_ENOUGH = 64 * 1024, ZEROS = 64 * 1024, CALL_MAX = 4 * 1024 * 1024 };

struct call {
	struct call *prev, *next;
	struct server *server;
	struct buf out;
	uint64_t zeros, received; /* zeros: still to be sent */
	enum h2_error then;       /* if not 0: reset when something was sent */
	bool bidi, sink, hello, bye, token;
};

struct server {
	struct test_conn *c;
	struct origin_seen *seen;
	struct h2 *h2;
	struct call *calls;
	struct buf out;
	bool stop; /* after what waits is written */
	struct buf raw;
};

static void respond_as(
	struct h2_stream *st, unsigned status, uint64_t length, unsigned flags, struct str type)
{
	struct http_head h = HTTP_HEAD_INIT;

	test_need(http_head_set_response(&h, status, STR_NULL) == 0);
	if (length != UINT64_MAX)
		http_head_set_body(&h, HTTP_BODY_LENGTH, length);
	test_need(http_fields_add(&h.fields, STR("x-served"), STR("h2")) == 0);
	test_need(http_fields_add(&h.fields, STR("alt-svc"), STR("h3=\":443\"")) == 0);
	if (type.n > 0)
		test_need(http_fields_add(&h.fields, STR("content-type"), type) == 0);
	test_need(h2_respond(st, &h, flags) == 0);
	http_head_done(&h);
}

static void respond(struct h2_stream *st, unsigned status, uint64_t length, unsigned flags)
{
	respond_as(st, status, length, flags, STR_NULL);
}

static void say(struct h2_stream *st, struct str text, struct http_fields *trailers)
{
	struct call *call = h2_stream_user(st);

	test_need(buf_add_str(&call->out, text) == 0);
	test_need(h2_end(st, trailers) == 0);
}

static void say_trailers(struct h2_stream *st, struct str text)
{
	struct http_fields f = HTTP_FIELDS_INIT;

	test_need(http_fields_add(&f, STR("grpc-status"), STR("0")) == 0);
	say(st, text, &f);
	http_fields_done(&f);
}

static void write_down(struct server *s, const struct http_head *h)
{
	struct buf b = BUF_INIT(1 << 18);

	test_need(buf_printf(&b, "%.*s %.*s HTTP/2\nauthority: %.*s:%u\n",
			  STR_FMT(http_head_method(h)), STR_FMT(http_head_target(h)),
			  STR_FMT(http_head_host(h)), h->port) == 0);
	for (unsigned i = 0; i < h->fields.n; i++)
		test_need(buf_printf(&b, "%.*s: %.*s\n", STR_FMT(http_fields_name(&h->fields, i)),
				  STR_FMT(http_fields_value(&h->fields, i))) == 0);
	if (h->flags & HTTP_EXPECT_CONTINUE)
		test_need(buf_add_str(&b, STR("expect: 100-continue\n")) == 0);
	origin_note(s->seen, buf_str(&b));
	buf_done(&b);
}

/* Whether this target was asked for before, on whatever connection. */
static bool seen_before(struct server *s, struct str target)
{
	struct str all = buf_str(&s->seen->heads);
	size_t first = str_find(all, target);

	return str_find(str_from_index(all, first + 1), target) + first + 1 < all.n;
}

static size_t count_seen(struct server *s, struct str target)
{
	struct str rest = buf_str(&s->seen->heads);
	size_t n = 0, at;

	for (; (at = str_find(rest, target)) < rest.n; n++)
		rest = str_from_index(rest, at + target.n);
	return n;
}

static void raw(struct server *s, const char *p, size_t n)
{
	test_need(buf_add(&s->raw, p, n) == 0);
}

/* What is answered when the head has come. */
static void start(struct server *s, struct h2_stream *st, struct call *call, struct str t)
{
	unsigned status = 0;

	if (str_starts(t, STR("/big/"))) {
		call->zeros = strtoull(t.p + 5, NULL, 10);
		respond(st, 200, call->zeros, 0);
		test_need(h2_end(st, NULL) == 0);
	} else if (str_starts(t, STR("/status/"))) {
		for (size_t i = 8; i < t.n; i++)
			status = status * 10 + (unsigned)(t.p[i] - '0');
		respond(st, status, UINT64_MAX, H2_END);
	} else if (str_eq(t, STR("/only"))) {
		respond(st, 200, UINT64_MAX, H2_END);
	} else if (str_eq(t, STR("/trailers"))) {
		respond(st, 200, UINT64_MAX, 0);
		say_trailers(st, STR("hello"));
	} else if (str_eq(t, STR("/interim"))) {
		respond(st, 103, UINT64_MAX, 0);
		call->hello = true;
	} else if (str_starts(t, STR("/bidi"))) {
		call->bidi = true;
		respond_as(st, 200, UINT64_MAX, 0, str_from_index(t, strlen("/bidi/")));
	} else if (str_starts(t, STR("/app/"))) {
		call->token = true;
	} else if (str_eq(t, STR("/sink"))) {
		call->sink = true;
	} else if (str_eq(t, STR("/reset"))) {
		call->then = H2_INTERNAL_ERROR;
		respond(st, 200, 100, 0);
		test_need(buf_add_str(&call->out, STR("part")) == 0);
	} else if (str_eq(t, STR("/cut"))) {
		respond(st, 200, 100, 0);
		test_need(buf_add_str(&call->out, STR("part")) == 0);
		test_conn_cut(s->c);
		s->stop = true;
	} else if (str_eq(t, STR("/cancel"))) {
		call->then = H2_CANCEL;
		respond(st, 200, UINT64_MAX, 0);
		test_need(buf_add_str(&call->out, STR("part")) == 0);
	} else if (str_eq(t, STR("/bad"))) {
		char frame[] = "\0\0\x0a\1\4\0\0\0\0\x88\0\5Upper\1x";

		frame[8] = (char)h2_stream_id(st);
		frame[2] = sizeof(frame) - 1 - 9;
		raw(s, frame, sizeof(frame) - 1);
	} else if (str_starts(t, STR("/goaway")) && !seen_before(s, STR("/goaway"))) {
		raw(s, "\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
	} else if (str_starts(t, STR("/refused/")) && count_seen(s, t) <= (size_t)(t.p[9] - '0')) {
		h2_reset(st, H2_REFUSED_STREAM);
	} else if (str_eq(t, STR("/hello?http1"))) {
		h2_reset(st, H2_HTTP_1_1_REQUIRED);
	} else if (!str_eq(t, STR("/never"))) {
		call->hello = true;
		call->bye = str_eq(t, STR("/bye"));
	}
}

static void on_head(void *arg, struct h2_stream *st, struct http_head *h)
{
	struct server *s = arg;
	struct call *call = calloc(1, sizeof(*call));

	test_need(call);
	call->server = s;
	call->out = BUF_INIT(CALL_MAX);
	DL_APPEND(s->calls, call);
	h2_stream_set_user(st, call);
	write_down(s, h);
	if ((h->flags & HTTP_EXPECT_CONTINUE) && str_eq(http_head_target(h), STR("/sink")))
		respond(st, 100, UINT64_MAX, 0);
	start(s, st, call, http_head_target(h));
}

static void on_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct call *call = h2_stream_user(st);

	(void)arg;
	call->received += bytes.n;
	if (call->bidi) {
		test_need(buf_add_str(&call->out, bytes) == 0);
		h2_wake(st);
	}
	h2_consume(st, bytes.n);
}

static void on_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct server *s = arg;
	struct call *call = h2_stream_user(st);
	char number[24];

	if (!call)
		return;
	if (call->bidi)
		say_trailers(st, STR(""));
	if (call->sink) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)call->received);
		respond(st, 200, UINT64_MAX, 0);
		say(st, str_from(number), trailers);
	}
	if (call->token) {
		usleep(1000000);
		respond(st, 201, UINT64_MAX, 0);
		say(st,
			STR("{\"token\": \"ghs_0123456789\", "
			    "\"expires_at\": \"2099-01-01T00:00:00Z\"}"),
			NULL);
	}
	if (call->hello) {
		respond(st, 200, 5, 0);
		say(st, STR("hello"), NULL);
	}
	if (call->bye)
		h2_goaway(s->h2, H2_NO_ERROR);
}

static void forget(struct call *call)
{
	DL_DELETE(call->server->calls, call);
	buf_done(&call->out);
	free(call);
}

static void on_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct call *call = h2_stream_user(st);

	(void)arg;
	(void)error;
	if (call)
		forget(call);
}

static struct str on_body(void *arg, struct h2_stream *st)
{
	static const char zeros[ZEROS];
	struct call *call = h2_stream_user(st);

	(void)arg;
	if (call->zeros > 0)
		return str_make(zeros, (size_t)MIN(call->zeros, (uint64_t)ZEROS));
	return buf_str(&call->out);
}

static void on_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct call *call = h2_stream_user(st);

	(void)arg;
	if (call->zeros > 0)
		call->zeros -= n;
	else
		buf_consume(&call->out, n);
	if (call->then != H2_NO_ERROR) {
		h2_reset(st, call->then);
		forget(call);
	}
}

static bool flush(struct server *s)
{
	bool ok = true;

	while (ok && h2_wants_output(s->h2)) {
		test_need(h2_output(s->h2, &s->out, OUT_ENOUGH) == 0);
		if (buf_len(&s->out) == 0)
			break;
		ok = test_conn_write(s->c, buf_data(&s->out), buf_len(&s->out));
		buf_clear(&s->out);
	}
	if (ok && buf_len(&s->raw) > 0)
		ok = test_conn_write(s->c, buf_data(&s->raw), buf_len(&s->raw));
	buf_clear(&s->raw);
	return ok;
}

void origin_serve_h2(struct test_conn *c, void *arg)
{
	static const struct h2_handlers handlers = {.head = on_head,
		.data = on_data,
		.end = on_end,
		.closed = on_closed,
		.body = on_body,
		.sent = on_sent};
	struct server s = {.c = c,
		.seen = arg,
		.out = BUF_INIT(OUT_ENOUGH + H2_OUT_MIN),
		.raw = BUF_INIT(1024)};
	struct h2_config config = {.role = H2_SERVER,
		.on = &handlers,
		.arg = &s,
		.stream_window = 256 * 1024,
		.window = 1024 * 1024};
	static _Thread_local char b[32 * 1024];
	long n;

	if (!test_conn_is_h2(c)) {
		origin_serve(c, arg);
		return;
	}
	s.h2 = h2_new(&config);
	test_need(s.h2);
	while (flush(&s) && !s.stop && !h2_is_done(s.h2) &&
		(n = test_conn_read(c, b, sizeof(b))) > 0)
		if (h2_feed(s.h2, str_make(b, (size_t)n)) < 0)
			break;
	(void)flush(&s);
	h2_free(s.h2);
	while (s.calls)
		forget(s.calls);
	buf_done(&s.out);
	buf_done(&s.raw);
}
