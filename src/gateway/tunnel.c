/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: input from the client is read only as far as the broker's window allows, so
 * it is never kept here. Data from the broker goes into the connection's output, and the broker
 * gets credit for what the client has taken.
 *
 * The frames of a WebSocket are parsed in both directions (http/ws.h). Those of the client are
 * written anew, because they come from the room. Those of the broker, which has judged them, are
 * passed on as they are, but followed, because a close frame of ours may only stand between two of
 * them. A close frame is the last that a side sends: its direction ends with it.
 *
 * A tunnel begins with the client's ClientHello, which was read to learn the host. One of plain TCP
 * begins with nothing: its host is the name that the destination stands for. Each direction ends by
 * itself, as in TCP. */
#include "gateway/tunnel.h"
#include "gateway/entry.h"
#include "gateway/event.h"
#include "gateway/state.h"
#include "http/ws.h"
#include "ipc/sshleg.h"

#include <errno.h>

enum {
	/* What a reader may have kept of earlier input, and returns with the next. */
	HELD_MAX = WS_HEAD_MAX + WS_CONTROL_MAX,
	GOING_AWAY = 1001,
};

struct tunnel {
	struct conn *c;
	struct stream stream;
	bool websocket, tcp, ssh;
	uint16_t refused; /* ssh: the status of the answer that comes as a text; 0: none */
	struct buf text;  /* ... the text so far */
	bool accepted;    /* bytes may flow */
	bool ended;       /* the broker has ended its direction */
	struct ws_reader up, down;
};

static const struct stage tunnel_stage;
static const struct stream_ops tunnel_stream_ops;

static struct tunnel *owner(struct stream *s)
{
	return container_of(s, struct tunnel, stream);
}

static void rearm(struct conn *c)
{
	conn_set_timeout(c, c->g->limits->stream_idle_usec);
}

/* --- the end --- */

/* End the connection. Tell a WebSocket client why, if a close frame may be sent here. */
static void say_close(struct tunnel *t, uint16_t code)
{
	struct conn *c = t->c;
	char frame[4];

	if (t->websocket && !t->down.closed && ws_reader_is_between(&t->down) &&
		buf_add(&c->out, frame, ws_write_close(frame, code)) == 0)
		conn_end_linger(c);
	else
		conn_cut(c);
}

/* The client has broken the protocol. */
static void broken_frame(struct tunnel *t)
{
	enum ws_error e = t->up.error;
	struct conn *c = t->c;
	struct host host = c->host;

	if (host.n == 0)
		conn_dest_name(c, &host);
	event_send_of(c, (struct net_event){
				 .kind = NET_EVENT_MALFORMED,
				 .a = host_str(&host),
				 .b = str_from(ws_error_text(e)),
				 .method = STR("GET"),
			 });
	stream_close(&t->stream, NET_RESET_MALFORMED);
	say_close(t, ws_error_code(e));
}

static void tunnel_expired(struct conn *c)
{
	struct tunnel *t = c->state;

	stream_close(&t->stream, NET_RESET_LIMIT);
	say_close(t, GOING_AWAY);
}

/* Nothing more comes from the client. */
static void end_up(struct tunnel *t)
{
	conn_want_read(t->c, false);
	if (!t->stream.sent_end)
		stream_send_end(&t->stream, NULL);
}

static void tunnel_on_eof(struct tunnel *t, bool clean)
{
	struct conn *c = t->c;

	if (t->websocket || !clean) {
		conn_close(c);
		return;
	}
	end_up(t);
	if (t->ended)
		conn_end(c);
}

/* --- from the client --- */

/* Return how many bytes may be read now so that all that comes of them fits the broker's window. */
static size_t may_read(const struct tunnel *t)
{
	size_t max = MIN((size_t)t->stream.send_window, (size_t)NET_MAX_DATA);
	size_t held = t->websocket ? HELD_MAX : 0;

	return max > held ? max - held : 0;
}

static bool pass_frames(struct tunnel *t, struct str in)
{
	size_t mark;
	char *first = stream_begin_data(&t->stream, in.n + HELD_MAX, &mark), *to = first;
	struct str piece;
	enum ws_result r;

	if (!first)
		return false;
	while ((r = ws_read(&t->up, &in, &piece)) == WS_HEAD || r == WS_DATA) {
		if (r == WS_HEAD) {
			to += ws_write_head(to, &t->up.frame);
		} else {
			memcpy(to, piece.p, piece.n);
			to += piece.n;
		}
	}
	stream_commit_data(&t->stream, mark, (size_t)(to - first));
	if (r == WS_CLOSED)
		end_up(t); /* what follows the close frame is dropped */
	else if (r == WS_ERROR)
		broken_frame(t);
	return r == WS_MORE;
}

