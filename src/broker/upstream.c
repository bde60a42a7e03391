/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one connection to an origin: TLS handshake, then one request and its
 * response after the other. It reads no more than the gateway takes (pump), so nothing of a
 * response is ever kept here. It writes what stands in the stream's buffer; bytes that went out on
 * a connection that was used before stay in the buffer until the first byte of the response, so
 * that a request can be sent once more when the origin had already given the connection up
 * (RFC 9112 9.3.1: only for idempotent methods). */
#include "base/fd.h"
#include "broker/state.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READS_AT_ONCE = 8 };

static void on_io(struct loop_io *io, uint32_t events);

static void free_upstream(struct upstream *u)
{
	http_body_done(&u->body);
	http_head_done(&u->head);
	http_fields_done(&u->trailers);
	free(u);
}

static void pump(struct upstream *u);

static void on_job(struct loop_job *job)
{
	struct upstream *u = container_of(job, struct upstream, job);

	if (!u->dead)
		pump(u);
}

void upstreams_reap(struct broker *b, bool all)
{
	struct upstream *u, **at = &b->dead_upstreams;

	while ((u = *at)) {
		if (u->job.queued && !all) { /* the loop still holds it */
			broker_flush_later(b);
			at = &u->next;
			continue;
		}
		*at = u->next;
		free_upstream(u);
	}
}

void upstream_close(struct upstream *u)
{
	if (u->dead)
		return;
	u->dead = true;
	pool_remove(u);
	if (u->stream)
		u->stream->up = NULL;
	u->stream = NULL;
	loop_io_remove(&u->io);
	u->tls = tls_client_free(u->tls);
	u->fd = fd_close(u->fd);
	u->next = u->broker->dead_upstreams;
	u->broker->dead_upstreams = u;
	broker_flush_later(u->broker);
}

static bool has_output(const struct upstream *u)
{
	const struct stream *s = u->stream;

	return s && u->state == UP_ACTIVE && !u->write_lost && s->out_done < buf_len(&s->out);
}

bool upstream_request_sent(const struct upstream *u)
{
	return u->stream && u->stream->state == STREAM_HALF && !u->write_lost && !has_output(u);
}

static void watch_failed(struct upstream *u)
{
	if (u->stream)
		response_eof(u, false, "no memory to watch a connection");
	else
		upstream_close(u);
}

/* While nothing is read, a connection that the origin has broken would be reported for ever: it is
 * not watched at all then, and found broken when it is read again. */
static void set_events(struct upstream *u)
{
	uint32_t events = 0;

	if (u->dead)
		return;
	if (!u->paused)
		events |= EPOLLIN;
	if (u->want_out || has_output(u))
		events |= EPOLLOUT;
	if (events == 0)
		loop_io_remove(&u->io);
	else if (u->io.loop)
		loop_io_set(&u->io, events);
	else if (loop_io_add(u->broker->loop, &u->io, u->fd, events, on_io) < 0)
		watch_failed(u);
}

/* Reads at most n bytes. */
static enum tls_io read_some(struct upstream *u, char *p, size_t n, size_t *ret)
{
	ssize_t r;

	if (u->tls)
		return tls_client_read(u->tls, p, n, ret);
	r = recv(u->fd, p, n, 0);
	if (r > 0) {
		*ret = (size_t)r;
		return TLS_IO_OK;
	}
	if (r == 0)
		return TLS_IO_EOF;
	return errno == EAGAIN || errno == EINTR ? TLS_IO_READ : TLS_IO_CUT;
}

static enum tls_io write_some(struct upstream *u, struct str s, size_t *ret)
{
	ssize_t r;

	if (u->tls)
		return tls_client_write(u->tls, s.p, s.n, ret);
	r = send(u->fd, s.p, s.n, MSG_NOSIGNAL);
	if (r > 0) {
		*ret = (size_t)r;
		return TLS_IO_OK;
	}
	return errno == EAGAIN || errno == EINTR ? TLS_IO_WRITE : TLS_IO_CUT;
}

/* The origin takes no more of the request. It may still answer (413, 401): that is read first. */
static void write_failed(struct upstream *u)
{
	struct stream *s = u->stream;

	u->write_lost = true;
	if (s->keep)
		return; /* it may be sent once more */
	buf_clear(&s->out);
	s->out_done = 0;
	s->discard = true;
	stream_drained(s);
}

void upstream_send(struct upstream *u)
{
	struct stream *s = u->stream;

	while (has_output(u)) {
		size_t n = 0;
		enum tls_io io = write_some(u, str_from_index(buf_str(&s->out), s->out_done), &n);

		if (io == TLS_IO_WRITE || io == TLS_IO_READ)
			break;
		if (io != TLS_IO_OK) {
			write_failed(u);
			break;
		}
		s->out_done += n;
		s->active = loop_now(u->broker->loop);
		if (buf_len(&s->out) > REPLAY_MAX)
			s->keep = false;
		if (!s->keep) {
			buf_consume(&s->out, s->out_done);
			s->out_done = 0;
		}
	}
	if (buf_len(&s->out) - s->out_done <= REQUEST_LOW)
		stream_drained(s);
	set_events(u);
}

