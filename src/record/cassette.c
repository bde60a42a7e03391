/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the file is read once, from front to back, and each line is checked against
 * what came before in its exchange. The index keeps the places of heads and bodies. Exchanges are
 * found by their number, which rises. A body's lines lie among those of other exchanges: to read it
 * again, go from its first to its last line and skip the others by their number alone, which our
 * writer puts at the front. The file may have been changed meanwhile, so every line that is used is
 * checked again. */
#include "record/cassette.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CHUNK = 128 << 10, PASSED_AT_ONCE = 1 << 20 };

struct loading {
	struct cassette *c;
	struct sha256 **sending; /* of the bodies of requests; NULL if one has ended */
	size_t cap;
	struct cassette_line line;
};

static int bad_order(struct cloche_err *err, const char *why)
{
	return err_set(err, E_CORRUPT, "it is not what may come here: %s", why);
}

static int grow(struct loading *q, struct cloche_err *err)
{
	struct cassette *c = q->c;
	size_t cap = q->cap ? q->cap * 2 : 64;
	struct cassette_exchange *v;
	struct sha256 **sending;

	if (c->n < q->cap)
		return 0;
	if (c->n >= CASSETTE_EXCHANGES_MAX)
		return err_set(err, E_LIMIT, "a cassette has at most %d exchanges",
			CASSETTE_EXCHANGES_MAX);
	v = reallocarray(c->v, cap, sizeof(*v));
	if (v)
		c->v = v;
	sending = reallocarray(q->sending, cap, sizeof(struct sha256 *));
	if (sending)
		q->sending = sending;
	if (!v || !sending)
		return err_nomem(err);
	q->cap = cap;
	return 0;
}

void cassette_digest_request(struct str method, struct str url, char ret[SHA256_HEX_MAX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add_framed(&h, method);
	sha256_add(&h, url);
	sha256_hex(&h, ret);
}

static int begin_exchange(struct loading *q, uint64_t at, struct cloche_err *err)
{
	struct cassette *c = q->c;
	struct sha256 *s;
	int r;

	if (c->n > 0 && q->line.number <= c->v[c->n - 1].number)
		return bad_order(err, "the number of a request is not above the one before");
	r = grow(q, err);
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err);
	sha256_init(s);
	q->sending[c->n] = s;
	c->v[c->n++] = (struct cassette_exchange){.number = q->line.number,
		.usec = q->line.usec,
		.request_at = at,
		.refused_at = CASSETTE_NONE,
		.response_at = CASSETTE_NONE,
		.end_at = CASSETTE_NONE};
	cassette_digest_request(q->line.method, q->line.url, c->v[c->n - 1].asked);
	return 0;
}

size_t cassette_first(const struct cassette *c, uint64_t after)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->v[middle].number <= after)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct cassette_exchange *cassette_find(const struct cassette *c, uint64_t number)
{
	size_t i = number > 0 ? cassette_first(c, number - 1) : c->n;

	return i < c->n && c->v[i].number == number ? &c->v[i] : NULL;
}

static void add_piece(struct cassette_body *b, uint64_t at, uint64_t end, size_t n)
{
	if (b->end == 0)
		b->at = at;
	b->end = end;
	b->bytes += n;
}

static void end_sending(struct loading *q, struct cassette_exchange *e)
{
	struct sha256 **s = &q->sending[e - q->c->v];

	e->sent.whole = !e->cut;
	sha256_hex(*s, e->sent_digest);
	free(*s);
	*s = NULL;
}

/* Take one line of an exchange that has begun; it lies from at to end. */
static int take_part(struct loading *q, struct cassette_exchange *e, uint64_t at, uint64_t end,
	struct cloche_err *err)
{
	const struct cassette_line *l = &q->line;
	struct sha256 *s = q->sending[e - q->c->v];
	bool is_sending = l->kind == CASSETTE_SENT || l->kind == CASSETTE_SENT_END;

	if (is_sending && !s)
		return bad_order(err, "the request has ended");
	if (!is_sending && l->kind != CASSETTE_CUT && e->end_at != CASSETTE_NONE)
		return bad_order(err, "the answer has ended");
	if (e->cut && (l->kind == CASSETTE_SENT || l->kind == CASSETTE_DATA))
		return bad_order(err, "the bodies were cut");
	switch (l->kind) {
	case CASSETTE_REQUEST:
		break;
	case CASSETTE_SENT:
		sha256_add(s, l->piece);
		add_piece(&e->sent, at, end, l->piece.n);
		break;
	case CASSETTE_SENT_END:
		end_sending(q, e);
		break;
	case CASSETTE_REFUSED:
		if (e->refused || e->response_at != CASSETTE_NONE)
			return bad_order(err, "it was answered");
		e->refused = true;
		e->refused_at = at;
		e->status = (uint16_t)l->status;
		break;
	case CASSETTE_RESPONSE:
		if (e->response_at != CASSETTE_NONE)
			return bad_order(err, "it was answered");
		e->response_at = at;
		e->status = (uint16_t)l->status;
		e->early = s != NULL;
		break;
	case CASSETTE_UPGRADED:
		e->upgraded = true;
		break;
	case CASSETTE_DATA:
		if (e->response_at == CASSETTE_NONE)
			return bad_order(err, "a piece of an answer without its head");
		add_piece(&e->received, at, end, l->piece.n);
		break;
	case CASSETTE_END:
		e->end_at = at;
		e->ended_usec = l->usec;
		e->broken = l->error.p != NULL;
		e->received.whole = !e->broken && !e->cut && e->response_at != CASSETTE_NONE;
		break;
	case CASSETTE_CUT:
		e->cut = true;
		break;
	}
	return 0;
}

