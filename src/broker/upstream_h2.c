/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: HTTP/2 on a connection to an origin. Each of the room's streams is one of
 * it (struct leg). Request bodies are pulled out of the streams' own memory as the origin's windows
 * let them go. What an answer brings goes on at once as far as the gateway takes it, and only then
 * may the origin send as much again; what the gateway does not take yet is held, at most a window
 * of each stream. All that is held together is bounded, too: above that, a connection that has a
 * part in it is not read, and new requests go by another. Below that, what is held does not count
 * for the connection, so that streams that stall do not keep others from going on.
 *
 * What is to be written, and what can be read, is done in work(), once for everything that happened
 * in an iteration of the loop: so small frames of many streams share records.
 *
 * A stream that the origin has not looked at (RFC 9113 8.7: GOAWAY, REFUSED_STREAM) is sent once
 * more, on another connection. */
#include "broker/state.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

enum {
	READS_AT_ONCE = 8,
	STREAM_WINDOW = 1024 * 1024,
	WINDOW = 4 * 1024 * 1024,
	HELD_MAX = 32 * 1024 * 1024, /* of all connections */
	HELD_LOW = HELD_MAX - STREAM_WINDOW,
	OUT_ENOUGH = 32 * 1024,
};
#define SILENT_USEC (5 * USEC_PER_SEC)

struct leg {
	struct leg *prev, *next;
	struct h2_origin *o;
	struct stream *s;
	struct h2_stream *st;
	struct buf held;     /* of the answer */
	bool started;        /* something of the answer has come */
	bool request_ended;  /* that was said */
	bool response_ended; /* the answer is complete, but for what is held */
	struct http_fields trailers;
};

struct h2_origin {
	struct upstream *u;
	struct h2 *h2;
	struct buf out;
	struct leg *legs;
	size_t held;
	uint64_t asked;        /* monotonic: the first request since something was read; 0: none */
	bool secret;           /* has sent one: memory is wiped */
	bool going;            /* no new streams */
	bool paused;           /* not reading */
	const char *malformed; /* why the last answer was refused */
};

static struct h2_origin *of(const struct upstream *u)
{
	return u->protocol;
}

/* By what the room does not read: nothing comes on it until that changes. */
static bool is_held_up(const struct h2_origin *o)
{
	return o->held > 0 && o->u->broker->held > HELD_MAX;
}

/* Less is held: who was held up goes on, though nothing may have happened on its connection. */
static void held_less(struct broker *b, size_t n)
{
	b->held -= n;
	if (!b->held_up || b->held > HELD_LOW)
		return;
	b->held_up = false;
	b->full = true; /* and no longer when it is looked at: all go on */
	broker_flush_later(b);
}

/* --- legs --- */

static void unhold(struct leg *l, size_t n)
{
	buf_consume(&l->held, n);
	l->o->held -= n;
	held_less(l->o->u->broker, n);
}

/* The stream and its leg are parted; what is to become of either is the caller's. */
static void leg_free(struct leg *l)
{
	struct h2_origin *o = l->o;

	unhold(l, buf_len(&l->held));
	l->s->up = NULL;
	l->s->leg = NULL;
	DL_DELETE(o->legs, l);
	if (l->s->secret)
		buf_done_wiped(&l->held);
	else
		buf_done(&l->held);
	http_fields_done(&l->trailers);
	free(l);
	o->u->used = true;
	upstream_work_later(o->u);
}

/* Takes it off this connection to be sent once more, where the origin cannot have done anything
 * about it (harmless). */
static bool take_back(struct leg *l, bool harmless)
{
	struct stream *s = l->s;

	if (l->started || s->retried || !s->keep || !harmless)
		return false;
	s->retried = true;
	leg_free(l);
	request_body_rewind(s);
	return true;
}

/* The connection ended. */
static void lost(struct h2_origin *o, const char *why)
{
	struct upstream *u = o->u;
	bool used = u->used;
	struct leg *l;

	pool_remove(u);
	o->going = true;
	while ((l = o->legs)) {
		struct stream *s = l->s;

		/* RFC 9112 9.3.1; each by itself, as one of them may be why it ended. */
		if (take_back(l, s->idempotent && used)) {
			dial_start(s);
			continue;
		}
		leg_free(l);
		response_lost(s, why);
	}
	upstream_close(u);
}