/* Returns whether there may be more. */
static bool pass_up(struct tunnel *t, struct str bytes)
{
	rearm(t->c);
	if (t->websocket)
		return pass_frames(t, bytes);
	stream_send_data(&t->stream, bytes);
	return true;
}

static bool tunnel_read_once(struct conn *c)
{
	struct tunnel *t = c->state;
	size_t max = may_read(t);
	struct str waiting = str_prefix(buf_str(&c->in), max);
	ssize_t n;

	if (max == 0) { /* tunnel_on_credit() resumes reading */
		conn_want_read(c, false);
		return false;
	}
	if (waiting.n > 0) {
		if (!pass_up(t, waiting) || c->dead)
			return false;
		buf_consume(&c->in, waiting.n);
		if (buf_len(&c->in) == 0)
			buf_done(&c->in);
		return true;
	}
	n = conn_read(c, c->g->scratch, MIN(max, sizeof(c->g->scratch)));
	if (n > 0)
		return pass_up(t, str_make(c->g->scratch, (size_t)n)) &&
		       ((size_t)n == max || conn_has_buffered(c));
	if (n != -EAGAIN)
		tunnel_on_eof(t, n == 0);
	return false;
}

static void tunnel_readable(struct conn *c)
{
	struct tunnel *t = c->state;

	if (!t->accepted) {
		conn_want_read(c, false);
		return;
	}
	conn_read_turn(c, tunnel_read_once);
}

static void tunnel_on_credit(struct stream *s, uint32_t n)
{
	struct tunnel *t = owner(s);

	if (t->accepted && !s->sent_end)
		conn_want_read(t->c, true);
}

/* --- from the broker --- */

static void on_interim(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
}

/* Send an alert in plain text, which a client accepts before the handshake has begun (RFC 8446
 * 6). */
static void refuse_tunnel(struct tunnel *t)
{
	static const char access_denied[] = {21, 3, 3, 0, 2, 2, 49};
	struct conn *c = t->c;

	stream_close(&t->stream, NET_RESET_CANCELLED);
	if (t->tcp || t->ssh) {
		conn_abort(c);
		return;
	}
	if (buf_add(&c->out, access_denied, sizeof(access_denied)) < 0)
		conn_close(c);
	else
		conn_end_linger(c);
}

/* Answer the room's end of SSH. */
static bool ssh_answer(struct tunnel *t, uint16_t status, struct str text)
{
	const struct sshleg_answer m = {.status = status, .text = text};

	if (sshleg_put_answer(&t->c->out, &m) < 0) {
		conn_abort(t->c);
		return false;
	}
	conn_mark(t->c);
	return true;
}

static void on_head(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct tunnel *t = owner(s);

	if (m->status != 200 && t->ssh) {
		t->refused = m->status;
		return;
	}
	if (m->status != 200) {
		refuse_tunnel(t);
		return;
	}
	if (t->ssh && !ssh_answer(t, 200, STR_NULL))
		return;
	t->accepted = true;
	conn_guard_end(t->c); /* we cannot know what its end means */
	rearm(t->c);
	conn_want_read(t->c, true);
}

static void follow(struct ws_reader *r, struct str bytes)
{
	struct str piece;
	enum ws_result result;

	do {
		result = ws_read(r, &bytes, &piece);
	} while (result == WS_HEAD || result == WS_DATA);
}

static void tunnel_on_data(struct stream *s, struct str bytes)
{
	struct tunnel *t = owner(s);

	if (t->refused) {
		(void)!buf_add_str(&t->text, bytes); /* what does not fit is not shown */
		return;
	}
	if (t->websocket)
		follow(&t->down, bytes);
	if (t->down.error != WS_E_OK || buf_add_str(&t->c->out, bytes) < 0) {
		conn_abort(t->c);
		return;
	}
	rearm(t->c);
	conn_mark(t->c);
}

/* Also end the direction to the client when all that came before its end was written. */
static void tunnel_drained(struct conn *c)
{
	struct tunnel *t = c->state;

	stream_passed_on(&t->stream, conn_pending_out(c));
	rearm(c);
	if (t->ended && conn_pending_out(c) == 0)
		(void)shutdown(c->fd, SHUT_WR);
}

