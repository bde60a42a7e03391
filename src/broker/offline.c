/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-OFFLINE): a recorded exchange takes the place of an origin. It is a
 * connection (upstream.h) without a socket. Of the request's body only the digest is kept. When the
 * body has ended, an exchange is chosen by method and URL: the first unused one with the same body,
 * else the first unused one, else the last one. If the next exchange was answered before its
 * request had ended, it is chosen at once, as its client may wait for the answer. Surrogates differ
 * in each run, so headers are not compared.
 *
 * The cassette may come from a stranger. Its heads become answers only through the message model,
 * which checks each field. Its bodies are framed anew by their real length. It is read in pieces,
 * spread over iterations of the loop, and no faster than the gateway takes them. */
#include "broker/offline.h"
#include "base/fd.h"
#include "base/hash.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/response.h"
#include "broker/upstream.h"
#include "http/valid.h"
#include "record/cassette.h"

#include <errno.h>

enum { PIECES_AT_ONCE = 4 };

/* Exchanges of one method and URL. */
struct offline_group {
	UT_hash_handle hh;
	char asked[SHA256_HEX_MAX];
	uint32_t first, last; /* indices; before the first one all are used */
};

struct offline {
	int fd;
	struct cassette cassette;
	struct offline_group *groups;
	struct offline_entry {
		uint32_t next; /* of the same group; 0: none */
		bool used;
	} * entries; /* one for each exchange */
};

/* One answer. */
struct playing {
	struct offline_group *group;
	struct sha256 digest;                     /* of the request's body */
	const struct cassette_exchange *exchange; /* NULL: none is chosen yet */
	struct cassette_reading reading;
	struct str piece; /* the bytes of it that are still to be sent */
	uint64_t left;    /* with has_length: bytes of the body that are still to be sent */
	bool has_head, bodiless, has_length;
};

/* --- what there is --- */

struct offline *offline_free(struct offline *o)
{
	struct offline_group *g, *next;

	if (!o)
		return NULL;
	HASH_ITER (hh, o->groups, g, next) {
		HASH_DEL(o->groups, g);
		free(g);
	}
	cassette_done(&o->cassette);
	free(o->entries);
	fd_close(o->fd);
	free(o);
	return NULL;
}