/* --- the answer --- */

static void finish(struct leg *l, struct http_fields *trailers)
{
	struct stream *s = l->s;
	bool sent = l->request_ended && request_body(s).n == 0;

	if (!response_end(s, trailers))
		return;
	if (l->st && sent)
		h2_stream_set_user(l->st, NULL);
	else if (l->st)
		h2_reset(l->st, H2_NO_ERROR);
	leg_free(l);
	stream_finish(s);
}

/* Passes on what the gateway takes. Returns how much that was, or -1 where the exchange is over. */
static ssize_t pass_on(struct leg *l, struct str bytes)
{
	size_t done = 0, n;

	while ((n = MIN(response_room(l->s), bytes.n - done)) > 0) {
		struct h2_stream *st = l->st;

		if (!response_data(l->s, str_make(bytes.p + done, n)))
			return -1;
		if (st)
			h2_consume(st, n);
		done += n;
	}
	return (ssize_t)done;
}

static void on_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct h2_origin *o = arg;
	struct leg *l = h2_stream_user(st);
	ssize_t n = 0;

	if (!l)
		return;
	l->s->active = loop_now(o->u->broker->loop);
	if (buf_len(&l->held) == 0)
		n = pass_on(l, bytes);
	if (n < 0 || (size_t)n == bytes.n)
		return;
	bytes = str_from_index(bytes, (size_t)n);
	if (buf_add_str(&l->held, bytes) < 0) {
		refuse_upstream(l->s, 503, "out_of_memory", "no memory for an answer");
		return;
	}
	o->held += bytes.n;
	o->u->broker->held += bytes.n;
	if (o->u->broker->held <= HELD_MAX)
		h2_consume_ahead(st, bytes.n);
}

/* The gateway takes more. */
static void drain(struct leg *l)
{
	ssize_t n = pass_on(l, buf_str(&l->held));

	if (n < 0)
		return;
	unhold(l, (size_t)n);
	if (buf_len(&l->held) > 0)
		return;
	if (l->response_ended)
		finish(l, &l->trailers);
	else
		buf_done(&l->held);
}

static void on_head(void *arg, struct h2_stream *st, struct http_head *h)
{
	struct h2_origin *o = arg;
	struct leg *l = h2_stream_user(st);

	if (!l)
		return;
	l->s->active = loop_now(o->u->broker->loop);
	if (!l->started) {
		l->started = true;
		request_body_commit(l->s);
	}
	if (h->status < 200)
		(void)!response_interim(l->s, h);
	else
		(void)!response_head(l->s, h);
}

static void on_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct leg *l = h2_stream_user(st);

	(void)arg;
	if (!l)
		return;
	if (buf_len(&l->held) == 0) {
		finish(l, trailers);
		return;
	}
	l->response_ended = true;
	if (http_fields_copy(&l->trailers, trailers) < 0)
		refuse_upstream(l->s, 503, "out_of_memory", "no memory for an answer");
}

/* Reset by the origin, or by us for what it sent. */
static void on_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct h2_origin *o = arg;
	struct leg *l = h2_stream_user(st);
	struct stream *s;
	char why[NOTE_MAX];

	if (!l)
		return;
	s = l->s;
	if (l->response_ended) { /* what is held goes on nevertheless */
		l->st = NULL;
		return;
	}
	if (error == H2_HTTP_1_1_REQUIRED && !s->retried)
		s->http1 = true;
	if (take_back(l, error == H2_REFUSED_STREAM || error == H2_HTTP_1_1_REQUIRED)) {
		request_go(s, true);
		return;
	}
	leg_free(l);
	if (error == H2_PROTOCOL_ERROR && o->malformed) {
		response_malformed(s, o->malformed);
		o->malformed = NULL;
		return;
	}
	if (error == H2_CANCEL && s->head_sent) {
		stream_note(s, "%s cancelled its answer", s->host.text);
		stream_reset(s, NET_RESET_CANCELLED);
		return;
	}
	snprintf(why, sizeof(why), "the stream was reset (%s)", h2_error_name(error));
	response_lost(s, why);
}

static void on_malformed(void *arg, const struct http_head *head, const char *why)
{
	struct h2_origin *o = arg;

	(void)head;
	o->malformed = why;
}

