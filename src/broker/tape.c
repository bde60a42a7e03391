/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each line is one write to a file that another process opened, and nothing
 * but the current line is kept here. If the limit is reached, bodies end with a line that says so,
 * while heads are still recorded for a while. If even these become too many, or the file cannot be
 * written, the recording ends for good. None of this holds up a request: only the network log must
 * be written. */
#include "broker/tape.h"
#include "base/clock.h"
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/log.h"
#include "broker/scrubbing.h"
#include "broker/stream.h"
#include "policy/decide.h"
#include "record/cassette.h"
#include "record/cassette_write.h"
#include "secrets/scrub.h"

#include <stdio.h>

/* Bytes that heads may take up beyond the limit. */
#define HEADS_MORE ((uint64_t)64 << 20)
#define LIMIT_USUAL ((uint64_t)1 << 30)

void tape_init(struct tape *t)
{
	*t = (struct tape){.fd = -1, .line = BUF_INIT((size_t)CASSETTE_LINE_MAX)};
}

void tape_start(struct tape *t, int fd, uint64_t limit)
{
	t->fd = fd;
	t->limit = limit ? limit : LIMIT_USUAL;
}

void tape_done(struct tape *t)
{
	t->fd = fd_close(t->fd);
	buf_done(&t->line);
}

/* End the recording for good. */
static void end_tape(struct broker *b, const char *why)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "the recording of requests has ended: %s", why);

	b->tape.fd = fd_close(b->tape.fd);
	if (log_warning(b, str_make(text, (size_t)n)) < 0)
		b->lines.unlogged++;
}

/* Write the current line; r is the result of making it. */
static void write_line(struct broker *b, int r)
{
	struct tape *t = &b->tape;

	if (r == 0)
		r = fd_write_all(t->fd, buf_data(&t->line), buf_len(&t->line));
	t->bytes += buf_len(&t->line);
	buf_clear(&t->line);
	if (r < 0)
		end_tape(b, err_errno_text(-r));
}

/* The same for a head or an end, that is, for everything but bodies. */
static void write_head(struct broker *b, int r)
{
	struct tape *t = &b->tape;

	if (t->bytes + buf_len(&t->line) <= t->limit + HEADS_MORE) {
		write_line(b, r);
		return;
	}
	buf_clear(&t->line);
	write_line(b, cassette_write_word(&t->line, clock_real_usec(), 0, "cut"));
	if (t->fd >= 0)
		end_tape(b, "there is more than --record-limit allows");
}

/* Return whether policy exempts the answer from scrubbing (scrub: false). It goes to the room as it
 * is, but it may hold a secret's value, so it must not be recorded like that
 * (INV-NO-SECRET-INSIDE). */
static bool is_unsearched(const struct stream *s)
{
	return s->broker->scrubber && s->verdict.allow && !scrubbing_applies(s);
}

static bool is_on(const struct stream *s)
{
	return s->track.number > 0 && !s->track.ended && s->broker->tape.fd >= 0;
}

static void tape_get_field(const void *of, unsigned i, struct str *ret_name, struct str *ret_value)
{
	const struct http_fields *f = of;

	*ret_name = http_fields_name(f, i);
	*ret_value = http_fields_value(f, i);
}

struct cassette_headers tape_headers(const struct http_fields *f)
{
	return (struct cassette_headers){.n = f ? f->n : 0, .get = tape_get_field, .of = f};
}

/* Replace headers of an answer by a copy that was searched, if the answer itself is not. The search
 * cannot be left for the finished line: there, the bytes of a value are written in another way. */
static int search(
	const struct stream *s, struct cassette_headers *headers, struct http_fields *copy)
{
	int r = 0;

	if (!is_unsearched(s))
		return 0;
	for (unsigned i = 0; r == 0 && i < headers->n; i++) {
		struct str name, value;

		headers->get(headers->of, i, &name, &value);
		r = http_fields_add(copy, name, value);
	}
	(void)scrubbing_fields(s->broker, copy);
	*headers = tape_headers(copy);
	return r;
}

static void cut_bodies(struct stream *s)
{
	if (is_on(s) && !s->track.cut)
		write_head(s->broker, cassette_write_word(&s->broker->tape.line, clock_real_usec(),
					      s->track.number, "cut"));
	s->track.cut = true;
}

static void write_body(struct stream *s, const char *key, struct str bytes)
{
	struct broker *b = s->broker;
	struct tape *t = &b->tape;
	uint64_t now = clock_real_usec();

	for (; bytes.n > 0 && is_on(s) && !s->track.cut;
		bytes = str_from_index(bytes, CASSETTE_PIECE_MAX)) {
		int r = cassette_write_piece(
			&t->line, now, s->track.number, key, str_prefix(bytes, CASSETTE_PIECE_MAX));

		if (t->bytes + buf_len(&t->line) <= t->limit) {
			write_line(b, r);
			continue;
		}
		buf_clear(&t->line);
		cut_bodies(s);
	}
}

/* --- the request --- */

