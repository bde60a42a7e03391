/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a join has two sockets, that of a client who speaks WebSocket, and that of
 * the process that holds his room. What has come from one is written to the other; one that does
 * not read holds up the other, in buffers of some hundred KiB. Whether the other end still lives is
 * known to the room's holder, which then closes its socket. */
#include "base/clock.h"
#include "base/fd.h"
#include "far/script.h"
#include "farserve/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	JOIN_PIECE = 64 * 1024,
	JOIN_ENOUGH = 128 * 1024, /* no more is read as long as so much waits */
	JOIN_MAX = JOIN_ENOUGH + 2 * JOIN_PIECE,
	JOIN_LINGER_USEC = 2 * USEC_PER_SEC,
};

enum { JOIN_NORMAL = 1000, JOIN_AWAY = 1001 };

static void join_free(struct join *j)
{
	loop_timer_clear(&j->late);
	loop_io_remove(&j->client_io);
	loop_io_remove(&j->room_io);
	fd_close(j->client);
	fd_close(j->room);
	buf_done(&j->to_client);
	buf_done(&j->to_room);
	free(j);
}

static void join_on_end(struct loop_job *job)
{
	join_free(container_of(job, struct join, end));
}

/* The room has no carrier from here on. */
static void join_leave_room(struct join *j)
{
	struct far *f = j->far;

	loop_io_remove(&j->room_io);
	j->room = fd_close(j->room);
	j->room_ended = true;
	j->far = NULL;
	if (!f)
		return;
	f->join = NULL;
	far_rest(f);
}

void join_end(struct join *j)
{
	join_leave_room(j);
	loop_io_remove(&j->client_io);
	loop_timer_clear(&j->late);
	loop_defer(j->serve->loop, &j->end, join_on_end);
}

static void join_on_late(struct loop_timer *t)
{
	join_end(container_of(t, struct join, late));
}

static void join_on_client(struct loop_io *io, uint32_t events);
static void join_on_room(struct loop_io *io, uint32_t events);

/* Watch a socket for these events; one that is not waited for is not watched at all, as its hangup
 * would wake us for ever. */
static int join_watch_one(struct join *j, struct loop_io *io, int fd, uint32_t events)
{
	if (!events || io->loop) {
		if (events)
			loop_io_set(io, events);
		else
			loop_io_remove(io);
		return 0;
	}
	return loop_io_add(
		j->serve->loop, io, fd, events, fd == j->client ? join_on_client : join_on_room);
}

static uint32_t join_events(const struct buf *in, const struct buf *out)
{
	return (buf_len(in) < JOIN_ENOUGH ? EPOLLIN : 0U) | (buf_len(out) ? EPOLLOUT : 0U);
}

static void join_watch(struct join *j)
{
	int r = 0;

	if (j->end.queued)
		return;
	if (!j->room_ended)
		r = join_watch_one(
			j, &j->room_io, j->room, join_events(&j->to_client, &j->to_room));
	if (r == 0)
		r = join_watch_one(
			j, &j->client_io, j->client, join_events(&j->to_room, &j->to_client));
	if (r < 0)
		join_end(j);
}

/* Say that it is over, and give the client some time to hear that. */
static void join_close(struct join *j, uint16_t code)
{
	join_leave_room(j);
	if (wsbytes_put_close(&j->ws, &j->to_client, code) < 0 ||
		loop_timer_in(j->serve->loop, &j->late, JOIN_LINGER_USEC, join_on_late) < 0)
		join_end(j);
	join_watch(j);
}

/* Write what waits. Return false if nobody takes it any more. */
static bool join_write(int fd, struct buf *b)
{
	while (buf_len(b)) {
		ssize_t n = send(fd, buf_data(b), buf_len(b), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		buf_consume(b, (size_t)n);
	}
	return true;
}

/* Return the number of bytes, 0 at the end, or negative: nothing now. */
static ssize_t join_read(int fd, char bytes[JOIN_PIECE])
{
	ssize_t n = recv(fd, bytes, JOIN_PIECE, 0);

	return n < 0 && errno != EAGAIN && errno != EINTR ? 0 : n;
}

static void join_take(struct join *j, struct str bytes)
{
	int r = wsbytes_take(&j->ws, bytes, &j->to_room, &j->to_client);

	if (r == 0)
		return;
	if (j->room >= 0)
		(void)join_write(j->room, &j->to_room);
	join_close(j, JOIN_NORMAL);
}

static void join_on_client(struct loop_io *io, uint32_t events)
{
	struct join *j = container_of(io, struct join, client_io);
	static char bytes[JOIN_PIECE];
	ssize_t n = -1;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		n = join_read(j->client, bytes);
	if (n == 0 || !join_write(j->client, &j->to_client)) {
		join_end(j);
		return;
	}
	if (n > 0 && !j->room_ended)
		join_take(j, str_make(bytes, (size_t)n));
	/* A close frame is the last thing that is said. */
	if (j->room_ended && !buf_len(&j->to_client))
		(void)shutdown(j->client, SHUT_WR);
	join_watch(j);
}

static void join_on_room(struct loop_io *io, uint32_t events)
{
	struct join *j = container_of(io, struct join, room_io);
	static char bytes[JOIN_PIECE];
	ssize_t n = -1;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		n = join_read(j->room, bytes);
	if (n > 0 && wsbytes_put(&j->ws, &j->to_client, str_make(bytes, (size_t)n)) < 0) {
		join_end(j);
		return;
	}
	if (n == 0 || !join_write(j->room, &j->to_room))
		join_close(j, JOIN_NORMAL);
	join_watch(j);
}

static int join_start(struct join *j, struct str first)
{
	int r = buf_add_str(&j->to_client, first);

	if (r == 0)
		r = wsbytes_put(&j->ws, &j->to_client, STR(SCRIPT_HAVE "\n"));
	if (r == 0)
		r = fd_set_nonblock(j->room, true);
	return r;
}

int join_begin(struct far *f, const struct join_how *how)
{
	struct join *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	*j = (struct join){.serve = f->serve,
		.client = how->client,
		.room = how->room,
		.ws = wsbytes(WS_FROM_CLIENT),
		.to_client = BUF_INIT(JOIN_MAX),
		.to_room = BUF_INIT(JOIN_MAX)};
	r = join_start(j, how->first);
	if (r < 0) {
		j->client = j->room = -1;
		join_free(j);
		return r;
	}
	if (f->join)
		join_close(f->join, JOIN_AWAY);
	if (f->owner >= 0)
		loop_timer_clear(&f->sleep);
	j->far = f;
	f->join = j;
	join_take(j, how->came);
	join_watch(j);
	return 0;
}