static void on_goaway(void *arg, enum h2_error error)
{
	struct h2_origin *o = arg;

	(void)error;
	o->going = true;
}

/* --- the request --- */

static struct str on_body(void *arg, struct h2_stream *st)
{
	const struct leg *l = h2_stream_user(st);

	(void)arg;
	return l ? request_body(l->s) : STR_NULL;
}

static void on_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct leg *l = h2_stream_user(st);

	(void)arg;
	request_body_taken(l->s, n);
}

static void send_more(struct upstream *u, struct stream *s)
{
	struct leg *l = s->leg;

	if (l->request_ended || !l->st)
		return;
	if (request_body_complete(s)) {
		l->request_ended = true;
		if (h2_end(l->st, &s->trailers) < 0) {
			refuse_upstream(
				s, 503, "out_of_memory", "no memory for the request's body");
			return;
		}
	} else {
		h2_wake(l->st);
	}
	upstream_work_later(u);
}

static int send_head(struct h2_origin *o, struct leg *l)
{
	struct stream *s = l->s;
	bool ends = request_body_complete(s) && request_body(s).n == 0 && s->trailers.n == 0;
	unsigned flags = (ends ? H2_END : 0) | (s->te_trailers ? H2_TE_TRAILERS : 0) |
			 (s->secret ? H2_SECRET : 0);
	int r = h2_request(o->h2, &s->head, flags, l, &l->st);

	if (r == 0) {
		l->request_ended = ends;
		o->secret |= s->secret;
	}
	return r;
}

static void begin(struct upstream *u, struct stream *s)
{
	struct h2_origin *o = of(u);
	struct leg *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (l) {
		l->o = o;
		l->s = s;
		l->held = BUF_INIT(2 * STREAM_WINDOW);
		l->trailers = HTTP_FIELDS_INIT;
		r = send_head(o, l);
	}
	if (r < 0) {
		free(l);
		s->up = NULL;
		if (r == -EAGAIN) /* it is about to close */
			dial_start(s);
		else if (r == -EINVAL)
			refuse_upstream(s, 502, "request_not_sent",
				"the request has a field that cannot be sent");
		else
			refuse_upstream(s, 503, "out_of_memory", "no memory for a request");
		upstream_work_later(u);
		return;
	}
	DL_APPEND(o->legs, l);
	if (o->asked == 0)
		o->asked = loop_now(u->broker->loop);
	s->leg = l;
	s->keep = !s->retried; /* until the origin has looked at it */
	pool_share(u);
	send_more(u, s);
	upstream_work_later(u);
}

/* --- the connection --- */

/* False where it is broken. */
static bool flush(struct h2_origin *o)
{
	for (;;) {
		size_t n = 0;
		enum tls_io io;

		if (h2_output(o->h2, &o->out, OUT_ENOUGH) < 0)
			return false;
		if (buf_len(&o->out) == 0)
			break;
		io = upstream_write(o->u, buf_str(&o->out), &n);
		if (io == TLS_IO_WRITE || io == TLS_IO_READ)
			return true;
		if (io != TLS_IO_OK)
			return false;
		if (o->secret)
			explicit_bzero(buf_data(&o->out), n);
		buf_consume(&o->out, n);
	}
	if (!o->legs)
		buf_done(&o->out);
	return true;
}

/* What the broker asks for itself does not wait for the gateway, nor does it tell when to go on. */
static bool serves_room(const struct h2_origin *o)
{
	const struct leg *l;

	DL_FOREACH (o->legs, l)
		if (!l->s->fetch)
			return true;
	return false;
}

static bool may_read(struct h2_origin *o)
{
	struct broker *b = o->u->broker;

	if (chan_pending(&b->net) > OUT_HIGH && serves_room(o)) {
		b->full = true;
		return false;
	}
	if (!is_held_up(o))
		return true;
	b->held_up = true;
	return false;
}

static void watch(struct h2_origin *o)
{
	bool out = o->u->want_out || buf_len(&o->out) > 0;

	if (!upstream_watch(o->u, !o->paused, out))
		lost(o, "no memory to watch a connection");
}