static void tunnel_on_end(struct stream *s, uint16_t fields_n, struct wire_in *fields)
{
	struct tunnel *t = owner(s);
	struct conn *c = t->c;
	bool over = stream_is_over(s);

	t->ended = true;
	if (t->refused) {
		stream_close(s, NET_RESET_CANCELLED);
		if (ssh_answer(t, t->refused, buf_str(&t->text)))
			conn_end(c);
		return;
	}
	if (over)
		stream_close(s, NET_RESET_CANCELLED);
	if (over || t->websocket)
		conn_end(c);
	else
		tunnel_drained(c);
}

/* It may still be something that the gateway looks into. */
static void tunnel_unlisted(struct tunnel *t)
{
	struct conn *c = t->c;

	c->state = NULL;
	c->host = (struct host){0};
	free(t);
	entry_identify(c);
}

static void tunnel_on_reset(struct stream *s, enum net_reset why)
{
	struct tunnel *t = owner(s);

	if (why == NET_RESET_UNLISTED && t->tcp && !t->accepted)
		tunnel_unlisted(t);
	else if (t->websocket && why == NET_RESET_LIMIT)
		say_close(t, GOING_AWAY);
	else
		conn_cut(t->c);
}

static const struct stream_ops tunnel_stream_ops = {
	.interim = on_interim,
	.head = on_head,
	.data = tunnel_on_data,
	.end = tunnel_on_end,
	.reset = tunnel_on_reset,
	.credit = tunnel_on_credit,
};

/* --- the stage --- */

static void tunnel_end(struct conn *c)
{
	struct tunnel *t = c->state;

	stream_close(&t->stream, NET_RESET_CANCELLED);
	buf_done(&t->text);
	free(t);
	c->state = NULL;
}

static const struct stage tunnel_stage = {
	.readable = tunnel_readable,
	.drained = tunnel_drained,
	.expired = tunnel_expired,
	.end = tunnel_end,
};

int tunnel_websocket(struct conn *c, struct stream *s)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (stream_move(s, &t->stream, &tunnel_stream_ops) < 0) {
		free(t);
		return -ENOMEM;
	}
	t->c = c;
	t->websocket = t->accepted = true;
	t->up = ws_reader(WS_FROM_CLIENT);
	t->down = ws_reader(WS_FROM_SERVER);
	c->state = t;
	conn_set_stage(c, &tunnel_stage);
	rearm(c);
	conn_want_read(c, true);
	return 0;
}

static int open_stream(struct tunnel *t, const struct sshleg_request *ssh)
{
	struct conn *c = t->c;
	struct net_open m = {.connection = c->number,
		.client = c->client,
		.owner = conn_owner(c),
		.kind = NET_KIND_TUNNEL,
		.scheme = t->tcp   ? NET_TCP
			  : t->ssh ? NET_SSH
				   : NET_HTTPS,
		.host = host_str(&c->host),
		.port = c->port,
		.body = NET_BODY_STREAM};
	struct net_fields_out fields;
	int r;

	if (ssh) {
		m.method = sshleg_method_word(ssh->method);
		m.target = ssh->path;
	}
	r = stream_open(c->g, &t->stream, &tunnel_stream_ops, &m, &fields);
	if (r < 0)
		return r;
	if (ssh)
		net_add_field(&fields, STR(SSHLEG_FIELD_USER), ssh->user);
	if (ssh && ssh->protocol.n > 0)
		net_add_field(&fields, STR(SSHLEG_FIELD_PROTOCOL), ssh->protocol);
	return stream_open_end(&t->stream, &fields, true);
}

static void begin(struct conn *c, struct tunnel *t, const struct sshleg_request *ssh)
{
	t->c = c;
	c->state = t;
	conn_set_stage(c, &tunnel_stage);
	conn_want_read(c, false);
	rearm(c);
	if (open_stream(t, ssh) < 0)
		refuse_tunnel(t);
}

void tunnel_start_tcp(struct conn *c)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t) {
		conn_close(c);
		return;
	}
	conn_dest_name(c, &c->host);
	t->tcp = true;
	begin(c, t, NULL);
}

void tunnel_start_ssh(struct conn *c, const struct sshleg_request *m, size_t n)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t) {
		conn_close(c);
		return;
	}
	conn_dest_name(c, &c->host);
	t->ssh = true;
	t->text = BUF_INIT(SSHLEG_MAX_TEXT);
	begin(c, t, m);
	if (!c->dead)
		buf_consume(&c->in, n);
}

void tunnel_start(struct conn *c, struct str taken)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t || buf_add_str(&c->in, taken) < 0) {
		free(t);
		conn_close(c);
		return;
	}
	c->tls = tls_conn_free(c->tls);
	begin(c, t, NULL);
}