static int add_exchange(struct offline *o, uint32_t i)
{
	const struct cassette_exchange *e = &o->cassette.v[i];
	struct offline_group *g = NULL;

	/* The recording of an upgraded connection cannot answer a request. */
	if (e->upgraded)
		return 0;
	HASH_FIND(hh, o->groups, e->asked, sizeof(g->asked), g);
	if (g) {
		o->entries[g->last].next = i;
		g->last = i;
		return 0;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	memcpy(g->asked, e->asked, sizeof(g->asked));
	g->first = g->last = i;
	HASH_ADD(hh, o->groups, asked, sizeof(g->asked), g);
	if (g->hh.tbl)
		return 0;
	free(g);
	return -ENOMEM;
}

int offline_start(struct broker *b, int fd, struct cloche_err *err)
{
	struct offline *o = calloc(1, sizeof(*o));
	int r;

	if (!o) {
		fd_close(fd);
		return err_nomem(err);
	}
	b->offline = o;
	o->fd = fd;
	r = cassette_load(&o->cassette, fd, err);
	if (r < 0)
		return err_wrap(err, r, "--offline");
	o->entries = calloc(o->cassette.n + 1, sizeof(*o->entries));
	if (!o->entries)
		return err_nomem(err);
	for (size_t i = 0; i < o->cassette.n; i++)
		if (add_exchange(o, (uint32_t)i) < 0)
			return err_nomem(err);
	return 0;
}

static struct offline_group *find_group(const struct stream *s)
{
	_cleanup_(buf_donep) struct buf url = BUF_INIT(CASSETTE_URL_MAX);
	struct offline_group *g = NULL;
	char asked[SHA256_HEX_MAX];

	if (tape_url(s, &url) < 0)
		return NULL;
	cassette_digest_request(http_head_method(&s->head), buf_str(&url), asked);
	HASH_FIND(hh, s->broker->offline->groups, asked, sizeof(asked), g);
	return g;
}

/* --- which one --- */

/* Return whether the request with this body may be the recorded one. The body is not known if the
 * recorded request was refused or broke off early. */
static bool may_be(const struct cassette_exchange *e, const char *body)
{
	return !e->sent.whole || strcmp(e->sent_digest, body) == 0;
}

/* Return the first unused exchange, or the last one if all are used. */
static uint32_t first_unused(struct offline *o, struct offline_group *g)
{
	uint32_t i = g->first;

	while (o->entries[i].used && o->entries[i].next)
		i = o->entries[i].next;
	g->first = i;
	return i;
}

/* Choose an exchange; there always is one. */
static const struct cassette_exchange *choose(
	struct offline *o, struct offline_group *g, const char *body)
{
	uint32_t unused = first_unused(o, g), i = unused;

	while (o->entries[i].used || !may_be(&o->cassette.v[i], body)) {
		if (!o->entries[i].next) {
			i = unused; /* the last one, if all are used */
			break;
		}
		i = o->entries[i].next;
	}
	o->entries[i].used = true;
	return &o->cassette.v[i];
}

/* Return the next exchange if it was answered before its request had ended, else NULL. */
static const struct cassette_exchange *choose_early(struct offline *o, struct offline_group *g)
{
	uint32_t i = first_unused(o, g);

	if (!o->cassette.v[i].early)
		return NULL;
	o->entries[i].used = true;
	return &o->cassette.v[i];
}

/* --- as a connection --- */

static struct playing *offline_of(const struct upstream *u)
{
	return u->protocol;
}

/* The answer is complete: finish the stream. */
static void offline_finish(struct upstream *u, struct stream *s)
{
	upstream_close(u);
	stream_note(s, "from a recording");
	stream_finish(s);
}

static int add_headers(struct cassette_line *l, struct http_fields *to)
{
	struct str name, value;
	int r = 0;

	for (size_t i = 0; r == 0 && cassette_header(l, i, &name, &value); i++)
		r = http_fields_add(to, name, value);
	return r;
}

/* RFC 9110 6.4.1. The length is that of the recorded body. */
static void offline_set_framing(struct playing *p, const struct stream *s, struct http_head *h)
{
	const struct cassette_exchange *e = p->exchange;
	struct str given = http_fields_get(&h->fields, STR("Content-Length"));
	uint64_t length;
	bool has_length = given.p && http_parse_length(given, &length) == 0;

	p->has_length = has_length && e->received.whole;
	p->left = e->received.bytes;
	p->bodiless = s->is_head || h->status == 204 || h->status == 304;
	if (p->bodiless) {
		if (has_length)
			http_head_set_body(h, HTTP_BODY_LENGTH, length);
		h->body = HTTP_BODY_NONE;
	} else if (p->has_length)
		http_head_set_body(h, HTTP_BODY_LENGTH, e->received.bytes);
	else
		http_head_set_body(h, HTTP_BODY_CHUNKED, 0);
}

/* Return false if the stream is over. */
static bool offline_send_head(struct upstream *u)
{
	_cleanup_(cassette_line_donep) struct cassette_line line = CASSETTE_LINE_INIT;
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct playing *p = offline_of(u);
	struct stream *s = u->stream;
	uint64_t at = p->exchange->response_at;

	if (at == CASSETTE_NONE) {
		refuse_upstream(s, 502, "not_recorded", "the recording has no answer to this");
		return false;
	}
	if (cassette_read_at(&s->broker->offline->cassette, at, &line, &err) < 0) {
		response_malformed(s, err.message);
		return false;
	}
	if (line.kind != CASSETTE_RESPONSE || line.status < 200 ||
		http_head_set_response(&head, line.status, STR("")) < 0 ||
		add_headers(&line, &head.fields) < 0) {
		response_malformed(s, "its recorded head could not be sent");
		return false;
	}
	head.version = HTTP_2; /* it may have trailers */
	offline_set_framing(p, s, &head);
	p->has_head = true;
	return response_head(s, &head);
}

/* Drop trailers that could change what the message is (RFC 9110 6.5.1). */
static void drop_framing(struct http_fields *f)
{
	for (unsigned i = f->n; i-- > 0;)
		if (f->v[i].hop || f->v[i].id == HTTP_F_HOST || f->v[i].id == HTTP_F_CONTENT_LENGTH)
			http_fields_remove_at(f, i);
}

static void end_answer(struct upstream *u)
{
	_cleanup_(cassette_line_donep) struct cassette_line line = CASSETTE_LINE_INIT;
	_cleanup_(http_fields_donep) struct http_fields trailers = HTTP_FIELDS_INIT;
	struct playing *p = offline_of(u);
	struct stream *s = u->stream;
	const struct cassette_exchange *e = p->exchange;

	if (!p->bodiless && !e->received.whole) {
		response_lost(s, "the recording has no more of it");
		return;
	}
	if (!p->bodiless && !p->has_length &&
		(cassette_read_at(&s->broker->offline->cassette, e->end_at, &line, NULL) < 0 ||
			add_headers(&line, &trailers) < 0)) {
		response_malformed(s, "its recorded trailers could not be sent");
		return;
	}
	drop_framing(&trailers);
	if (response_end(s, &trailers))
		offline_finish(u, s);
}

/* Send a piece of the body, as far as the gateway takes it. Return false if there is no more to do
 * now. */
static bool send_piece(struct upstream *u)
{
	struct playing *p = offline_of(u);
	struct stream *s = u->stream;
	struct cloche_err err = CLOCHE_ERR_INIT;
	size_t room = response_room(s);
	struct str bytes;
	int r = 1;

	u->paused = room == 0;
	if (u->paused)
		return false;
	if (p->piece.n == 0)
		r = p->bodiless ? 0 : cassette_reading_next(&p->reading, &p->piece, &err);
	if (r < 0)
		response_malformed(s, err.message);
	if (r == 0)
		end_answer(u);
	if (r <= 0)
		return false;
	if (r == 2) {
		upstream_work_later(u);
		return false;
	}
	bytes = str_prefix(p->piece, room);
	p->piece = str_from_index(p->piece, bytes.n);
	p->left -= MIN(p->left, (uint64_t)bytes.n);
	if (bytes.n > 0 && !response_data(s, bytes))
		return false;
	/* The client knows the length and may leave after the last byte, so send the end with
	 * it. */
	if (!p->has_length || p->left > 0)
		return true;
	end_answer(u);
	return false;
}

static void offline_work(struct upstream *u)
{
	struct playing *p = offline_of(u);

	if (!u->stream || !p->exchange || (!p->has_head && !offline_send_head(u)))
		return;
	for (unsigned i = 0; i < PIECES_AT_ONCE; i++)
		if (!u->stream || !send_piece(u))
			return;
	if (u->stream)
		upstream_work_later(u);
}

static void offline_answer(struct upstream *u, const struct cassette_exchange *e)
{
	struct playing *p = offline_of(u);
	struct stream *s = u->stream;

	p->exchange = e;
	if (e->refused) {
		s->verdict.allow = false; /* for the log */
		stream_note(s, "refused, as it was recorded");
		tape_refused(s, e->status);
	}
	cassette_reading_begin(&p->reading, &s->broker->offline->cassette, e, CASSETTE_DATA);
	upstream_work_later(u);
}

static void take_body(struct upstream *u, struct stream *s)
{
	struct playing *p = offline_of(u);
	struct str body = request_body(s);
	struct offline *o = s->broker->offline;
	char digest[SHA256_HEX_MAX];

	if (body.n > 0) {
		sha256_add(&p->digest, body);
		request_body_taken(s, body.n);
	}
	if (p->exchange || !request_body_complete(s))
		return;
	sha256_hex(&p->digest, digest);
	offline_answer(u, choose(o, p->group, digest));
}

static void offline_begin(struct upstream *u, struct stream *s)
{
	const struct cassette_exchange *early = NULL;

	sha256_init(&offline_of(u)->digest);
	if (!request_body_complete(s))
		early = choose_early(s->broker->offline, offline_of(u)->group);
	if (early)
		offline_answer(u, early);
	take_body(u, s);
}

static void offline_end(struct upstream *u)
{
	cassette_reading_done(&offline_of(u)->reading);
	free(u->protocol);
}

/* There is no socket, and so no event. */
static const struct upstream_ops upstream_recorded = {
	.begin = offline_begin,
	.send = take_body,
	.resume = upstream_single_resume,
	.work = offline_work,
	.end = offline_end,
};

void offline_go(struct stream *s)
{
	struct upstream *u = calloc(1, sizeof(*u));
	struct playing *p = calloc(1, sizeof(*p));
	struct offline_group *g = find_group(s);

	if (!u || !p || !g) {
		free(u);
		free(p);
		refuse_upstream(s, 503, "out_of_memory", "no memory for an answer");
		return;
	}
	p->reading = CASSETTE_READING_INIT;
	p->group = g;
	u->broker = s->broker;
	u->fd = -1;
	u->ops = &upstream_recorded;
	u->protocol = p;
	u->stream = s;
	s->up = u;
	s->keep = false;
	offline_begin(u, s);
}

bool offline_is_early(const struct stream *s)
{
	struct offline *o = s->broker->offline;
	struct offline_group *g = o ? find_group(s) : NULL;

	return g && o->cassette.v[first_unused(o, g)].early;
}

void offline_decide(struct stream *s)
{
	if (s->kind != NET_KIND_HTTP) {
		refuse_offline(s, "what is no plain request cannot be answered from a recording");
		return;
	}
	if (!find_group(s)) {
		refuse_offline(s, "the recording has no request of this method and URL");
		return;
	}
	s->verdict.allow = true;
	request_ready(s);
}