static int cassette_take_line(
	struct loading *q, struct str text, uint64_t at, uint64_t end, struct cloche_err *err)
{
	struct cassette_exchange *e;
	int r = cassette_line_read(&q->line, text, err);

	if (r < 0)
		return r;
	if (q->c->cut)
		return bad_order(err, "the cassette has ended");
	if (q->line.kind == CASSETTE_REQUEST)
		return begin_exchange(q, at, err);
	if (q->line.number == 0) {
		q->c->cut = true;
		return 0;
	}
	e = cassette_find(q->c, q->line.number);
	return e ? take_part(q, e, at, end, err) : bad_order(err, "its exchange has no request");
}

/* As fd_next_line(), with err set. */
static int next_line(
	int fd, struct buf *b, uint64_t at, uint64_t end, struct str *ret, struct cloche_err *err)
{
	int r = fd_next_line(fd, b, at, end, ret);

	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == -E2BIG)
		return err_set(err, E_CORRUPT, "a line is too long");
	return r < 0 ? err_sys(err, -r, "read a cassette") : r;
}

static int load(struct loading *q, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT((size_t)CASSETTE_LINE_MAX + CHUNK);
	unsigned long long lines = 0;
	uint64_t at = 0;
	struct str text;
	struct stat st;
	int r;

	if (fstat(q->c->fd, &st) < 0)
		return err_sys(err, errno, "read a cassette");
	while ((r = next_line(q->c->fd, &b, at, (uint64_t)st.st_size, &text, err)) == 1) {
		size_t n = text.n + 1;

		lines++;
		if (text.n > 0)
			r = cassette_take_line(q, text, at, at + n, err);
		if (r < 0)
			return err_wrap(err, r, "line %llu", lines);
		buf_consume(&b, n);
		at += n;
	}
	return r < 0 ? err_wrap(err, r, "line %llu", lines + 1) : 0;
}

int cassette_load(struct cassette *c, int fd, struct cloche_err *err)
{
	struct loading q = {.c = c, .line = CASSETTE_LINE_INIT};
	int r;

	*c = (struct cassette){.fd = fd};
	r = load(&q, err);
	for (size_t i = 0; i < c->n; i++)
		free(q.sending[i]);
	free(q.sending);
	cassette_line_done(&q.line);
	if (r < 0)
		cassette_done(c);
	return r;
}

void cassette_done(struct cassette *c)
{
	free(c->v);
	*c = CASSETTE_INIT;
}

int cassette_read_at(
	const struct cassette *c, uint64_t at, struct cassette_line *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT((size_t)CASSETTE_LINE_MAX + CHUNK);
	struct str text;
	int r = next_line(c->fd, &b, at, at + CASSETTE_LINE_MAX + 1, &text, err);

	if (r == 0)
		return err_set(err, E_CORRUPT, "the cassette was changed while it was read");
	return r < 0 ? r : cassette_line_read(ret, text, err);
}

/* --- bodies --- */

void cassette_reading_begin(struct cassette_reading *r, const struct cassette *c,
	const struct cassette_exchange *e, enum cassette_kind kind)
{
	const struct cassette_body *b = kind == CASSETTE_SENT ? &e->sent : &e->received;

	buf_clear(&r->ahead);
	r->cassette = c;
	r->number = e->number;
	r->kind = kind;
	r->at = b->at;
	r->end = b->end;
}

/* Whether the beginning of the line shows that it belongs to another exchange. */
static bool is_of_another(struct str text, uint64_t number)
{
	struct str rest;
	uint64_t t, e;

	return cassette_line_begins(text, &rest, &t, &e) && e != number;
}

int cassette_reading_next(struct cassette_reading *r, struct str *ret, struct cloche_err *err)
{
	size_t passed = 0;

	while (r->at < r->end) {
		bool is_ours = false;
		struct str text;
		size_t n;
		int got = next_line(r->cassette->fd, &r->ahead, r->at, r->end, &text, err);

		if (got == 0)
			return err_set(
				err, E_CORRUPT, "the cassette was changed while it was read");
		if (got < 0)
			return got;
		n = text.n + 1;
		if (text.n > 0 && !is_of_another(text, r->number)) {
			got = cassette_line_read(&r->line, text, err);
			if (got < 0)
				return got;
			is_ours = r->line.number == r->number && r->line.kind == r->kind;
		}
		buf_consume(&r->ahead, n);
		r->at += n;
		if (is_ours) {
			*ret = r->line.piece;
			return 1;
		}
		passed += n;
		if (passed > PASSED_AT_ONCE)
			return 2;
	}
	return 0;
}

void cassette_reading_done(struct cassette_reading *r)
{
	buf_done(&r->ahead);
	cassette_line_done(&r->line);
	*r = CASSETTE_READING_INIT;
}
