/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: outgoing frames are appended to one buffer. Descriptors of a frame are sent
 * with that frame's first byte: a write stops before the next frame that has descriptors, so the
 * kernel delivers them no later than the header that announces them. The receiver queues
 * descriptors as they arrive and gives each frame as many as its header says; a frame that
 * announces more than have arrived is malformed. */
#include "ipc/chan.h"
#include "base/fd.h"
#include "job/job.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_CHUNK = 80 * 1024 }; /* room for four frames of one TLS record each, and small ones */

int chan_init(struct chan *c, int fd, size_t max_payload, size_t max_out)
{
	int r;

	*c = (struct chan){.fd = fd, .max_payload = max_payload, .max_send = max_payload};
	c->in = BUF_INIT(max_payload + CHAN_HEADER + READ_CHUNK);
	c->out = BUF_INIT(max_out);
	r = fd_set_nonblock(fd, true);
	return r < 0 ? r : fd_set_cloexec(fd, true);
}

void chan_refuse_fds(struct chan *c)
{
	fd_refuse_attached(c->fd);
}

void chan_done(struct chan *c)
{
	c->fd = fd_close(c->fd);
	for (unsigned i = 0; i < c->in_fds_n; i++)
		fd_close_foreign(c->in_fds[i]);
	for (unsigned i = 0; i < c->out_fds_n; i++)
		for (unsigned k = 0; k < c->out_fds[i].n; k++)
			fd_close(c->out_fds[i].fds[k]);
	c->in_fds_n = c->out_fds_n = 0;
	/* Frames may have carried secrets. Wipe only the part of the input that ever held data:
	 * most channels receive a few bytes, and wiping would touch the rest of READ_CHUNK for the
	 * first time. */
	if (c->in.mem)
		explicit_bzero(c->in.mem, MIN(c->in_high, c->in.cap));
	buf_done(&c->in);
	buf_done_wiped(&c->out);
}

static void put_header(char *at, size_t length, uint16_t type, unsigned fds_n)
{
	uint32_t n = htole32((uint32_t)length);
	uint16_t t = htole16(type);

	memcpy(at, &n, sizeof(n));
	memcpy(at + 4, &t, sizeof(t));
	at[6] = (char)fds_n;
	at[7] = 0;
}

struct buf *chan_begin(struct chan *c, uint16_t type, size_t *ret_mark)
{
	char *at;

	if (buf_reserve(&c->out, CHAN_HEADER, &at) < 0)
		return NULL;
	put_header(at, 0, type, 0);
	*ret_mark = buf_len(&c->out);
	buf_commit(&c->out, CHAN_HEADER);
	return &c->out;
}

void chan_abort(struct chan *c, size_t mark)
{
	c->out.tail = c->out.head + mark;
}

static int queue_fds(struct chan *c, size_t mark, const int *fds, unsigned fds_n)
{
	struct chan_out_fds *q = &c->out_fds[c->out_fds_n];

	if (fds_n > CHAN_MAX_FDS || c->out_fds_n == ARRAY_SIZE(c->out_fds))
		return -E2BIG;
	*q = (struct chan_out_fds){.at = c->sent + mark};
	for (unsigned i = 0; i < fds_n; i++) {
		q->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (q->fds[i] < 0) {
			int r = -errno;

			while (q->n > 0)
				fd_close(q->fds[--q->n]);
			return r;
		}
		q->n++;
	}
	c->out_fds_n++;
	return 0;
}

int chan_end(struct chan *c, size_t mark, const int *fds, unsigned fds_n)
{
	char *header = buf_data(&c->out) + mark;
	size_t length = buf_len(&c->out) - mark - CHAN_HEADER;
	uint16_t type;
	int r;

	if (length > c->max_send) {
		chan_abort(c, mark);
		return -E2BIG;
	}
	if (fds_n > 0) {
		r = queue_fds(c, mark, fds, fds_n);
		if (r < 0) {
			chan_abort(c, mark);
			return r;
		}
	}
	memcpy(&type, header + 4, sizeof(type));
	put_header(header, length, le16toh(type), fds_n);
	return 0;
}

int chan_send(struct chan *c, uint16_t type, struct str payload, const int *fds, unsigned fds_n)
{
	size_t mark;
	struct buf *b = chan_begin(c, type, &mark);
	int r;

	if (!b)
		return -ENOBUFS;
	r = buf_add_str(b, payload);
	if (r < 0) {
		chan_abort(c, mark);
		return r;
	}
	return chan_end(c, mark, fds, fds_n);
}

/* Write up to the next frame that carries descriptors; those of the first frame are sent along. */
static ssize_t write_some(struct chan *c)
{
	union fd_control control;
	struct iovec iov = {.iov_base = buf_data(&c->out), .iov_len = buf_len(&c->out)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct chan_out_fds *q = c->out_fds;
	unsigned next = 0;
	ssize_t n;

	if (c->out_fds_n > 0 && q->at == c->sent) {
		fd_attach(&msg, &control, q->fds, q->n);
		next = 1;
	}
	if (next < c->out_fds_n)
		iov.iov_len = MIN(iov.iov_len, (size_t)(c->out_fds[next].at - c->sent));
	n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n <= 0)
		return n;
	if (next == 1) {
		for (unsigned i = 0; i < q->n; i++)
			fd_close(q->fds[i]);
		c->out_fds_n--;
		memmove(q, q + 1, c->out_fds_n * sizeof(*q));
	}
	return n;
}

