/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a connection reads one request, answers it, and reads the next. While a run
 * is under way nothing is read; if the client goes away, its run is ended. Each step has a time by
 * which it has to be done, whatever the client does meanwhile. If there are as many connections as
 * there may be, a new one takes the place of the one that has been waited for longest, so whoever
 * opens many and says nothing keeps nobody away. */
#include "farserve/conn.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "http/h1_write.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

enum {
	CONN_PIECE = 64 * 1024,
	CONN_OUT_MAX = 256 * 1024 * 1024,      /* what SERVE_OUTPUT_MAX keeps is the real bound */
	CONN_REQUEST_USEC = 10 * USEC_PER_SEC, /* for a whole request */
	CONN_IDLE_USEC = 60 * USEC_PER_SEC,
	CONN_WRITE_USEC = 120 * USEC_PER_SEC,
	CONN_LINGER_USEC = 2 * USEC_PER_SEC,
	CONN_LISTEN_AGAIN_USEC = 100 * USEC_PER_MSEC,
};

/* --- its end --- */

static void conn_free(struct conn *c)
{
	struct serve *s = c->serve;

	if (c->run)
		c->run->conn = NULL;
	loop_timer_clear(&c->timer);
	loop_io_remove(&c->io);
	fd_close(c->fd);
	http_body_done(&c->body);
	http_head_done(&c->head);
	buf_done(&c->in);
	buf_done(&c->text);
	buf_done(&c->out);
	s->output -= c->held;
	DL_DELETE(s->conns, c);
	s->conns_n--;
	free(c);
}

static void conn_on_end(struct loop_job *job)
{
	struct conn *c = container_of(job, struct conn, end);
	struct serve *s = c->serve;

	conn_free(c);
	conn_listen(s);
}

void conn_end(struct conn *c)
{
	struct run *r = c->run;

	c->state = CONN_OVER;
	c->run = NULL;
	loop_io_remove(&c->io);
	loop_timer_clear(&c->timer);
	if (r)
		run_forsake(r);
	loop_defer(c->serve->loop, &c->end, conn_on_end);
}

static void conn_on_late(struct loop_timer *t);

static void conn_allow(struct conn *c, uint64_t usec)
{
	if (loop_timer_in(c->serve->loop, &c->timer, usec, conn_on_late) < 0)
		conn_end(c);
}

/* --- answers --- */

/* Count n bytes as output that is kept for this connection. */
static void conn_hold(struct conn *c, size_t n)
{
	c->serve->output += n - c->held;
	c->held = n;
}

static void conn_await_request(struct conn *c)
{
	http_body_done(&c->body);
	buf_clear(&c->text);
	h1_parser_request(&c->parser, &c->head);
	c->state = CONN_HEAD;
	/* The last one whose place is taken. */
	DL_DELETE(c->serve->conns, c);
	DL_APPEND(c->serve->conns, c);
	loop_io_set(&c->io, EPOLLIN);
	conn_allow(c, buf_len(&c->in) ? CONN_REQUEST_USEC : CONN_IDLE_USEC);
}

/* Closing now would take away an answer that the client has not read, if it still sends. */
static void conn_linger(struct conn *c)
{
	(void)shutdown(c->fd, SHUT_WR);
	c->state = CONN_LINGERS;
	loop_io_set(&c->io, EPOLLIN);
	conn_allow(c, CONN_LINGER_USEC);
}

static void conn_write(struct conn *c)
{
	while (buf_len(&c->out)) {
		ssize_t n = send(c->fd, buf_data(&c->out), buf_len(&c->out), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_io_set(&c->io, EPOLLOUT);
			return;
		}
		if (n < 0) {
			conn_end(c);
			return;
		}
		buf_consume(&c->out, (size_t)n);
	}
	conn_hold(c, 0);
	/* Its memory may be that of a large answer. */
	buf_done(&c->out);
	if (c->closes)
		conn_linger(c);
	else
		conn_await_request(c);
}

