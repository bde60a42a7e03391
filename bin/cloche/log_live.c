/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one thread, a few connections, one request each. What is served is the
 * report as it is in a file, and around it a page of our own that asks whether the log has grown
 * (log_live.js). The report keeps its own policy, by which it connects to nothing. Other users of
 * this machine reach the port, too, and so does every page in the person's browser: so each address
 * has a random word in it, and only requests for our own address are answered, by which no name of
 * somebody else's leads here. */
#include "log_live.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/rand.h"
#include "cli.h"
#include "http/h1.h"
#include "http/h1_write.h"
#include "json_out.h"
#include "log.h"

#include <arpa/inet.h>
#include <cloche/instance.h>
#include <cloche/state.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LIVE_CONNS = 8,
	LIVE_REQUEST_MS = 10 * 1000, /* for the head of a request */
	LIVE_ANSWER_MS = 60 * 1000,  /* for one that nobody reads */
	LIVE_WORD = 26,
	LIVE_REASON = 64,
	LIVE_HEAD_MAX = 4096, /* of an answer */
};

extern const char log_live_css[], log_live_js[];

static const char live_page[] =
	"<!DOCTYPE html>\n<html lang=en><head>\n<meta charset=utf-8>\n<title>cloche: live</title>\n"
	"<link rel=stylesheet href=style>\n</head><body>\n<output></output>\n"
	"<noscript><a href=page>the page as it is now</a></noscript>\n"
	"<script src=script></script>\n</body></html>\n";
static const char live_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src "
	"'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	"require-trusted-types-for 'script'; trusted-types 'none'";

struct live_conn {
	int fd;   /* -1: free */
	int body; /* a memfd, or -1: the request is still to come */
	off_t at, size;
	uint64_t until_ms;
	struct http_head head;
	struct h1_parser parser;
	struct buf out; /* the head of the answer */
};

static struct live {
	const char *name; /* of the log */
	int listener;
	char word[LIVE_WORD + 1], hosts[2][32];
	/* How the log was when its end was last looked for. */
	uint64_t size;
	char ended[LIVE_REASON]; /* "": it goes on */
	struct live_conn conns[LIVE_CONNS];
} live;

static uint64_t live_now_ms(void)
{
	return clock_mono_usec() / USEC_PER_MSEC;
}

static void live_close(struct live_conn *c)
{
	c->fd = fd_close(c->fd);
	c->body = fd_close(c->body);
	http_head_done(&c->head);
	buf_done(&c->out);
}

/* --- what is served --- */

static bool live_find_end(const cloche_operation *op, void *user)
{
	_cleanup_json_ json_t *entry = NULL;
	const char *reason;

	if (strcmp(op->name, "sandbox.end") != 0)
		return true;
	entry = json_loads(op->json, 0, NULL);
	reason = json_string_value(json_object_get(json_object_get(entry, "args"), "reason"));
	snprintf(live.ended, sizeof(live.ended), "%s", reason ? reason : "?");
	return true;
}

static int live_put_state(int fd, cloche_err *err)
{
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	_cleanup_json_ json_t *state = NULL;
	int r = open_log(live.name, &log, err);

	if (r == 0 && cloche_oplog_size(log) != live.size) {
		live.size = cloche_oplog_size(log);
		live.ended[0] = '\0';
		r = cloche_oplog_read(log, live_find_end, NULL, err);
	}
	if (r == 0)
		state = json_pack("{s:I, s:s?}", "size", (json_int_t)live.size, "ended",
			live.ended[0] ? live.ended : NULL);
	else
		state = json_pack("{s:s}", "error", err->message);
	return state && json_dumpfd(state, fd, JSON_COMPACT) == 0 ? 0 : -1;
}

static int live_put_report(int fd, cloche_err *err)
{
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	int r = open_log(live.name, &log, err);

	return r < 0 ? r : cloche_oplog_report(log, fd, err);
}

static int live_put_text(int fd, const char *text)
{
	return fd_write_all(fd, text, strlen(text));
}

static int live_put_page(int fd, cloche_err *err)
{
	return live_put_text(fd, live_page);
}

static int live_put_style(int fd, cloche_err *err)
{
	return live_put_text(fd, log_live_css);
}

