/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/testing.h"
#include "base/clock.h"
#include "base/fd.h"
#include "gateway/narrow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 };

/* As must() of tap.h, which belongs to the file with the tests. */
#define need(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("Bail out! %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #cond,      \
				errno);                                                            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

bool rig_own_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd, r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	need(fd >= 0);
	r = ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return r == 0;
}

static int bind_socket(int type, uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(fd >= 0);
	need(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	need(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	need(type != SOCK_STREAM || listen(fd, 512) == 0);
	need(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* With limits of the test's own, or if a sanitizer wants to look at the end of the process, the
 * program's parts are called one by one. */
static _noreturn_ void child(int supervisor, int broker, const struct gateway_limits *limits)
{
	struct gateway_config config = {
		.supervisor_fd = supervisor, .broker_fd = broker, .limits = limits};
	struct gateway *g = NULL;
	struct cloche_err err = {0};
	int r;

#ifndef SANITIZED
	if (!limits) {
		supervisor = fcntl(supervisor, F_DUPFD, 100);
		broker = fcntl(broker, F_DUPFD, 100);
		need(dup2(supervisor, HELPER_FD_SUPERVISOR) >= 0);
		need(dup2(broker, HELPER_FD_PEER) >= 0);
		_exit(gateway_program());
	}
#endif
	r = gateway_new(&config, &g, &err);
#ifndef SANITIZED
	if (r == 0)
		r = gateway_narrow_calls(&err);
#endif
	if (r == 0)
		r = gateway_run(g, &err);
	gateway_free(g);
	if (r < 0)
		fprintf(stderr, "# gateway: %s\n", err.message);
#ifndef SANITIZED
	_exit(r < 0 ? 1 : 0);
#endif
	exit(r < 0 ? 1 : 0);
}

static void greet(struct rig *r)
{
	struct chan_frame f;
	struct net_hello hello;
	struct cloche_err err = {0};
	_cleanup_(buf_donep) struct buf pem = BUF_INIT(8192);

	need(chan_recv_wait(&r->supervisor, &f, PATIENCE_MS) == 1 && f.type == HELPER_READY);
	need(chan_recv_wait(&r->broker, &f, PATIENCE_MS) == 1 && f.type == NET_HELLO);
	need(net_get_hello(f.payload, &hello) && hello.version == NET_VERSION);
	r->spki = BUF_INIT(NET_MAX_SPKI);
	need(buf_add_str(&r->spki, hello.spki) == 0);
	need(tls_ca_new(clock_real_usec(), &r->ca, &err) == 0);
	need(tls_trust_new(false, &r->trust, &err) == 0);
	need(tls_ca_add_pem(r->ca, &pem) == 0);
	need(tls_trust_add_pem(r->trust, buf_str(&pem), "test", &err) == 0);
}

void rig_start(struct rig *r, const struct rig_config *config)
{
	int supervisor[2], broker[2], fds[HELPER_SOCKETS] = {-1, -1, -1, -1, -1};
	struct helper_listeners m = {.present = 1 << HELPER_TCP4 | 1 << HELPER_UDP4};

	*r = (struct rig){.capture.fd = -1};
	r->last = &r->first;
	r->captured = config->captured || getenv("CLOCHE_TEST_CAPTURED");
	need(fd_socketpair(SOCK_STREAM, supervisor) == 0);
	need(fd_socketpair(SOCK_STREAM, broker) == 0);
	fflush(stdout);
	r->pid = fork();
	need(r->pid >= 0);
	if (r->pid == 0) {
		close(supervisor[0]);
		close(broker[0]);
		child(supervisor[1], broker[1], config->limits);
	}
	close(supervisor[1]);
	close(broker[1]);
	need(chan_init(&r->supervisor, supervisor[0], HELPER_MAX_PAYLOAD, 65536) == 0);
	need(chan_init(&r->broker, broker[0], NET_MAX_PAYLOAD, (size_t)8 << 20) == 0);
	fds[HELPER_TCP4] = bind_socket(SOCK_STREAM, config->port, &r->port);
	fds[HELPER_UDP4] = bind_socket(SOCK_DGRAM, 0, &r->dns_port);
	if (r->captured) {
		fds[HELPER_CAPTURE] = rig_make_capture(r);
		m.present |= 1 << HELPER_CAPTURE;
	}
	need(helper_send_listeners(&r->supervisor, &m, fds) == 0);
	need(chan_flush_wait(&r->supervisor, PATIENCE_MS) == 0);
	close(fds[HELPER_TCP4]);
	close(fds[HELPER_UDP4]);
	fd_close(fds[HELPER_CAPTURE]);
	greet(r);
	if (!config->late_ports)
		need(net_send_ports(&r->broker, &(struct net_ports){0}) == 0);
	need(chan_flush_wait(&r->broker, PATIENCE_MS) == 0);
}

bool rig_stop(struct rig *r)
{
	uint64_t until = clock_mono_usec() + 10 * USEC_PER_SEC;
	int status = -1;
	pid_t got;

	chan_done(&r->supervisor);
	while ((got = waitpid(r->pid, &status, WNOHANG)) == 0 && clock_mono_usec() < until)
		usleep(2000);
	if (got == 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
	}
	chan_done(&r->broker);
	chan_done(&r->capture);
	while (r->first) {
		struct rig_frame *f = r->first;

		r->first = f->next;
		free(f);
	}
	buf_done(&r->spki);
	tls_ca_free(r->ca);
	tls_trust_free(r->trust);
	if (status != 0)
		printf("# gateway ended with wait status %d\n", status);
	return status == 0;
}

size_t rig_memory(const struct rig *r)
{
	char path[64], line[256];
	size_t kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)r->pid);
	f = fopen(path, "re");
	need(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = (size_t)strtoul(line + 6, NULL, 10);
	fclose(f);
	need(kb > 0);
	return kb * 1024;
}

/* --- the broker's side --- */

static void flush(struct rig *r)
{
	need(chan_flush_wait(&r->broker, PATIENCE_MS) == 0);
}

static void serve_mint(struct rig *r, struct str payload)
{
	struct tls_subject subject = {0};
	struct net_cert cert = {.ok = !r->refuse_mint};
	struct net_mint m;
	char text[NET_MAX_HOST + 1] = {0};
	_cleanup_(buf_donep) struct buf der = BUF_INIT(NET_MAX_CERT);

	need(net_get_mint(payload, &m));
	memcpy(text, m.host.p, m.host.n);
	if (inet_pton(AF_INET, text, subject.address) == 1)
		subject.address_len = 4;
	else
		subject.name = m.host;
	if (cert.ok)
		need(tls_ca_mint(r->ca, buf_str(&r->spki), &subject, clock_real_usec(), &der,
			     NULL) == 0);
	if (r->tunnel)
		buf_clear(&der);
	r->minted++;
	cert.request = m.request;
	cert.leaf = buf_str(&der);
	cert.mode = r->tunnel                         ? NET_MODE_TUNNEL
		    : r->h2 && m.h2 && !r->h2_unknown ? NET_MODE_H2
						      : NET_MODE_HTTP1;
	need(net_send_cert(&r->broker, &cert) == 0);
	flush(r);
}

/* Takes one frame off the channel: serves MINT, queues others. False when none came. */
static bool take_frame(struct rig *r, int timeout_ms)
{
	struct chan_frame f;
	struct rig_frame *kept;
	int e = chan_recv_wait(&r->broker, &f, timeout_ms);

	if (e == -ETIMEDOUT || e == -EPIPE)
		return false;
	need(e == 1);
	if (f.type == NET_MINT) {
		serve_mint(r, f.payload);
		return true;
	}
	kept = calloc(1, sizeof(*kept) + f.payload.n);
	need(kept);
	kept->type = f.type;
	kept->n = f.payload.n;
	memcpy(kept->payload, f.payload.p, f.payload.n);
	*r->last = kept;
	r->last = &kept->next;
	return true;
}

struct rig_frame *rig_recv(struct rig *r, int timeout_ms)
{
	struct rig_frame *f;

	while (!r->first)
		if (!take_frame(r, timeout_ms))
			return NULL;
	f = r->first;
	r->first = f->next;
	if (!r->first)
		r->last = &r->first;
	return f;
}

static struct rig_frame *recv_type(struct rig *r, enum net_frame type)
{
	struct rig_frame *f = rig_recv(r, PATIENCE_MS);

	need(f);
	if (f->type != (uint16_t)type) {
		printf("Bail out! frame %u came instead of %u\n", f->type, (unsigned)type);
		exit(1);
	}
	return f;
}

static void list_fields(struct wire_in *in, unsigned n, struct buf *out)
{
	struct str name, value;

	while (n--) {
		need(net_next_field(in, &name, &value));
		need(buf_printf(out, "%.*s: %.*s\n", STR_FMT(name), STR_FMT(value)) == 0);
	}
	need(wire_ok(in));
}

struct rig_open rig_expect_open(struct rig *r)
{
	struct rig_open o = {.frame = recv_type(r, NET_OPEN)};
	_cleanup_(buf_donep) struct buf text = BUF_INIT(sizeof(o.fields) - 1);
	struct wire_in in;

	need(net_get_open(str_make(o.frame->payload, o.frame->n), &o.m, &in));
	list_fields(&in, o.m.fields_n, &text);
	if (buf_len(&text))
		memcpy(o.fields, buf_data(&text), buf_len(&text));
	return o;
}

void rig_open_done(struct rig_open *o)
{
	free(o->frame);
	o->frame = NULL;
}

void rig_expect_body(struct rig *r, uint32_t stream, struct buf *ret, struct buf *ret_trailers)
{
	for (;;) {
		struct rig_frame *f = rig_recv(r, PATIENCE_MS);
		struct str payload, bytes;
		struct net_trailers m;
		struct wire_in in;
		uint32_t id;

		need(f);
		payload = str_make(f->payload, f->n);
		if (f->type == NET_END) {
			need(net_get_trailers(payload, &m, &in) && m.stream == stream);
			if (ret_trailers)
				list_fields(&in, m.fields_n, ret_trailers);
			free(f);
			return;
		}
		need(f->type == NET_DATA && net_get_data(payload, &id, &bytes) && id == stream);
		need(buf_add_str(ret, bytes) == 0);
		need(net_send_credit(&r->broker, id, (uint32_t)bytes.n) == 0);
		flush(r);
		free(f);
	}
}

enum net_reset rig_expect_reset(struct rig *r, uint32_t stream)
{
	struct rig_frame *f = recv_type(r, NET_RESET);
	struct net_end_of_stream m;

	need(net_get_end_of_stream(str_make(f->payload, f->n), &m) && m.stream == stream);
	free(f);
	return m.why;
}

const char *rig_expect_event(struct rig *r, enum net_event_kind kind)
{
	static char text[2048];
	struct rig_frame *f = recv_type(r, NET_EVENT);
	struct net_event e;

	need(net_get_event(str_make(f->payload, f->n), &e));
	snprintf(text, sizeof(text), "%.*s|%.*s|%.*s|%u", STR_FMT(e.a), STR_FMT(e.b), STR_FMT(e.c),
		e.status);
	if (e.kind != kind)
		printf("# event of kind %u: %s\n", (unsigned)e.kind, text);
	need(e.kind == kind);
	free(f);
	return text;
}

static void add_fields(struct net_fields_out *out, const char *fields)
{
	struct str rest = str_from(fields);

	while (rest.n > 0) {
		struct str line = str_prefix(rest, str_chr(rest, '\n'));
		size_t colon = str_chr(line, ':');

		net_add_field(
			out, str_prefix(line, colon), str_trim(str_from_index(line, colon + 1)));
		rest = str_from_index(rest, line.n + 1);
	}
}

void rig_head(struct rig *r, enum net_frame type, const struct net_response *m, const char *fields)
{
	struct net_fields_out out = net_begin_response(&r->broker, type, m);

	add_fields(&out, fields);
	need(net_end_fields(&out) == 0);
	flush(r);
}

void rig_data(struct rig *r, uint32_t stream, struct str bytes)
{
	need(net_send_data(&r->broker, stream, bytes) == 0);
	flush(r);
}

void rig_end(struct rig *r, uint32_t stream, const char *trailers)
{
	struct net_fields_out out = net_begin_trailers(&r->broker, stream);

	add_fields(&out, trailers);
	need(net_end_fields(&out) == 0);
	flush(r);
}

void rig_reset(struct rig *r, uint32_t stream, enum net_reset why)
{
	need(net_send_reset(&r->broker, stream, why) == 0);
	flush(r);
}

void rig_answer(struct rig *r, uint32_t stream, const char *text)
{
	const struct net_response m = {
		.stream = stream, .status = 200, .body = NET_BODY_LENGTH, .length = strlen(text)};

	rig_head(r, NET_HEAD, &m, "Content-Type: text/plain\n");
	if (*text)
		rig_data(r, stream, str_from(text));
	rig_end(r, stream, NULL);
}

/* --- the room's side --- */

/* Waits for the client's socket, and serves the gateway meanwhile. */
static bool wait_fd(struct client *c, short events, int timeout_ms)
{
	uint64_t until = clock_mono_usec() + (uint64_t)timeout_ms * 1000;

	for (;;) {
		struct pollfd p[2] = {
			{.fd = c->fd, .events = events}, {.fd = c->r->broker.fd, .events = POLLIN}};
		uint64_t now = clock_mono_usec();

		if (now >= until)
			return false;
		need(poll(p, 2, (int)((until - now) / 1000U) + 1) >= 0 || errno == EINTR);
		/* What is left in its buffer does not make the socket readable. */
		while (p[1].revents && take_frame(c->r, 0))
			continue;
		if (p[0].revents)
			return true;
	}
}

bool client_connect_tls(struct client *c, struct rig *r, const char *host)
{
	struct cloche_err err = {0};
	enum tls_io e;

	client_connect(c, r);
	need(tls_client_new(r->trust, c->fd, str_from(host), r->port, &c->tls, &err) == 0);
	need(!r->h2 || tls_client_offer_h2(c->tls, &err) == 0);
	while ((e = tls_client_handshake(c->tls)) != TLS_IO_OK) {
		if (e != TLS_IO_READ && e != TLS_IO_WRITE)
			return false;
		need(wait_fd(c, e == TLS_IO_READ ? POLLIN : POLLOUT, PATIENCE_MS));
	}
	return true;
}

bool client_was_cut(const struct client *c)
{
	return c->cut || (c->r->captured && !c->tls && c->ended);
}

void client_close(struct client *c)
{
	c->tls = tls_client_free(c->tls);
	c->fd = fd_close(c->fd);
	buf_done(&c->in);
}

size_t client_send_some(struct client *c, struct str bytes)
{
	size_t n = 0;
	ssize_t r;

	if (c->tls)
		return tls_client_write(c->tls, bytes.p, bytes.n, &n) == TLS_IO_OK ? n : 0;
	r = send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	return r < 0 ? 0 : (size_t)r;
}

void client_send_str(struct client *c, struct str bytes)
{
	while (bytes.n > 0) {
		size_t n = client_send_some(c, bytes);

		bytes = str_from_index(bytes, n);
		if (n == 0 && !wait_fd(c, POLLOUT, PATIENCE_MS))
			return; /* the gateway does not take it: the test will see what it says */
	}
}

void client_send(struct client *c, const char *text)
{
	client_send_str(c, str_from(text));
}

static void read_tls(struct client *c, char *at, size_t room)
{
	size_t n = 0;
	enum tls_io e = tls_client_read(c->tls, at, room, &n);

	buf_commit(&c->in, n);
	if (e == TLS_IO_EOF || e == TLS_IO_CUT || e == TLS_IO_FAILED)
		c->ended = true;
	c->cut = c->cut || e == TLS_IO_CUT || e == TLS_IO_FAILED;
}

bool client_read(struct client *c, int timeout_ms)
{
	size_t before = buf_len(&c->in);
	char *at;
	ssize_t n;

	if (c->ended)
		return false;
	if (!(c->tls && tls_client_has_pending(c->tls)) && !wait_fd(c, POLLIN, timeout_ms))
		return false;
	need(buf_reserve(&c->in, 65536, &at) == 0);
	if (c->tls) {
		read_tls(c, at, 65536);
		return !c->ended || buf_len(&c->in) > before;
	}
	n = recv(c->fd, at, 65536, MSG_DONTWAIT);
	if (n > 0)
		buf_commit(&c->in, (size_t)n);
	c->ended = n == 0 || (n < 0 && errno != EAGAIN);
	c->cut = n < 0 && errno != EAGAIN;
	return n > 0;
}

bool client_expect_end(struct client *c, int timeout_ms)
{
	uint64_t until = clock_mono_usec() + (uint64_t)timeout_ms * 1000;

	while (!c->ended && clock_mono_usec() < until) {
		buf_clear(&c->in);
		(void)client_read(c, 50);
	}
	return c->ended;
}

static bool read_body(struct client *c, struct response *ret)
{
	struct http_body body = {0};
	enum http_body_result r = HTTP_BODY_MORE;

	http_body_init(&body, &ret->head, &ret->trailers);
	for (;;) {
		struct str in = buf_str(&c->in), data;
		size_t before = in.n;

		r = http_body_read(&body, &in, &data);
		if (r == HTTP_BODY_DATA)
			need(buf_add_str(&ret->body, data) == 0);
		buf_consume(&c->in, before - in.n);
		if (r == HTTP_BODY_DONE || r == HTTP_BODY_BAD)
			break;
		if (r == HTTP_BODY_MORE && buf_len(&c->in) == 0 && !client_read(c, PATIENCE_MS)) {
			r = http_body_eof(&body) == 0 && !c->cut ? HTTP_BODY_DONE : HTTP_BODY_BAD;
			break;
		}
	}
	http_body_done(&body);
	return r == HTTP_BODY_DONE;
}

unsigned client_response(struct client *c, struct response *ret, unsigned opt)
{
	struct h1_parser p;
	enum h1_result r = H1_MORE;
	size_t used;

	*ret = (struct response){.head = HTTP_HEAD_INIT, .trailers = HTTP_FIELDS_INIT};
	ret->body = BUF_INIT((size_t)64 << 20);
	h1_parser_response(&p, &ret->head, opt);
	while (r == H1_MORE) {
		if (buf_len(&c->in) == 0 && !client_read(c, PATIENCE_MS) && c->ended)
			return 0;
		r = h1_parse(&p, buf_str(&c->in), &used);
		buf_consume(&c->in, used);
	}
	if (r == H1_ERROR)
		printf("# response does not parse: %s\n", h1_error_text(p.error));
	need(r == H1_DONE);
	ret->complete = ret->head.status < 200 || read_body(c, ret);
	return ret->head.status;
}

void response_done(struct response *p)
{
	http_head_done(&p->head);
	http_fields_done(&p->trailers);
	buf_done(&p->body);
}
