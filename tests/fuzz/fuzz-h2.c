/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* What a peer sends, as either end of a connection. The first byte says which end we are and how
 * the rest is cut. However it is cut, the same is told; what is told keeps the rules of http/h2.h
 * and http/valid.h; and what we answer never breaks us. */
#include "http/h2.h"
#include "http/valid.h"

#include <stdlib.h>
#include <utlist.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENT = 1, ANSWERS = 2, STEP_SHIFT = 2, OUT_ENOUGH = 64 * 1024 };

struct peer {
	struct h2 *h;
	struct leg *legs;
	struct buf log, out;
	bool answers;
};

struct leg {
	struct leg *prev, *next;
	bool head, ended;
	uint64_t received, length;
	size_t left; /* to be sent */
};

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void note(struct peer *p, const char *fmt, ...) _printf_(2, 3);
static void note(struct peer *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	require(buf_vprintf(&p->log, fmt, ap) == 0);
	va_end(ap);
}

static void check_fields(struct peer *p, const struct http_fields *f)
{
	require(f->n <= HTTP_FIELDS_MAX);
	for (unsigned i = 0; i < f->n; i++) {
		struct str name = http_fields_name(f, i), value = http_fields_value(f, i);

		require(http_is_field_name(name) && http_is_field_value(value));
		require(!f->v[i].hop || str_eq(name, STR("te")) ||
			str_eq(name, STR("http2-settings")));
		note(p, "%.*s:%.*s|", STR_FMT(name), STR_FMT(value));
	}
}

static void check_head(struct peer *p, const struct http_head *h)
{
	if (h->is_request) {
		require(http_is_method(http_head_method(h)) && http_is_host(http_head_host(h)));
		require(h->flags & HTTP_CONNECT || http_is_target(http_head_target(h)));
		note(p, "%.*s %.*s:%u %.*s|", STR_FMT(http_head_method(h)),
			STR_FMT(http_head_host(h)), h->port, STR_FMT(http_head_target(h)));
	} else {
		require(http_is_status(h->status) && h->status != 101);
		note(p, "%u|", h->status);
	}
	check_fields(p, &h->fields);
	note(p, "\n");
}

static struct leg *leg_new(struct peer *p)
{
	struct leg *l = calloc(1, sizeof(*l));

	require(l != NULL);
	l->length = UINT64_MAX;
	DL_APPEND(p->legs, l);
	return l;
}

static void on_head(void *arg, struct h2_stream *st, struct http_head *h)
{
	struct peer *p = arg;
	struct leg *l = h2_stream_user(st);
	struct http_head answer = HTTP_HEAD_INIT;

	if (!l) {
		l = leg_new(p);
		h2_stream_set_user(st, l);
	}
	require(!l->head && !l->ended);
	l->head = h->is_request || h->status >= 200;
	l->length = UINT64_MAX;
	if (h->body == HTTP_BODY_NONE)
		l->length = 0;
	else if (h->body == HTTP_BODY_LENGTH)
		l->length = h->content_length;
	note(p, "%u ", h2_stream_id(st));
	check_head(p, h);
	if (!h->is_request || !p->answers)
		return;
	require(http_head_set_response(&answer, 200, STR_NULL) == 0);
	require(http_fields_copy(&answer.fields, &h->fields) == 0);
	require(h2_respond(st, &answer, h2_stream_id(st) & 2 ? 0 : H2_END) == 0);
	http_head_done(&answer);
	if (!(h2_stream_id(st) & 2))
		return;
	l->left = 100000;
	require(h2_end(st, &h->fields) == 0);
}

static void on_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct peer *p = arg;
	struct leg *l = h2_stream_user(st);

	require(l->head && !l->ended && bytes.n > 0);
	l->received += bytes.n;
	require(l->received <= l->length);
	if (p->answers)
		h2_consume(st, bytes.n / 2 + 1);
}

static void on_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct peer *p = arg;
	struct leg *l = h2_stream_user(st);

	require(l->head && !l->ended);
	require(l->length == UINT64_MAX || l->length == l->received);
	l->ended = true;
	note(p, "%u end %llu ", h2_stream_id(st), (unsigned long long)l->received);
	check_fields(p, trailers);
	note(p, "\n");
}

