/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one connection to an origin, from the handshake to its end. After TLS has
 * verified the origin, the protocol is known, and a table of functions takes over (upstream_h1.c,
 * upstream_h2.c, tunnel.c). Those that serve one stream at a time share how they read and wait
 * (upstream_single_*). A closed connection is freed when no caller further up the stack can still
 * look at it. */
#include "broker/upstream.h"
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/dial.h"
#include "broker/origin.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/response.h"
#include "broker/ssh.h"
#include "broker/stream.h"
#include "ipc/netchan.h"
#include "ipc/sshleg.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

/* Reads of a TLS record each: half a window, which the gateway passes on while the other half is
 * read. */
enum { READS_AT_ONCE = 4 };

static void on_io(struct loop_io *io, uint32_t events);

static void upstream_on_job(struct loop_job *job)
{
	struct upstream *u = container_of(job, struct upstream, job);

	if (!u->dead && u->ops)
		u->ops->work(u);
}

void upstream_work_later(struct upstream *u)
{
	loop_defer(u->broker->loop, &u->job, upstream_on_job);
}

static void free_upstream(struct upstream *u)
{
	if (u->ops && u->ops->end)
		u->ops->end(u);
	buf_done(&u->answer);
	free(u);
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

void upstream_send(struct stream *s)
{
	if (s->up && s->up->ops)
		s->up->ops->send(s->up, s);
}

void upstream_resume(struct stream *s)
{
	if (s->up && s->up->ops)
		s->up->ops->resume(s->up, s);
}

void upstream_detach(struct stream *s)
{
	struct upstream *u = s->up;

	pool_leave(s);
	s->up = NULL;
	if (!u)
		return;
	if (u->ops && u->ops->detach)
		u->ops->detach(u, s);
	else
		upstream_close(u);
}

bool upstream_watch(struct upstream *u, bool in, bool out)
{
	uint32_t events = (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0);

	if (events == 0)
		loop_io_remove(&u->io);
	else if (u->io.loop)
		loop_io_set(&u->io, events);
	else
		return loop_io_add(u->broker->loop, &u->io, u->fd, events, on_io) == 0;
	return true;
}

enum tls_io upstream_read(struct upstream *u, char *p, size_t n, size_t *ret)
{
	enum tls_io io;
	ssize_t r;

	if (u->tls) {
		io = tls_client_read(u->tls, p, n, ret);
		u->drained = io == TLS_IO_OK && !tls_client_has_pending(u->tls);
		return io;
	}
	r = recv(u->fd, p, n, 0);
	u->drained = r > 0 && (size_t)r < n;
	if (r > 0) {
		*ret = (size_t)r;
		return TLS_IO_OK;
	}
	if (r == 0)
		return TLS_IO_EOF;
	return errno == EAGAIN || errno == EINTR ? TLS_IO_READ : TLS_IO_CUT;
}

enum tls_io upstream_write(struct upstream *u, struct str s, size_t *ret)
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

const char *upstream_error(const struct upstream *u)
{
	return u->tls ? tls_client_error(u->tls, NULL) : "the connection was lost";
}

/* --- one stream at a time --- */

/* If the connection were watched while there is nothing to read or write, epoll would report again
 * and again that the origin has broken it. So it is not watched then; the next read finds that it
 * is broken. */
void upstream_single_watch(struct upstream *u)
{
	if (u->dead || upstream_watch(u, !u->paused && !u->in_ended,
			       u->want_out || (u->stream && u->ops->has_output(u))))
		return;
	if (u->stream)
		response_lost(u->stream, "no memory to watch a connection");
	else
		upstream_close(u);
}

void upstream_single_work(struct upstream *u)
{
	const struct upstream_ops *ops = u->ops;
	struct broker *b = u->broker;

	for (int i = 0; i < READS_AT_ONCE; i++) {
		size_t max, n = 0;
		enum tls_io io;

		if (u->dead || u->ops != ops || !u->stream || u->in_ended)
			return;
		if (i > 0 && u->drained) {
			fd_acknowledge(u->fd);
			upstream_single_watch(u);
			return;
		}
		max = response_room(u->stream);
		u->paused = max == 0;
		if (u->paused) {
			upstream_single_watch(u);
			return;
		}
		io = upstream_read(u, b->scratch, max, &n);
		if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
			u->want_out = io == TLS_IO_WRITE;
			fd_acknowledge(u->fd);
			upstream_single_watch(u);
			return;
		}
		if (io != TLS_IO_OK) {
			ops->eof(u, io == TLS_IO_EOF);
			return;
		}
		ops->take(u, str_make(b->scratch, n));
	}
	if (!u->dead)
		upstream_work_later(u);
}