static int conn_put(struct conn *c, unsigned status, const char *type, struct str text)
{
	bool to_head = str_eq(http_head_method(&c->head), STR("HEAD"));
	unsigned flags = c->closes ? H1_W_CLOSE : H1_W_KEEP_ALIVE;
	int r = http_head_set_response(&c->head, status, STR_NULL);

	if (r == 0)
		r = http_fields_add(&c->head.fields, STR("Content-Type"), str_from(type));
	if (r == 0 && status == 401)
		r = http_fields_add(&c->head.fields, STR("WWW-Authenticate"), STR("Bearer"));
	if (r < 0)
		return r;
	http_head_set_body(&c->head, HTTP_BODY_LENGTH, text.n);
	if (to_head)
		c->head.flags |= HTTP_TO_HEAD;
	r = h1_write_response(&c->out, &c->head, flags);
	return r < 0 || to_head ? r : buf_add_str(&c->out, text);
}

void conn_answer(struct conn *c, unsigned status, const char *type, struct str text)
{
	/* What is left of the request would be taken for the next one. */
	c->closes = c->closes || c->state == CONN_HEAD || c->state == CONN_BODY;
	c->state = CONN_WRITES;
	if (conn_put(c, status, type, text) < 0) {
		conn_end(c);
		return;
	}
	loop_io_set(&c->io, EPOLLOUT);
	conn_allow(c, CONN_WRITE_USEC);
}

void conn_answer_text(struct conn *c, unsigned status, const char *text)
{
	conn_answer(c, status, "text/plain;charset=UTF-8", str_from(text));
}

void conn_answer_error(struct conn *c, unsigned status, const char *why)
{
	struct buf text = BUF_INIT(16 * 1024);

	if (answer_write_error(&text, why) < 0)
		conn_end(c);
	else
		conn_answer(c, status, "application/json", buf_str(&text));
	buf_done(&text);
}

void conn_on_failure(struct conn *c, unsigned status, const char *why)
{
	c->run = NULL;
	conn_answer_error(c, status, why);
}

void conn_on_answer(struct conn *c, const struct answer *a)
{
	struct buf text = BUF_INIT(CONN_OUT_MAX);

	c->run = NULL;
	if (answer_write(&text, a) < 0)
		conn_answer_error(c, 500, "there is not enough memory for the output");
	else
		conn_answer(c, 200, "application/json", buf_str(&text));
	if (c->state == CONN_WRITES)
		conn_hold(c, buf_len(&c->out));
	buf_done(&text);
}

static void conn_on_late(struct loop_timer *t)
{
	struct conn *c = container_of(t, struct conn, timer);
	bool asks =
		c->state == CONN_BODY || (c->state == CONN_HEAD && buf_len(&c->head.fields.text));

	if (asks)
		conn_answer_text(c, 408, "the request did not come in time\n");
	else
		conn_end(c);
}

/* --- requests --- */

/* Compare digests, so that the time tells nothing about the token. */
static bool conn_has_token(struct conn *c)
{
	struct str value = http_fields_get(&c->head.fields, STR("Authorization"));
	uint8_t digest[SHA256_BYTES], differs = 0;
	struct sha256 h;

	if (!c->serve->has_token)
		return true;
	if (value.n < 7 || !str_ieq(str_prefix(value, 7), STR("Bearer ")) ||
		http_fields_count(&c->head.fields, STR("Authorization")) != 1)
		return false;
	sha256_init(&h);
	sha256_add(&h, str_trim(str_from_index(value, 7)));
	sha256_bytes(&h, digest);
	for (unsigned i = 0; i < sizeof(digest); i++)
		differs |= (uint8_t)(digest[i] ^ c->serve->token[i]);
	return differs == 0;
}