static int live_put_script(int fd, cloche_err *err)
{
	return live_put_text(fd, log_live_js);
}

static const struct live_route {
	const char *path, *type, *policy;
	int (*put)(int fd, cloche_err *err);
} live_routes[] = {
	{"", "text/html; charset=utf-8", live_policy, live_put_page},
	{"style", "text/css; charset=utf-8", "default-src 'none'", live_put_style},
	{"script", "text/javascript; charset=utf-8", "default-src 'none'", live_put_script},
	{"state", "application/json", "default-src 'none'", live_put_state},
	/* It brings the rest of its policy. */
	{"page", "text/html; charset=utf-8", "frame-ancestors 'self'", live_put_report},
};

/* --- answers --- */

/* Make the answer's head; the body is complete. */
static int live_begin(struct live_conn *c, unsigned status, const char *type, const char *policy)
{
	const struct {
		const char *name, *value;
	} fields[] = {{"Content-Type", type}, {"Content-Security-Policy", policy},
		{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"}, {"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"}};
	struct stat st;
	int r = fstat(c->body, &st) < 0 ? -errno
					: http_head_set_response(&c->head, status, STR_NULL);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++)
		r = http_fields_add(
			&c->head.fields, str_from(fields[i].name), str_from(fields[i].value));
	if (r < 0)
		return r;
	c->size = st.st_size;
	http_head_set_body(&c->head, HTTP_BODY_LENGTH, (uint64_t)st.st_size);
	c->until_ms = live_now_ms() + LIVE_ANSWER_MS;
	return h1_write_response(&c->out, &c->head, H1_W_CLOSE);
}

static int live_refuse(struct live_conn *c, unsigned status, const char *why)
{
	int r = live_put_text(c->body, why);

	return r < 0 ? r : live_begin(c, status, "text/plain; charset=utf-8", "default-src 'none'");
}

/* The word is compared in a time that does not tell how much of it is right. */
static const struct live_route *live_route(struct str target)
{
	unsigned differs = 0;

	if (target.n < LIVE_WORD + 2)
		return NULL;
	for (size_t i = 0; i < LIVE_WORD; i++)
		differs |= (unsigned)(target.p[i + 1] ^ live.word[i]);
	if (differs || target.p[0] != '/' || target.p[LIVE_WORD + 1] != '/')
		return NULL;
	target = str_from_index(target, LIVE_WORD + 2);
	for (size_t i = 0; i < ARRAY_SIZE(live_routes); i++)
		if (str_eq(target, str_from(live_routes[i].path)))
			return &live_routes[i];
	return NULL;
}

static bool live_is_ours(struct str host)
{
	return str_ieq(host, str_from(live.hosts[0])) || str_ieq(host, str_from(live.hosts[1]));
}

/* A whole head has come, or what is none (error: its status). */
static int live_answer(struct live_conn *c, unsigned error)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	const struct live_route *route;

	c->body = memfd_create("answer", MFD_CLOEXEC);
	if (c->body < 0)
		return -errno;
	if (error)
		return live_refuse(c, error, "not understood\n");
	if (!live_is_ours(http_fields_get(&c->head.fields, STR("Host"))))
		return live_refuse(c, 421, "not for this address\n");
	route = live_route(http_head_target(&c->head));
	if (!route)
		return live_refuse(c, 404, "not found\n");
	if (!str_eq(http_head_method(&c->head), STR("GET")))
		return live_refuse(c, 405, "only GET\n");
	if (route->put(c->body, &err) < 0)
		return ftruncate(c->body, 0) < 0 || lseek(c->body, 0, SEEK_SET) < 0
			       ? -errno
			       : live_refuse(c, 500, err.message);
	return live_begin(c, 200, route->type, route->policy);
}

/* --- connections --- */

/* Return 0, or negative if the connection is over. */
static int live_read(struct live_conn *c)
{
	char piece[4096];
	ssize_t n = recv(c->fd, piece, sizeof(piece), 0);
	enum h1_result result;
	size_t used;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	result = h1_parse(&c->parser, str_make(piece, (size_t)n), &used);
	if (result == H1_MORE)
		return 0;
	return live_answer(c, result == H1_ERROR ? h1_error_status(c->parser.error) : 0);
}