void upstream_single_resume(struct upstream *u, struct stream *s)
{
	if (!u->paused || response_room(s) == 0)
		return;
	u->paused = false;
	/* Bytes that TLS has already read cause no event. */
	upstream_work_later(u);
}

/* On an idle connection only session tickets may come. Anything else, or its end, closes it. */
static void single_idle_event(struct upstream *u)
{
	char c;
	size_t n;

	if (upstream_read(u, &c, 1, &n) != TLS_IO_READ)
		upstream_close(u);
}

void upstream_single_event(struct upstream *u, uint32_t events)
{
	if (!u->stream) {
		single_idle_event(u);
		return;
	}
	if (u->want_out)
		events |= EPOLLIN; /* a read that waited for writability */
	u->want_out = false;
	if (events & EPOLLOUT)
		u->ops->send(u, u->stream);
	if (!u->dead && (events & ~(uint32_t)EPOLLOUT))
		upstream_single_work(u);
}

/* --- the beginning --- */

static void upstream_begin(struct upstream *u, struct stream *s)
{
	if (s->probe) {
		origin_probed(s, u);
		return;
	}
	s->up = u;
	u->stream = u->ops->room ? NULL : s;
	s->went_out = true;
	request_body_rewind(s);
	expect_begin(s);
	u->ops->begin(u, s);
}

/* The protocol is known: start it. */
static void established(struct upstream *u)
{
	struct stream *s = u->stream;
	bool h2 = u->tls && tls_client_is_h2(u->tls);
	int r = 0;

	if (u->tls && !s->http1) /* both were offered */
		origin_learn(u->broker, &s->host, s->port, h2);
	u->want_out = false;
	if (s->kind == NET_KIND_TUNNEL)
		upstream_tunnel_start(u);
	else
		r = h2 ? upstream_h2_start(u) : upstream_h1_start(u);
	if (r < 0) {
		refuse_upstream(s, 503, "out_of_memory", "no memory for a connection");
		return;
	}
	u->stream = NULL;
	upstream_begin(u, s);
	pool_made(s, u);
}

static void handshake(struct upstream *u)
{
	struct stream *s = u->stream;
	enum tls_trouble kind;
	char message[NOTE_MAX];
	enum tls_io io = u->tls                 ? tls_client_handshake(u->tls)
			 : s->scheme == NET_SSH ? ssh_upstream_answer(u, message, sizeof(message))
						: TLS_IO_OK;

	u->want_out = io == TLS_IO_WRITE;
	if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
		if (!upstream_watch(u, true, u->want_out))
			refuse_upstream(s, 503, "out_of_memory", "no memory for a connection");
		return;
	}
	if (io == TLS_IO_OK) {
		established(u);
		return;
	}
	if (s->scheme == NET_SSH) {
		refuse_upstream(s, 502, "upstream_ssh", message);
		return;
	}
	snprintf(message, sizeof(message), "TLS to %s failed: %s", s->host.text,
		tls_client_error(u->tls, &kind));
	refuse_upstream(s, 502,
		kind == TLS_TROUBLE_CERTIFICATE ? "upstream_certificate" : "upstream_tls", message);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct upstream *u = container_of(io, struct upstream, io);

	if (u->ops)
		u->ops->event(u, events);
	else
		handshake(u);
}

/* Secrets go out over verified TLS only, so u must have the scheme of s. */
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
	s->keep = s->idempotent && s->retries == 0;
	upstream_begin(u, s);
}

void upstream_new(struct stream *s, int fd)
{
	struct broker *b = s->broker;
	struct upstream *u = calloc(1, sizeof(*u));
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (!u) {
		fd_close(fd);
		refuse_upstream(s, 503, "out_of_memory", "no memory for a connection");
		return;
	}
	u->broker = b;
	u->fd = fd;
	u->stream = s;
	u->http1 = s->http1;
	s->up = u;
	u->key = pool_key(s);
	u->policy = b->policy_number;
	u->since = s->active = loop_now(b->loop);
	s->keep = false;
	u->answer = BUF_INIT(SSHLEG_MAX_RECORD);
	if (s->scheme == NET_SSH && ssh_upstream_start(u) < 0) {
		refuse_upstream(s, 502, "upstream_ssh", "no session of SSH could be started");
		return;
	}
	/* In a tunnel the TLS is the client's own. */
	if (s->scheme == NET_HTTPS && s->kind != NET_KIND_TUNNEL &&
		(tls_client_new(b->trust, fd, host_bare(&s->host), s->port, &u->tls, &err) < 0 ||
			(!s->http1 && tls_client_offer_h2(u->tls, &err) < 0))) {
		refuse_upstream(s, 502, "upstream_tls", err.message);
		return;
	}
	handshake(u);
}