/* Without a token, a page in a browser of this machine must not be able to run code. */
static bool conn_is_browser(struct conn *c)
{
	return !c->serve->has_token && http_fields_count(&c->head.fields, STR("Origin"));
}

/* --- routes --- */

static void conn_begin_body(struct conn *c)
{
	if (c->head.flags & HTTP_HAS_LENGTH && c->head.content_length > ASK_BODY_MAX) {
		conn_answer_text(c, 413, "the body has more than 1 MiB\n");
		return;
	}
	if (c->head.flags & HTTP_EXPECT_CONTINUE && buf_len(&c->in) == 0 &&
		send(c->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL) != 25) {
		conn_end(c);
		return;
	}
	http_body_init(&c->body, &c->head, NULL);
	c->state = CONN_BODY;
}

/* A whole head has come. */
static void conn_route(struct conn *c)
{
	struct str method = http_head_method(&c->head), path = ask_path(http_head_target(&c->head));

	c->closes = !(c->head.flags & HTTP_KEEP_ALIVE);
	if (c->head.body == HTTP_BODY_NONE)
		c->state = CONN_WRITES;
	if (str_eq(method, STR("GET")) && str_eq(path, STR("/health")))
		conn_answer(c, 200, "application/json",
			STR("{\"status\":\"ok\",\"runtime\":\"cloche\"}"));
	else if (!conn_has_token(c))
		conn_answer_text(c, 401, "Unauthorized\n");
	else if (str_eq(path, STR("/far")) && !conn_is_browser(c))
		conn_route_far(c, method);
	else if (!str_eq(path, STR("/far")) &&
		 (!str_eq(method, STR("POST")) || !str_eq(path, STR("/execute"))))
		conn_answer_text(c, 404, "Not Found");
	else if (conn_is_browser(c))
		conn_answer_text(c, 403, "pages of a browser are not answered without a token\n");
	else
		conn_begin_body(c);
}

static int conn_start_run(struct conn *c, const struct ask *ask, struct cloche_err *err)
{
	char name[ASK_NAME_MAX + 1];
	struct session *x;
	int r;

	if (!ask_session(http_head_target(&c->head), name))
		return err_set(err, E_USAGE,
			"session has to be one name of at most %d letters, digits and -_.~",
			ASK_NAME_MAX);
	r = session_get(c->serve, name, &x, err);
	return r < 0 ? r : run_start(x, c, ask, &c->run, err);
}

/* The whole body has come. */
static void conn_execute(struct conn *c)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct ask ask;
	int r = ask_read(buf_str(&c->text), &ask, &err);

	c->state = CONN_RUNS;
	loop_timer_clear(&c->timer);
	loop_io_set(&c->io, EPOLLRDHUP);
	if (r == 0)
		r = conn_start_run(c, &ask, &err);
	if (r < 0)
		conn_on_failure(c, r == -E_LIMIT ? 503 : 500, err.message);
	ask_done(&ask);
}

static void conn_read_head(struct conn *c)
{
	size_t used;
	enum h1_result r = h1_parse(&c->parser, buf_str(&c->in), &used);

	buf_consume(&c->in, used);
	if (r == H1_DONE)
		conn_route(c);
	else if (r == H1_ERROR)
		conn_answer_text(c, h1_error_status(c->parser.error), "this is no request\n");
}

static void conn_read_body(struct conn *c)
{
	struct str in = buf_str(&c->in), data;
	enum http_body_result r;

	do {
		r = http_body_read(&c->body, &in, &data);
		if (r == HTTP_BODY_DATA && buf_add_str(&c->text, data) < 0) {
			conn_answer_text(c, 413, "the body has more than 1 MiB\n");
			return;
		}
	} while (r == HTTP_BODY_DATA);
	buf_consume(&c->in, buf_len(&c->in) - in.n);
	if (r == HTTP_BODY_DONE)
		conn_execute(c);
	else if (r == HTTP_BODY_BAD)
		conn_answer_text(c, 400, "this is no request\n");
}