static int live_write(struct live_conn *c)
{
	ssize_t n;

	while (buf_len(&c->out)) {
		n = send(c->fd, buf_data(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		buf_consume(&c->out, (size_t)n);
	}
	while (c->at < c->size) {
		n = sendfile(c->fd, c->body, &c->at, (size_t)(c->size - c->at));
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EIO;
	}
	/* What the other end still sends must not take the answer away. */
	(void)shutdown(c->fd, SHUT_WR);
	return -EPIPE;
}

static void live_accept(void)
{
	int fd = accept4(live.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (size_t i = 0; fd >= 0 && i < LIVE_CONNS; i++) {
		struct live_conn *c = &live.conns[i];

		if (c->fd >= 0)
			continue;
		*c = (struct live_conn){.fd = fd,
			.body = -1,
			.head = HTTP_HEAD_INIT,
			.out = BUF_INIT(LIVE_HEAD_MAX),
			.until_ms = live_now_ms() + LIVE_REQUEST_MS};
		h1_parser_request(&c->parser, &c->head);
		return;
	}
	fd_close(fd);
}

/* Wait for something, and handle it. */
static int live_turn(void)
{
	struct pollfd p[LIVE_CONNS + 1];
	uint64_t now = live_now_ms(), next = now + LIVE_ANSWER_MS;
	bool full = true;

	for (size_t i = 0; i < LIVE_CONNS; i++) {
		const struct live_conn *c = &live.conns[i];

		p[i] = (struct pollfd){.fd = c->fd, .events = c->body < 0 ? POLLIN : POLLOUT};
		full = full && c->fd >= 0;
		next = c->fd >= 0 ? MIN(next, c->until_ms) : next;
	}
	p[LIVE_CONNS] = (struct pollfd){.fd = full ? -1 : live.listener, .events = POLLIN};
	if (poll(p, LIVE_CONNS + 1, (int)(next > now ? next - now : 0)) < 0)
		return errno == EINTR ? 0 : -errno;
	now = live_now_ms();
	for (size_t i = 0; i < LIVE_CONNS; i++) {
		struct live_conn *c = &live.conns[i];
		int r = 0;

		if (c->fd < 0)
			continue;
		if (p[i].revents)
			r = c->body < 0 ? live_read(c) : live_write(c);
		if (r < 0 || now >= c->until_ms)
			live_close(c);
	}
	if (p[LIVE_CONNS].revents)
		live_accept();
	return 0;
}

/* --- the server --- */

static int live_listen(uint16_t port, uint16_t *ret, cloche_err *err)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int on = 1;

	live.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (live.listener < 0 ||
		setsockopt(live.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(live.listener, (struct sockaddr *)&a, n) < 0 ||
		listen(live.listener, LIVE_CONNS) < 0 ||
		getsockname(live.listener, (struct sockaddr *)&a, &n) < 0)
		return err_sys(err, errno, "listen on port %u of this machine", port);
	*ret = ntohs(a.sin_port);
	return 0;
}

static bool live_say(uint16_t port, bool json)
{
	char url[96];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s/", port, live.word);
	return json ? json_print_line(json_pack("{s:s}", "url", url)) : put_line(url);
}

int log_live(const char *name, uint16_t port, bool json, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *instance = NULL;
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	int r = open_log(name, &log, err);

	if (r == 0)
		r = live_listen(port, &port, err);
	if (r < 0)
		return r;
	/* A sandbox loses its name when it ends. */
	live.name = cloche_instance_open(name, &instance, NULL) == 0 ? cloche_instance_id(instance)
								     : name;
	live.size = UINT64_MAX;
	rand_id(live.word, LIVE_WORD);
	snprintf(live.hosts[0], sizeof(live.hosts[0]), "127.0.0.1:%u", port);
	snprintf(live.hosts[1], sizeof(live.hosts[1]), "localhost:%u", port);
	for (size_t i = 0; i < LIVE_CONNS; i++)
		live.conns[i].fd = live.conns[i].body = -1;
	signal(SIGPIPE, SIG_IGN);
	if (!live_say(port, json) || !flush_output())
		return EXIT_CLOCHE;
	do
		r = live_turn();
	while (r == 0);
	return err_sys(err, -r, "serve the page");
}