static void on_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct peer *p = arg;
	struct leg *l = h2_stream_user(st);

	note(p, "%u closed %u\n", h2_stream_id(st), error);
	DL_DELETE(p->legs, l);
	free(l);
}

static struct str on_body(void *arg, struct h2_stream *st)
{
	static const char zeros[4096];
	struct leg *l = h2_stream_user(st);

	(void)arg;
	return str_make(zeros, MIN(l->left, sizeof(zeros)));
}

static void on_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct leg *l = h2_stream_user(st);

	(void)arg;
	require(n <= l->left);
	l->left -= n;
}

static void on_malformed(void *arg, const struct http_head *head, const char *why)
{
	(void)head;
	note(arg, "malformed %s\n", why);
}

static void on_goaway(void *arg, enum h2_error error)
{
	note(arg, "goaway %u\n", error);
}

static void on_settings(void *arg)
{
	note(arg, "settings\n");
}

static const struct h2_handlers handlers = {on_head, on_data, on_end, on_closed, on_body, on_sent,
	on_malformed, on_goaway, on_settings};

static void output(struct peer *p)
{
	do {
		require(h2_output(p->h, &p->out, OUT_ENOUGH) == 0);
		if (buf_len(&p->out) == 0)
			break;
		buf_clear(&p->out);
	} while (h2_wants_output(p->h));
}

static void ask(struct peer *p, const char *method, size_t body)
{
	struct http_head h = HTTP_HEAD_INIT;
	struct h2_stream *st;
	struct leg *l = leg_new(p);

	l->left = body;
	require(http_head_set_request(
			&h, str_from(method), STR("https"), STR("a.test"), 0, STR("/")) == 0);
	require(h2_request(p->h, &h, body ? 0 : H2_END, l, &st) == 0);
	if (body)
		require(h2_end(st, NULL) == 0);
	http_head_done(&h);
}

static void begin(struct peer *p, bool client, bool answers)
{
	struct h2_config c = {.role = client ? H2_CLIENT : H2_SERVER,
		.on = &handlers,
		.arg = p,
		.stream_window = 65536,
		.window = 65536,
		.wipe = client};

	*p = (struct peer){.log = BUF_INIT(64 << 20),
		.out = BUF_INIT(OUT_ENOUGH + H2_OUT_MIN),
		.answers = answers};
	p->h = h2_new(&c);
	require(p->h);
	if (client) {
		ask(p, "GET", 0);
		ask(p, "HEAD", 0);
		ask(p, "POST", 70000);
	} else {
		require(h2_feed(p->h, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) == 0);
	}
	output(p);
}

static void end(struct peer *p)
{
	struct leg *l, *tmp;

	p->h = h2_free(p->h);
	DL_FOREACH_SAFE (p->legs, l, tmp) {
		DL_DELETE(p->legs, l);
		free(l);
	}
	buf_done(&p->log);
	buf_done(&p->out);
}

static void play(struct peer *p, const uint8_t *data, size_t size, size_t step)
{
	for (size_t at = 0; at < size;) {
		size_t n = step && step < size - at ? step : size - at;
		char *piece = malloc(n);
		int r;

		require(piece != NULL);
		memcpy(piece, data + at, n);
		r = h2_feed(p->h, str_make(piece, n));
		free(piece);
		at += n;
		if (p->answers)
			output(p);
		if (r < 0)
			break;
	}
	output(p);
	(void)h2_is_done(p->h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer whole, cut;
	bool client, answers;
	size_t step;

	if (size < 1)
		return 0;
	client = data[0] & CLIENT;
	answers = data[0] & ANSWERS;
	step = (data[0] >> STEP_SHIFT) + 1U;
	begin(&cut, client, answers);
	play(&cut, data + 1, size - 1, step);
	if (!answers) { /* else it depends on what was answered when */
		begin(&whole, client, false);
		play(&whole, data + 1, size - 1, 0);
		require(str_eq(buf_str(&whole.log), buf_str(&cut.log)));
		end(&whole);
	}
	end(&cut);
	return 0;
}
