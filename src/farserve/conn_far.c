/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a far room's client: make what holds it, join it by a WebSocket, end it. */
#include "base/fd.h"
#include "config.h"
#include "farserve/conn.h"
#include "farside/fardir.h"
#include "http/h1_write.h"

#include <stdio.h>

/* Answer with what came of it; status: if all is well. */
static void conn_answer_far(struct conn *c, int r, unsigned status, const struct cloche_err *err)
{
	if (r == 0)
		conn_answer(c, status, "application/json", STR("{\"success\":true}"));
	else
		conn_answer_error(c,
			r == -E_USAGE       ? 400
			: r == -E_NOT_FOUND ? 410
			: r == -E_BUSY      ? 409
			: r == -E_LIMIT     ? 503
					    : 500,
			err->message);
}

static int conn_make_far(struct conn *c, const char *id, struct cloche_err *err)
{
	struct str version = http_fields_get(&c->head.fields, STR("Cloche-Version"));

	/* What is said over the stream is of one version. */
	if (!str_eq(version, STR(CLOCHE_VERSION)))
		return err_set(err, E_USAGE,
			"the service is of cloche " CLOCHE_VERSION
			", and a room there needs a client of that version");
	return far_make(c->serve, id, err);
}

/* Write that the protocol is another one from here on. */
static int conn_switch(struct conn *c)
{
	struct str key = http_fields_get(&c->head.fields, STR("Sec-WebSocket-Key"));
	char accept[WS_ACCEPT_LEN + 1];
	int r;

	ws_accept(key, accept);
	r = http_head_set_response(&c->head, 101, STR_NULL);
	if (r == 0)
		r = http_fields_set(&c->head.fields, STR("Upgrade"), STR("websocket"));
	if (r == 0)
		r = http_fields_set(&c->head.fields, STR("Sec-WebSocket-Accept"), str_from(accept));
	return r < 0 ? r : h1_write_response(&c->out, &c->head, H1_W_UPGRADE);
}

/* Join this connection with a socket of the room's, which is taken. */
static int conn_become(struct conn *c, struct far *f, int room, struct cloche_err *err)
{
	int r;

	if (conn_switch(c) < 0) {
		fd_close(room);
		return err_nomem(err);
	}
	loop_io_remove(&c->io);
	r = join_begin(f, &(struct join_how){room, c->fd, buf_str(&c->out), buf_str(&c->in)});
	buf_clear(&c->out);
	if (r == 0) {
		c->fd = -1;
		conn_end(c);
		return 0;
	}
	fd_close(room);
	if (loop_io_add(c->serve->loop, &c->io, c->fd, EPOLLIN, conn_on_io) < 0)
		conn_end(c);
	return err_nomem(err);
}

/* id: "" for what says which rooms can be had. */
static int conn_join_far(struct conn *c, const char *id, struct cloche_err *err)
{
	struct str key = http_fields_get(&c->head.fields, STR("Sec-WebSocket-Key"));
	struct str version = http_fields_get(&c->head.fields, STR("Sec-WebSocket-Version"));
	struct far *f = id[0] ? far_find(c->serve, id) : NULL;
	int fd;

	if (id[0] && !f)
		return err_set(err, E_NOT_FOUND, "the room is gone");
	if (!ws_is_key(key) || !str_eq(version, STR("13")))
		return err_set(err, E_USAGE, "this is no handshake of a WebSocket (RFC 6455)");
	fd = f ? fardir_connect(id, err) : far_probe(c->serve, &f, err);
	return fd < 0 ? fd : conn_become(c, f, fd, err);
}

static void conn_count_fars(struct conn *c)
{
	char text[64];

	snprintf(text, sizeof(text), "{\"success\":true,\"rooms\":%u}", c->serve->fars_n);
	conn_answer(c, 200, "application/json", str_from(text));
}

void conn_route_far(struct conn *c, struct str method)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	bool joins = c->head.flags & HTTP_UPGRADE_WS, gets = str_eq(method, STR("GET"));
	char id[ASK_NAME_MAX + 1];
	int r;

	if (c->head.body != HTTP_BODY_NONE)
		conn_answer_error(c, 400, "no body is expected");
	else if (gets && !joins)
		conn_count_fars(c);
	else if (!ask_session(http_head_target(&c->head), id) || (!id[0] && !gets))
		conn_answer_error(c, 400, "session has to be the id of a far room");
	else if (gets) {
		r = conn_join_far(c, id, &err);
		if (r < 0 && c->state != CONN_OVER)
			conn_answer_far(c, r, 101, &err);
	} else if (str_eq(method, STR("POST"))) {
		r = conn_make_far(c, id, &err);
		conn_answer_far(c, r, 201, &err);
	} else if (str_eq(method, STR("DELETE"))) {
		if (far_find(c->serve, id))
			far_end(far_find(c->serve, id));
		conn_answer_far(c, 0, 200, &err);
	} else {
		conn_answer_text(c, 404, "Not Found");
	}
}