/* Reads and understands some. False where nothing more is there, or o is gone. */
static bool read_some(struct h2_origin *o)
{
	struct upstream *u = o->u;
	size_t n = 0;
	enum tls_io io;

	o->paused = !may_read(o);
	if (o->paused)
		return false;
	io = upstream_read(u, u->broker->scratch, SCRATCH, &n);
	if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
		u->want_out = io == TLS_IO_WRITE;
		return false;
	}
	if (io != TLS_IO_OK) {
		lost(o, upstream_error(u));
		return false;
	}
	o->asked = 0;
	if (h2_feed(o->h2, str_make(u->broker->scratch, n)) < 0) {
		char why[NOTE_MAX];

		snprintf(why, sizeof(why), "HTTP/2: %s", h2_error_text(o->h2));
		(void)flush(o); /* its GOAWAY */
		lost(o, why);
		return false;
	}
	return true;
}

/* Where it belongs in the pool, by what it can do. */
static void place(struct h2_origin *o)
{
	struct upstream *u = o->u;

	o->going |= h2_is_done(o->h2);
	if (o->going) {
		pool_remove(u);
		if (!o->legs)
			upstream_close(u);
		else if (h2_is_done(o->h2))
			lost(o, h2_error_text(o->h2));
	} else if (!o->legs && (u->shared || !u->bucket)) {
		pool_put(u);
	}
}

static void work(struct upstream *u)
{
	struct h2_origin *o = of(u);
	int reads = 0;

	while (reads < READS_AT_ONCE && !u->dead && !(reads > 0 && u->drained) && read_some(o))
		reads++;
	if (u->dead)
		return;
	if (!flush(o)) {
		lost(o, "the connection was lost");
		return;
	}
	place(o);
	if (u->dead)
		return;
	watch(o);
	if (!u->dead && reads == READS_AT_ONCE && !u->drained)
		upstream_work_later(u);
}

static void on_event(struct upstream *u, uint32_t events)
{
	(void)events;
	u->want_out = false;
	work(u);
}

static void resume(struct upstream *u, struct stream *s)
{
	struct leg *l = s->leg;

	if (buf_len(&l->held) > 0) {
		drain(l);
		upstream_work_later(u); /* the origin is to know */
	} else if (of(u)->paused && may_read(of(u))) {
		upstream_work_later(u);
	}
}

static void detach(struct upstream *u, struct stream *s)
{
	struct leg *l = s->leg;

	(void)u;
	if (l->st)
		h2_reset(l->st, H2_CANCEL);
	leg_free(l);
}

/* One that owes an answer and says nothing may be dead: no more requests are bound to it. */
static bool is_silent(const struct h2_origin *o)
{
	return o->legs && o->asked != 0 && loop_now(o->u->broker->loop) - o->asked > SILENT_USEC;
}

static unsigned room(const struct upstream *u)
{
	const struct h2_origin *o = of(u);

	return u->dead || o->going || is_silent(o) || is_held_up(o) ? 0 : h2_streams_free(o->h2);
}

static void end(struct upstream *u)
{
	struct h2_origin *o = of(u);

	h2_free(o->h2);
	buf_done_wiped(&o->out);
	free(o);
}

int upstream_h2_start(struct upstream *u)
{
	static const struct h2_handlers handlers = {.head = on_head,
		.data = on_data,
		.end = on_end,
		.closed = on_closed,
		.body = on_body,
		.sent = on_sent,
		.malformed = on_malformed,
		.goaway = on_goaway};
	struct h2_origin *o = calloc(1, sizeof(*o));
	struct h2_config config = {.role = H2_CLIENT,
		.on = &handlers,
		.arg = o,
		.stream_window = STREAM_WINDOW,
		.window = WINDOW,
		.wipe = true};

	if (!o)
		return -ENOMEM;
	o->u = u;
	o->out = BUF_INIT(OUT_ENOUGH + H2_OUT_MIN);
	if (h2_new(&config, &o->h2, NULL) < 0) {
		free(o);
		return -ENOMEM;
	}
	u->protocol = o;
	u->ops = &upstream_h2;
	upstream_work_later(u);
	return 0;
}

const struct upstream_ops upstream_h2 = {
	.begin = begin,
	.send = send_more,
	.resume = resume,
	.detach = detach,
	.event = on_event,
	.work = work,
	.room = room,
	.end = end,
};