/* Take what has come as far as it goes. */
static void conn_process(struct conn *c)
{
	if (c->state == CONN_HEAD && buf_len(&c->in))
		conn_read_head(c);
	if (c->state == CONN_BODY)
		conn_read_body(c);
}

static void conn_read(struct conn *c)
{
	bool first = c->state == CONN_HEAD && buf_len(&c->head.fields.text) == 0;
	char *to;
	ssize_t n;

	if (buf_reserve(&c->in, CONN_PIECE, &to) < 0) {
		conn_end(c);
		return;
	}
	n = recv(c->fd, to, CONN_PIECE, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_end(c);
		return;
	}
	if (c->state == CONN_LINGERS)
		return;
	buf_commit(&c->in, (size_t)n);
	if (first)
		conn_allow(c, CONN_REQUEST_USEC);
	conn_process(c);
}

void conn_on_io(struct loop_io *io, uint32_t events)
{
	struct conn *c = container_of(io, struct conn, io);

	switch (c->state) {
	case CONN_HEAD:
	case CONN_BODY:
	case CONN_LINGERS:
		conn_read(c);
		break;
	case CONN_RUNS:
		conn_end(c);
		break;
	case CONN_WRITES:
		conn_write(c);
		/* A second request may have come with the first one. */
		conn_process(c);
		break;
	case CONN_OVER:
		break;
	}
}

/* --- new ones --- */

/* Whose code runs, or who is read an answer, keeps his place. */
static bool conn_is_waited_for(const struct conn *c)
{
	return c->state == CONN_HEAD || c->state == CONN_BODY || c->state == CONN_LINGERS;
}

/* Free a place. Return false if each is needed. */
static bool conn_make_way(struct serve *s)
{
	struct conn *c;

	DL_FOREACH (s->conns, c)
		if (conn_is_waited_for(c))
			break;
	if (c)
		conn_end(c);
	return c != NULL;
}

static void conn_add(struct serve *s, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || loop_io_add(s->loop, &c->io, fd, EPOLLIN, conn_on_io) < 0) {
		fd_close(fd);
		free(c);
		return;
	}
	c->serve = s;
	c->head = HTTP_HEAD_INIT;
	c->in = BUF_INIT(2 * CONN_PIECE);
	c->text = BUF_INIT(ASK_BODY_MAX);
	c->out = BUF_INIT(CONN_OUT_MAX);
	c->fd = fd;
	fd_send_at_once(fd);
	DL_APPEND(s->conns, c);
	s->conns_n++;
	conn_await_request(c);
	conn_allow(c, CONN_REQUEST_USEC);
}

static void conn_on_listen_again(struct loop_timer *t)
{
	conn_listen(container_of(t, struct serve, listen_again));
}

/* What waits in the kernel's queue would wake us at once. */
static void conn_listen_later(struct serve *s)
{
	loop_io_remove(&s->listener_io);
	if (loop_timer_in(s->loop, &s->listen_again, CONN_LISTEN_AGAIN_USEC, conn_on_listen_again) <
		0)
		loop_stop(s->loop, -ENOMEM);
}

static void conn_on_listener(struct loop_io *io, uint32_t events)
{
	struct serve *s = container_of(io, struct serve, listener_io);
	int fd;

	if (s->conns_n >= SERVE_CONNS_MAX && !conn_make_way(s)) {
		conn_listen_later(s);
		return;
	}
	fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		conn_add(s, fd);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		conn_listen_later(s);
}

void conn_listen(struct serve *s)
{
	if (!s->listener_io.loop &&
		loop_io_add(s->loop, &s->listener_io, s->listener, EPOLLIN, conn_on_listener) < 0)
		loop_stop(s->loop, -ENOMEM);
}

void conn_end_all(struct serve *s)
{
	struct conn *c, *next;

	DL_FOREACH_SAFE (s->conns, c, next)
		conn_free(c);
}