int tape_url(const struct stream *s, struct buf *ret)
{
	bool https = s->scheme == NET_HTTPS;
	int r;

	if (s->kind == NET_KIND_TUNNEL)
		return buf_printf(ret, "%s:%u", s->host.text, s->port);
	r = buf_printf(ret, "%s://%s", https ? "https" : "http", s->host.text);
	if (r == 0 && s->port != (https ? 443 : 80))
		r = buf_printf(ret, ":%u", s->port);
	return r < 0 ? r : buf_add_str(ret, http_head_target(&s->head));
}

void tape_request(struct stream *s)
{
	_cleanup_(buf_donep) struct buf url = BUF_INIT(CASSETTE_URL_MAX);
	const struct cassette_headers headers = tape_headers(&s->head.fields);
	struct broker *b = s->broker;
	struct tape *t = &b->tape;
	int r;

	if (t->fd < 0)
		return;
	if (t->last >= CASSETTE_EXCHANGES_MAX) {
		write_line(b, cassette_write_word(&t->line, clock_real_usec(), 0, "cut"));
		if (t->fd >= 0)
			end_tape(b, "there are more than a cassette can hold");
		return;
	}
	s->track.number = ++t->last;
	r = tape_url(s, &url);
	if (r == 0)
		r = cassette_write_request(&t->line, clock_real_usec(), s->track.number,
			http_head_method(&s->head), buf_str(&url), &headers);
	write_head(b, r);
	if (s->request == REQUEST_ENDED)
		tape_sent_end(s);
}

void tape_sent(struct stream *s, struct str bytes)
{
	if (s->kind == NET_KIND_HTTP)
		write_body(s, "sent", bytes);
}

void tape_sent_end(struct stream *s)
{
	const struct cassette_headers trailers = tape_headers(&s->trailers);

	if (is_on(s) && s->kind == NET_KIND_HTTP)
		write_head(s->broker, cassette_write_end(&s->broker->tape.line, clock_real_usec(),
					      s->track.number, "sent_end", &trailers, NULL));
}

/* --- the answer --- */

void tape_refused(struct stream *s, unsigned status)
{
	const char *why = s->note[0] ? s->note : policy_reason_word(s->verdict.reason);

	if (is_on(s))
		write_head(
			s->broker, cassette_write_refused(&s->broker->tape.line, clock_real_usec(),
					   s->track.number, status, str_from(why)));
}

/* The headers of an answer, and its length, which the model keeps elsewhere. */
struct answer_headers {
	const struct cassette_headers *given;
	char length[24];
};

static void get_answer_header(
	const void *of, unsigned i, struct str *ret_name, struct str *ret_value)
{
	const struct answer_headers *a = of;

	if (i < a->given->n) {
		a->given->get(a->given->of, i, ret_name, ret_value);
		return;
	}
	*ret_name = STR("Content-Length");
	*ret_value = str_from(a->length);
}

void tape_response(
	struct stream *s, const struct net_response *m, const struct cassette_headers *given)
{
	_cleanup_(http_fields_donep) struct http_fields copy = HTTP_FIELDS_INIT;
	struct cassette_headers searched = *given;
	struct answer_headers a = {.given = &searched};
	struct cassette_headers headers = {.get = get_answer_header, .of = &a};
	struct tape *t = &s->broker->tape;
	int r;

	if (!is_on(s))
		return;
	r = search(s, &searched, &copy);
	headers.n = searched.n + (m->body == NET_BODY_LENGTH);
	snprintf(a.length, sizeof(a.length), "%llu", (unsigned long long)m->length);
	if (r == 0)
		r = cassette_write_response(
			&t->line, clock_real_usec(), s->track.number, m->status, &headers);
	write_head(s->broker, r);
	s->track.raw = m->status == 101 || (s->kind == NET_KIND_TUNNEL && m->status == 200);
	if (is_on(s) && s->track.raw)
		write_head(s->broker, cassette_write_word(&t->line, clock_real_usec(),
					      s->track.number, "upgraded"));
}

void tape_data(struct stream *s, struct str bytes)
{
	if (is_unsearched(s))
		cut_bodies(s);
	else if (!s->track.raw)
		write_body(s, "data", bytes);
}

static void write_end(struct stream *s, const struct http_fields *trailers, const char *error)
{
	_cleanup_(http_fields_donep) struct http_fields copy = HTTP_FIELDS_INIT;
	struct cassette_headers headers = tape_headers(trailers);
	int r;

	if (!is_on(s))
		return;
	r = search(s, &headers, &copy);
	if (r == 0)
		r = cassette_write_end(&s->broker->tape.line, clock_real_usec(), s->track.number,
			"end", &headers, error);
	write_head(s->broker, r);
	s->track.ended = true;
}

void tape_end(struct stream *s, const struct http_fields *trailers)
{
	write_end(s, trailers, NULL);
}

void tape_closed(struct stream *s)
{
	write_end(s, NULL, s->note[0] ? s->note : "it was broken off");
}