/* How much may be read now: what the gateway takes of this stream, and of all of them. */
static size_t may_read(const struct upstream *u)
{
	if (chan_pending(&u->broker->net) > OUT_HIGH)
		return 0;
	return MIN((size_t)SCRATCH, (size_t)u->stream->window_out);
}

static void pump(struct upstream *u)
{
	struct broker *b = u->broker;

	for (int i = 0; i < READS_AT_ONCE; i++) {
		size_t max, n = 0;
		enum tls_io io;

		if (u->dead || u->state != UP_ACTIVE)
			return;
		max = may_read(u);
		u->paused = max == 0;
		if (u->paused) {
			b->full |= chan_pending(&b->net) > OUT_HIGH;
			set_events(u);
			return;
		}
		io = read_some(u, b->scratch, max, &n);
		if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
			u->want_out = io == TLS_IO_WRITE;
			set_events(u);
			return;
		}
		if (io != TLS_IO_OK) {
			response_eof(u, io == TLS_IO_EOF,
				u->tls ? tls_client_error(u->tls, NULL)
				       : "the connection was lost");
			return;
		}
		response_feed(u, str_make(b->scratch, n));
	}
	if (!u->dead)
		loop_defer(b->loop, &u->job, on_job);
}

void upstream_resume(struct upstream *u)
{
	if (u->dead || !u->paused || may_read(u) == 0)
		return;
	u->paused = false;
	/* What TLS has read already makes no event. */
	loop_defer(u->broker->loop, &u->job, on_job);
}

static void handshake(struct upstream *u)
{
	struct stream *s = u->stream;
	enum tls_trouble kind;
	enum tls_io io = u->tls ? tls_client_handshake(u->tls) : TLS_IO_OK;
	char message[NOTE_MAX];

	u->want_out = io == TLS_IO_WRITE;
	if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
		set_events(u);
		return;
	}
	if (io == TLS_IO_OK) {
		u->state = UP_ACTIVE;
		response_begin(u);
		upstream_send(u);
		return;
	}
	snprintf(message, sizeof(message), "TLS to %s failed: %s", s->host.text,
		tls_client_error(u->tls, &kind));
	refuse_upstream(s, 502,
		kind == TLS_TROUBLE_CERTIFICATE ? "upstream_certificate" : "upstream_tls", message);
}

/* An idle connection: session tickets may come; anything else, the end included, ends it. */
static void idle_event(struct upstream *u)
{
	char c;
	size_t n;

	if (read_some(u, &c, 1, &n) != TLS_IO_READ)
		upstream_close(u);
}

void upstream_release(struct upstream *u)
{
	u->stream->up = NULL;
	u->stream = NULL;
	u->state = UP_IDLE;
	u->used = true;
	u->paused = u->want_out = false;
	set_events(u);
	/* Whatever TLS has read beyond the response would become the next one's beginning. */
	if (!u->dead && u->tls && tls_client_has_pending(u->tls))
		idle_event(u);
	if (!u->dead)
		pool_put(u);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct upstream *u = container_of(io, struct upstream, io);

	switch (u->state) {
	case UP_HANDSHAKE:
		handshake(u);
		return;
	case UP_IDLE:
		idle_event(u);
		return;
	case UP_ACTIVE:
		break;
	}
	if (u->want_out)
		events |= EPOLLIN; /* a read that waited for writability */
	u->want_out = false;
	if ((events & EPOLLOUT) && has_output(u))
		upstream_send(u);
	if (!u->dead && (events & ~(uint32_t)EPOLLOUT))
		pump(u);
}

static void attach(struct upstream *u, struct stream *s)
{
	u->stream = s;
	s->up = u;
	s->out_done = 0;
	u->paused = u->write_lost = u->want_out = false;
}

/* A secret goes out on nothing but verified TLS: what has another scheme is not ours. */
static bool fits(const struct upstream *u, const struct stream *s)
{
	return (u->tls != NULL) == (s->scheme == NET_HTTPS);
}

void upstream_attach(struct upstream *u, struct stream *s)
{
	if (!fits(u, s)) {
		upstream_close(u);
		dial_start(s);
		return;
	}
	attach(u, s);
	u->state = UP_ACTIVE;
	s->keep = s->idempotent && !s->retried;
	response_begin(u);
	upstream_send(u);
}

void upstream_new(struct stream *s, int fd)
{
	struct broker *b = s->broker;
	struct upstream *u = calloc(1, sizeof(*u));
	struct str host = host_str(&s->host);
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (!u) {
		fd_close(fd);
		refuse_upstream(s, 503, "out_of_memory", "no memory for a connection");
		return;
	}
	u->broker = b;
	u->fd = fd;
	u->state = UP_HANDSHAKE;
	u->head = HTTP_HEAD_INIT;
	u->trailers = HTTP_FIELDS_INIT;
	pool_key(s, u->key);
	attach(u, s);
	s->active = loop_now(b->loop);
	s->keep = false;
	if (s->host.kind == HOST_IPV6)
		host = str_make(host.p + 1, host.n - 2);
	if (s->scheme == NET_HTTPS &&
		tls_client_new(b->trust, fd, host, s->port, &u->tls, &err) < 0) {
		refuse_upstream(s, 502, "upstream_tls", err.message);
		return;
	}
	handshake(u);
}
