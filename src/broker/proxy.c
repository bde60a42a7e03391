/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one CONNECT goes out, and the head of the answer goes through the parser
 * that reads the answers of origins, with its bounds. Bytes are looked at before they are taken
 * (MSG_PEEK), so that whatever follows the head is left in the socket: it is the origin's. The body
 * of a refusal is not read; the connection is closed.
 *
 * The answer is read by the room in the end: the proxy's own words are never passed on. */
#include "broker/proxy.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "policy/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { REQUEST_MAX = 8 * 1024, PEEK = 4096, READS = 16 /* in one turn: others wait, too */ };

void proxy_ask_end(struct proxy_ask *a)
{
	loop_io_remove(&a->io);
	a->fd = fd_close(a->fd);
	buf_done_wiped(&a->out);
	http_head_done(&a->head);
}

static void proxy_answered(struct proxy_ask *a)
{
	unsigned status = a->head.status;

	if (status >= 200 && status < 300) {
		loop_io_remove(&a->io);
		a->done(a, NULL);
		return;
	}
	snprintf(a->message, sizeof(a->message), "it answered %u%s", status,
		status == 407   ? ": it wants another user or password"
		: status == 403 ? ": it lets nobody through to this host and port"
				: "");
	a->done(a, a->message);
}

static void proxy_refused(struct proxy_ask *a, const char *why)
{
	snprintf(a->message, sizeof(a->message), "%s", why);
	a->done(a, a->message);
}

/* Take n bytes that were looked at. Return false if that cannot be done. */
static bool proxy_consume(struct proxy_ask *a, char *scratch, size_t n)
{
	return n == 0 || recv(a->fd, scratch, n, MSG_DONTWAIT) == (ssize_t)n;
}

/* Return true if there may be more to read. */
static bool proxy_read(struct proxy_ask *a)
{
	char bytes[PEEK];
	ssize_t n = recv(a->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	enum h1_result result;
	size_t used = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		proxy_refused(a, "it closed the connection without an answer");
		return false;
	}
	result = h1_parse(&a->parser, str_make(bytes, (size_t)n), &used);
	if (!proxy_consume(a, bytes, used))
		proxy_refused(a, "the connection to it was lost");
	else if (result == H1_ERROR) {
		snprintf(a->message, sizeof(a->message), "its answer is malformed: %s",
			h1_error_text(a->parser.error));
		a->done(a, a->message);
	} else if (result == H1_MORE)
		return true;
	else if (a->head.status < 200 && a->head.status != 101) {
		h1_parser_next(&a->parser);
		return true;
	} else
		proxy_answered(a);
	return false;
}

/* Return false if the connection is lost. */
static bool proxy_write(struct proxy_ask *a)
{
	ssize_t n = send(a->fd, buf_data(&a->out), buf_len(&a->out), MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	explicit_bzero(buf_data(&a->out), (size_t)n);
	buf_consume(&a->out, (size_t)n);
	if (buf_len(&a->out) == 0)
		loop_io_set(&a->io, EPOLLIN);
	return true;
}

static void on_proxy(struct loop_io *io, uint32_t events)
{
	struct proxy_ask *a = container_of(io, struct proxy_ask, io);

	if (buf_len(&a->out) > 0 && (events & EPOLLOUT) && !proxy_write(a)) {
		proxy_refused(a, "the connection to it was lost");
		return;
	}
	if (events & ~(uint32_t)EPOLLOUT)
		for (int i = 0; i < READS && proxy_read(a);)
			i++;
}

static int proxy_add_request(
	struct buf *out, const struct proxy *proxy, const struct host *host, uint16_t port)
{
	int r = buf_printf(out, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n", host->text, port,
		host->text, port);

	if (r == 0 && proxy->login)
		r = buf_add_str(out, STR("Proxy-Authorization: Basic "));
	if (r == 0 && proxy->login)
		r = buf_add_str(out, secret_reveal(proxy->login));
	if (r == 0 && proxy->login)
		r = buf_add_str(out, STR("\r\n"));
	return r < 0 ? r : buf_add_str(out, STR("\r\n"));
}

int proxy_ask_begin(struct proxy_ask *a, struct loop *loop, int fd, const struct proxy *proxy,
	const struct host *host, uint16_t port)
{
	char *memory;
	int r;

	a->fd = fd;
	a->out = BUF_INIT(REQUEST_MAX);
	a->head = HTTP_HEAD_INIT;
	h1_parser_response(&a->parser, &a->head, 0);
	/* Reserved at once, so that the password is nowhere else in memory. */
	r = buf_reserve(&a->out, REQUEST_MAX, &memory);
	if (r == 0)
		r = proxy_add_request(&a->out, proxy, host, port);
	if (r == 0)
		r = loop_io_add(loop, &a->io, fd, EPOLLIN | EPOLLOUT, on_proxy);
	return r;
}
