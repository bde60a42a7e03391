/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test-side.h"
#include "tap.h"

#include <errno.h>
#include <stdarg.h>

static void note(struct side *s, const char *fmt, ...) _printf_(2, 3);
static void note(struct side *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	must(s->quiet || buf_vprintf(&s->log, fmt, ap) == 0);
	va_end(ap);
}

static void note_fields(struct side *s, const struct http_fields *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (!f->v[i].hop)
			note(s, "|%.*s:%.*s", STR_FMT(http_fields_name(f, i)),
				STR_FMT(http_fields_value(f, i)));
}

struct leg *leg_new(struct side *s)
{
	struct leg *l = &s->legs[s->legs_n++];

	must(s->legs_n <= SIDE_STREAMS);
	*l = (struct leg){.side = s, .out = BUF_INIT(16 * 1024 * 1024)};
	return l;
}

static void side_head(void *arg, struct h2_stream *st, struct http_head *h)
{
	struct side *s = arg;
	struct leg *l = h2_stream_user(st);

	if (!l) {
		l = leg_new(s);
		l->st = st;
		l->id = h2_stream_id(st);
		h2_stream_set_user(st, l);
	}
	if (h->is_request)
		note(s, "[%u %.*s %.*s://%.*s:%u%.*s body%d", l->id, STR_FMT(http_head_method(h)),
			STR_FMT(http_head_scheme(h)), STR_FMT(http_head_host(h)), h->port,
			STR_FMT(http_head_target(h)), h->body);
	else
		note(s, "[%u %u body%d", l->id, h->status, h->body);
	if (h->flags & HTTP_HAS_LENGTH)
		note(s, "=%llu", (unsigned long long)h->content_length);
	if (h->flags & HTTP_TE_TRAILERS)
		note(s, " te");
	if (h->flags & HTTP_EXPECT_CONTINUE)
		note(s, " expect");
	note_fields(s, &h->fields);
	note(s, "]");
	if (s->on_head)
		s->on_head(l, h);
}

static void side_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct side *s = arg;
	struct leg *l = h2_stream_user(st);

	l->received += bytes.n;
	if (!s->keeps)
		h2_consume(st, bytes.n);
	if (s->on_data)
		s->on_data(l, bytes.n);
}

static void side_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct side *s = arg;
	struct leg *l = h2_stream_user(st);

	check(!l->ended);
	l->ended = true;
	note(s, "(%u end %llu", l->id, (unsigned long long)l->received);
	note_fields(s, trailers);
	note(s, ")");
	if (s->on_end)
		s->on_end(l);
}

static void side_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct side *s = arg;
	struct leg *l = h2_stream_user(st);

	check(!l->gone);
	l->gone = true;
	l->error = error;
	l->st = NULL;
	note(s, "{%u %s}", l->id, h2_error_name(error));
}

static struct str side_body(void *arg, struct h2_stream *st)
{
	struct leg *l = h2_stream_user(st);

	(void)arg;
	return buf_str(&l->out);
}

static void side_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct leg *l = h2_stream_user(st);

	(void)arg;
	l->sent += n;
	buf_consume(&l->out, n);
}

static void side_malformed(void *arg, const struct http_head *head, const char *why)
{
	struct side *s = arg;

	(void)head;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static void side_goaway(void *arg, enum h2_error error)
{
	struct side *s = arg;

	s->goaways++;
	note(s, "<goaway %s>", h2_error_name(error));
}

static void side_settings(void *arg)
{
	((struct side *)arg)->settings++;
}

static const struct h2_handlers side_handlers = {side_head, side_data, side_end, side_closed,
	side_body, side_sent, side_malformed, side_goaway, side_settings};

int side_try(struct side *s, enum h2_role role, uint32_t stream, uint32_t window)
{
	struct h2_config c = {.role = role,
		.on = &side_handlers,
		.arg = s,
		.stream_window = stream,
		.window = window,
		.wipe = role == H2_CLIENT};

	memset(s, 0, sizeof(*s));
	s->log = BUF_INIT(4 * 1024 * 1024);
	s->out = BUF_INIT(OUT_ENOUGH + H2_OUT_MIN);
	s->h = h2_new(&c);
	return s->h ? 0 : -ENOMEM;
}

void side_done(struct side *s)
{
	s->h = h2_free(s->h);
	for (unsigned i = 0; i < s->legs_n; i++)
		buf_done(&s->legs[i].out);
	buf_done(&s->log);
	buf_done(&s->out);
}

const char *side_log(struct side *s)
{
	static char text[64 * 1024];

	snprintf(text, sizeof(text), "%.*s", STR_FMT(buf_str(&s->log)));
	buf_clear(&s->log);
	return text;
}

static unsigned h2_random_state = 7;

unsigned h2_random(unsigned bound)
{
	h2_random_state = h2_random_state * 1664525U + 1013904223U;
	return (h2_random_state >> 8) % bound;
}

bool side_move(struct side *from, struct side *to, unsigned most)
{
	bool any = false;

	check_int(h2_output(from->h, &from->out, OUT_ENOUGH), 0);
	while (buf_len(&from->out) > 0) {
		size_t n = MIN(buf_len(&from->out), (size_t)(1 + h2_random(most)));
		char *piece = malloc(n);

		must(piece);
		memcpy(piece, buf_data(&from->out), n);
		buf_consume(&from->out, n);
		any |= h2_feed(to->h, str_make(piece, n)) == 0;
		free(piece);
	}
	return any;
}

void side_settle(struct side *a, struct side *b, unsigned most)
{
	bool any = true;

	while (any) {
		any = side_move(a, b, most);
		any |= side_move(b, a, most);
	}
}
