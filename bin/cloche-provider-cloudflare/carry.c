/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one thread moves bytes between standard input and output and the service's
 * connection. What is under way is bounded in both directions: whoever does not read is not read
 * from. Whether the room still lives is for those to know whose bytes these are. */
#include "carry.h"
#include "asked/asked.h"
#include "base/clock.h"
#include "base/fd.h"
#include "http/wsbytes.h"

#include <errno.h>
#include <unistd.h>

enum {
	CARRY_PIECE = 64 * 1024,
	CARRY_ENOUGH = 256 * 1024, /* no more is read as long as so much waits */
	CARRY_MAX = CARRY_ENOUGH + 2 * CARRY_PIECE,
	CARRY_LAST_SEC = 3, /* for the service to say that it is over, too */
};

enum { CARRY_NORMAL = 1000 };

struct carry {
	struct line *line;
	struct wsbytes ws;
	struct buf to_service, to_us;
	bool was_full;       /* more may have come, which is in libcurl */
	bool in_ended, over; /* our side; the service's */
	uint64_t until;      /* 0: for ever */
};

static int carry_take(struct carry *c, struct str bytes, struct cloche_err *err)
{
	int r = wsbytes_take(&c->ws, bytes, &c->to_us, &c->to_service);

	c->over = c->over || r == 1;
	if (r >= 0)
		return 0;
	if (r == -EPROTO)
		return err_set(err, E_PROTOCOL, "the service breaks the protocol: %s",
			c->ws.reader.error ? ws_error_text(c->ws.reader.error)
					   : "a message of text");
	return err_set(err, E_LIMIT, "the service sends too much at a time");
}

static int carry_read_service(struct carry *c, struct cloche_err *err)
{
	static char bytes[CARRY_PIECE];
	int r = 0;

	while (r == 0 && !c->over && buf_len(&c->to_us) < CARRY_ENOUGH) {
		ssize_t n = line_read(c->line, bytes, sizeof(bytes));

		if (n == 0)
			break;
		r = n < 0 ? line_cut(c->line, err) : carry_take(c, str_make(bytes, (size_t)n), err);
	}
	c->was_full = !c->over && buf_len(&c->to_us) >= CARRY_ENOUGH;
	return r;
}

static int carry_write_service(struct carry *c, struct cloche_err *err)
{
	while (buf_len(&c->to_service)) {
		ssize_t n = line_write(c->line, buf_data(&c->to_service), buf_len(&c->to_service));

		if (n < 0)
			return line_cut(c->line, err);
		if (n == 0)
			break;
		buf_consume(&c->to_service, (size_t)n);
	}
	return 0;
}

static int carry_read_us(struct carry *c, struct cloche_err *err)
{
	static char bytes[CARRY_PIECE];
	ssize_t n;

	if (c->in_ended || buf_len(&c->to_service) >= CARRY_ENOUGH)
		return 0;
	n = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		return wsbytes_put(&c->ws, &c->to_service, str_make(bytes, (size_t)n)) < 0
			       ? err_nomem(err)
			       : 0;
	c->in_ended = true;
	c->until = clock_mono_usec() + CARRY_LAST_SEC * USEC_PER_SEC;
	return wsbytes_put_close(&c->ws, &c->to_service, CARRY_NORMAL) < 0 ? err_nomem(err) : 0;
}

static int carry_wait(const struct carry *c, struct cloche_err *err)
{
	bool reads = !c->over && buf_len(&c->to_us) < CARRY_ENOUGH;
	struct pollfd p[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = STDOUT_FILENO, .events = POLLOUT},
		{.fd = c->line->sock,
			.events = (short)((reads ? POLLIN : 0) |
					  (buf_len(&c->to_service) ? POLLOUT : 0))},
	};
	int msec = c->until ? CARRY_LAST_SEC * 1000 : -1;

	/* A hangup is always reported; only one that is waited for is looked at. */
	if (c->in_ended || buf_len(&c->to_service) >= CARRY_ENOUGH)
		p[0].fd = -1;
	if (!buf_len(&c->to_us))
		p[1].fd = -1;
	if (!p[2].events)
		p[2].fd = -1;
	if (c->was_full && reads)
		msec = 0;
	return poll(p, ARRAY_SIZE(p), msec) < 0 && errno != EINTR
		       ? err_sys(err, errno, "wait for the service")
		       : 0;
}

static bool carry_is_over(const struct carry *c)
{
	if (c->until && clock_mono_usec() >= c->until)
		return true;
	return c->over && !buf_len(&c->to_us) && !buf_len(&c->to_service);
}

static int carry_turn(struct carry *c, struct cloche_err *err)
{
	int r = carry_read_service(c, err);

	if (r == 0)
		r = asked_write(&c->to_us, err);
	if (r == 0 && !c->over)
		r = carry_read_us(c, err);
	if (r == 0)
		r = carry_write_service(c, err);
	return r;
}

int carry_run(struct service *s, struct cloche_err *err)
{
	static struct carry c;
	int r;

	c = (struct carry){.line = &s->line,
		.ws = wsbytes(WS_FROM_SERVER),
		.to_service = BUF_INIT(CARRY_MAX),
		.to_us = BUF_INIT(CARRY_MAX)};
	if (fd_set_nonblock(STDIN_FILENO, true) < 0 || fd_set_nonblock(STDOUT_FILENO, true) < 0)
		return err_sys(err, errno, "carry bytes");
	r = carry_take(&c, buf_str(&s->in), err);
	while (r == 0) {
		r = carry_turn(&c, err);
		if (r < 0 || carry_is_over(&c))
			break;
		r = carry_wait(&c, err);
	}
	buf_done(&c.to_service);
	buf_done(&c.to_us);
	return r;
}