int chan_flush(struct chan *c)
{
	while (buf_len(&c->out) > 0) {
		ssize_t n = write_some(c);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN)
				return 0;
			return errno == ECONNRESET ? -EPIPE : -errno;
		}
		c->sent += (uint64_t)n;
		buf_consume(&c->out, (size_t)n);
	}
	return 0;
}

static int take_control(struct chan *c, struct msghdr *msg)
{
	unsigned room = CHAN_MAX_QUEUED_FDS - c->in_fds_n;
	unsigned n = fd_detach(msg, c->in_fds + c->in_fds_n, room);

	c->in_fds_n += MIN(n, room);
	return n > room || (msg->msg_flags & MSG_CTRUNC) ? -EPROTO : 0;
}

/* Return 1 if some bytes arrived, 0 if there are none now, negative at the end or on failure. */
static int read_some(struct chan *c)
{
	union fd_control control;
	struct iovec iov;
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	size_t room = MIN((size_t)READ_CHUNK, buf_room(&c->in));
	char *at;
	ssize_t n;
	int r;

	r = buf_reserve(&c->in, room, &at);
	if (r < 0)
		return r;
	iov = (struct iovec){.iov_base = at, .iov_len = room};
	n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		return errno == ECONNRESET ? -EPIPE : -errno;
	}
	if (n == 0) {
		c->eof = true;
		return -EPIPE;
	}
	buf_commit(&c->in, (size_t)n);
	c->in_high = MAX(c->in_high, c->in.tail);
	c->drained = c->watched && (size_t)n < room;
	r = take_control(c, &msg);
	return r < 0 ? r : 1;
}

/* Return 1 if a whole frame is buffered, 0 if not yet, negative if it is malformed. */
static int parse(struct chan *c, struct chan_frame *ret)
{
	const char *at = buf_data(&c->in);
	uint32_t length;
	uint16_t type;
	unsigned fds_n;

	if (buf_len(&c->in) < CHAN_HEADER)
		return 0;
	memcpy(&length, at, sizeof(length));
	memcpy(&type, at + 4, sizeof(type));
	length = le32toh(length);
	fds_n = (unsigned char)at[6];
	if (length > c->max_payload || at[7] != 0 || fds_n > CHAN_MAX_FDS)
		return -EPROTO;
	if (buf_len(&c->in) - CHAN_HEADER < length)
		return 0;
	if (fds_n > c->in_fds_n)
		return -EPROTO;
	*ret = (struct chan_frame){.type = le16toh(type), .fds_n = fds_n};
	ret->payload = str_make(at + CHAN_HEADER, length);
	memcpy(ret->fds, c->in_fds, fds_n * sizeof(int));
	c->in_fds_n -= fds_n;
	memmove(c->in_fds, c->in_fds + fds_n, c->in_fds_n * sizeof(int));
	c->taken = CHAN_HEADER + length;
	return 1;
}

int chan_recv(struct chan *c, struct chan_frame *ret)
{
	int r;

	buf_consume(&c->in, c->taken);
	c->taken = 0;
	for (;;) {
		r = parse(c, ret);
		if (r != 0)
			return r;
		if (c->drained) {
			c->drained = false;
			return 0;
		}
		r = read_some(c);
		if (r <= 0)
			return r;
	}
}

void chan_frame_done(struct chan_frame *f)
{
	for (unsigned i = 0; i < f->fds_n; i++)
		f->fds[i] = fd_close_foreign(f->fds[i]);
	f->fds_n = 0;
}

static int wait_for(struct chan *c, short events, int timeout_ms)
{
	int r = job_wait_fd(c->fd, events, timeout_ms);

	return r < 0 ? r : r == 0 ? -ETIMEDOUT : 0;
}

int chan_flush_wait(struct chan *c, int timeout_ms)
{
	for (;;) {
		int r = chan_flush(c);

		if (r < 0 || chan_pending(c) == 0)
			return r;
		r = wait_for(c, POLLOUT, timeout_ms);
		if (r < 0)
			return r;
	}
}

int chan_recv_wait(struct chan *c, struct chan_frame *ret, int timeout_ms)
{
	int r = chan_flush_wait(c, timeout_ms);

	/* A peer that refuses and closes has sent the reason before that. */
	if (r == -EPIPE || r == -ECONNRESET) {
		int said = chan_recv(c, ret);

		return said != 0 ? said : r;
	}
	if (r < 0)
		return r;
	for (;;) {
		r = chan_recv(c, ret);
		if (r != 0)
			return r;
		r = wait_for(c, POLLIN, timeout_ms);
		if (r < 0)
			return r;
	}
}
