/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/testing.h"
#include "base/clock.h"
#include "base/fd.h"
#include "broker/broker.h"
#include "ipc/helper.h"
#include "tap.h"
#include "tls/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, TEXT_MAX = 1 << 20 };

static _noreturn_ void child(const int fds[4])
{
	const struct broker_fds in = {
		.supervisor = fds[0], .net = fds[1], .conf = fds[2], .cert = fds[3]};
	struct cloche_err err = CLOCHE_ERR_INIT;

	_exit(broker_run(&in, &err));
}

/* The broker is a fork, so another thread's locks (the sanitizer's of its memory, OpenSSL's) would
 * stay locked in it for ever: origins begin after the broker. A thread that was joined is still
 * there for a moment. */
static bool has_one_thread(void)
{
	struct stat st = {0};

	for (int i = 0; i < PATIENCE_MS && st.st_nlink != 3; i++) { /* ".", its name, the thread */
		if (i > 0)
			usleep(1000);
		if (stat("/proc/self/task", &st) < 0)
			return false;
	}
	return st.st_nlink == 3;
}

void rig_start(struct rig *g)
{
	int sup[2], net[2], conf[2], cert[2];

	*g = (struct rig){.next = 1, .pem = BUF_INIT(1 << 16)};
	test_need(has_one_thread());
	test_need(fd_socketpair(SOCK_STREAM, sup) == 0 && fd_socketpair(SOCK_STREAM, net) == 0 &&
		  fd_socketpair(SOCK_STREAM, conf) == 0 && fd_pipe(cert) == 0);
	fflush(stdout);
	g->pid = fork();
	test_need(g->pid >= 0);
	if (g->pid == 0) {
		close(sup[0]);
		close(net[0]);
		close(conf[0]);
		close(cert[0]);
		child((const int[]){sup[1], net[1], conf[1], cert[1]});
	}
	/* The test and its origins write to whoever has gone, as the broker does. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	close(sup[1]);
	close(net[1]);
	close(conf[1]);
	close(cert[1]);
	test_need(fd_read_to_end(cert[0], &g->pem) == 0);
	close(cert[0]);
	test_need(chan_init(&g->supervisor, sup[0], HELPER_MAX_PAYLOAD, 1 << 16) == 0);
	test_need(chan_init(&g->net, net[0], NET_MAX_PAYLOAD, 64 << 20) == 0);
	test_need(chan_init(&g->conf, conf[0], NETCONF_MAX_PAYLOAD, 8 << 20) == 0);
	close(tap_file(g->log));
	close(tap_file(g->json));
}

void rig_allow(struct rig *g, const char *yaml)
{
	test_need(netconf_send_allowlist(&g->conf,
			  &(struct netconf_allowlist){STR("allow.yaml"), str_from(yaml)}) == 0);
}

void rig_connect_to(struct rig *g, const char *host, uint16_t port, uint16_t to)
{
	const struct netconf_connect_to m = {
		.host = str_from(host), .port = port, .address = STR("127.0.0.1"), .to_port = to};

	test_need(netconf_send_connect_to(&g->conf, &m) == 0);
}

void rig_secret(struct rig *g, const char *name, const char *value, const char *surrogate,
	const char *host, const char *header)
{
	char scope[64], pattern[64];
	char *scopes[] = {scope, NULL}, *headers[] = {pattern, NULL};
	const struct netconf_secret m = {.name = str_from(name),
		.value = str_from(value),
		.surrogate = str_from(surrogate),
		.scopes = scopes,
		.headers = headers};

	snprintf(scope, sizeof(scope), "%s", host);
	snprintf(pattern, sizeof(pattern), "%s", header);
	test_need(netconf_send_secret(&g->conf, &m) == 0);
}

static void send_done(struct rig *g)
{
	int fds[2] = {open(g->log, O_WRONLY | O_APPEND | O_CLOEXEC),
		open(g->json_to ? g->json_to : g->json, O_WRONLY | O_APPEND | O_CLOEXEC)};

	test_need(fds[0] >= 0 && fds[1] >= 0);
	test_need(chan_send(&g->conf, NETCONF_LOG, str_make("\1\1\0\0", 4), fds, 2) == 0);
	close(fds[0]);
	close(fds[1]);
	test_need(chan_send(&g->conf, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
}

void rig_serve(struct rig *g)
{
	/* A P-256 SubjectPublicKeyInfo; the broker never uses the point. */
	uint8_t spki[91] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02,
		0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
		0x04, 1, 2, 3};
	struct net_hello m = {.version = NET_VERSION, .spki = str_make(spki, sizeof(spki))};
	struct chan_frame f;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	send_done(g);
	test_need(chan_recv_wait(&g->conf, &f, PATIENCE_MS) == 1);
	if (f.type == NETCONF_REFUSED && netconf_get_refused(f.payload, &err) < 0)
		printf("# refused: %s\n", err.message);
	test_need(f.type == NETCONF_OK);
	test_need(chan_recv_wait(&g->supervisor, &f, PATIENCE_MS) == 1 && f.type == HELPER_READY);
	test_need(net_send_hello(&g->net, &m) == 0);
	rig_flush(g);
	/* Unless the test has sent before what ends the channel. */
	r = chan_recv_wait(&g->net, &f, PATIENCE_MS);
	test_need(r < 0 || (r == 1 && f.type == NET_PORTS));
}

static int rig_memory_file(const char *text)
{
	int fd = memfd_create("hosts", MFD_CLOEXEC);

	test_need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	test_need(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

void rig_hosts(struct rig *g, const char *hosts)
{
	int fds[2] = {rig_memory_file(""), rig_memory_file(hosts)};
	struct chan_frame f = {0};

	/* Requests come by another socket, so the names must be in force before: the answer of
	 * HELPER_COUNT says so. */
	test_need(helper_send_names(&g->supervisor, fds) == 0 &&
		  helper_send_count(&g->supervisor) == 0);
	test_need(chan_flush_wait(&g->supervisor, PATIENCE_MS) == 0);
	while (f.type != HELPER_COUNTED)
		test_need(chan_recv_wait(&g->supervisor, &f, PATIENCE_MS) == 1);
	close(fds[0]);
	close(fds[1]);
}

void rig_refused(struct rig *g, struct cloche_err *ret)
{
	struct chan_frame f;

	send_done(g);
	test_need(chan_recv_wait(&g->conf, &f, PATIENCE_MS) == 1 && f.type == NETCONF_REFUSED);
	test_need(netconf_get_refused(f.payload, ret) < 0);
	test_need(chan_recv_wait(&g->supervisor, &f, PATIENCE_MS) == 1);
	test_need(f.type == HELPER_FAILED);
}

bool rig_ended(struct rig *g)
{
	struct chan_frame f;
	int r;

	do
		r = chan_recv_wait(&g->net, &f, 5000);
	while (r > 0);
	return r != -ETIMEDOUT;
}

int rig_stop(struct rig *g)
{
	int status = -1;

	chan_done(&g->supervisor);
	test_need(waitpid(g->pid, &status, 0) == g->pid);
	chan_done(&g->net);
	chan_done(&g->conf);
	buf_done(&g->pem);
	unlink(g->log);
	unlink(g->json);
	return status;
}

char *rig_log(const struct rig *g, bool json)
{
	struct buf b = BUF_INIT(16 << 20);
	int fd = open(json ? g->json : g->log, O_RDONLY | O_CLOEXEC);

	test_need(fd >= 0 && fd_read_to_end(fd, &b) == 0 && buf_add_char(&b, '\0') == 0);
	close(fd);
	return b.mem;
}

long rig_rss_kib(const struct rig *g)
{
	struct buf b = BUF_INIT(1 << 16);
	char path[64];
	size_t at;
	int fd;
	long n;

	snprintf(path, sizeof(path), "/proc/%d/status", g->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	test_need(fd >= 0 && fd_read_to_end(fd, &b) == 0 && buf_add_char(&b, '\0') == 0);
	close(fd);
	at = str_find(buf_str(&b), STR("VmRSS:"));
	test_need(at < buf_len(&b));
	n = strtol(buf_data(&b) + at + 6, NULL, 10);
	buf_done(&b);
	return n;
}

void rig_flush(struct rig *g)
{
	int r = chan_flush_wait(&g->net, PATIENCE_MS);

	test_need(r == 0 || r == -EPIPE);
}

uint32_t rig_open(struct rig *g, const struct ask *a)
{
	struct net_open m = {.stream = g->next++,
		.connection = 1,
		.client = a->client,
		.owner = a->owner,
		.kind = a->kind,
		.scheme = a->scheme,
		.host = str_from(a->host),
		.port = a->port                  ? a->port
			: a->scheme == NET_HTTPS ? 443
						 : 80,
		.method = str_from(a->method ? a->method : "GET"),
		.target = str_from(a->target),
		.body = a->body,
		.length = a->length,
		.expect_continue = a->expects,
		.te_trailers = a->te,
		.http1 = a->http1,
		.keep_alive = a->keep_alive};
	struct net_fields_out f = net_begin_open(&g->net, &m);

	for (size_t i = 0; i + 1 < ARRAY_SIZE(a->fields) && a->fields[i]; i += 2)
		net_add_field(&f, str_from(a->fields[i]), str_from(a->fields[i + 1]));
	test_need(net_end_fields(&f) == 0);
	if (!a->more)
		rig_flush(g);
	return m.stream;
}

void rig_data(struct rig *g, uint32_t stream, const char *p, size_t n)
{
	for (size_t at = 0; at < n; at += NET_MAX_DATA)
		test_need(net_send_data(&g->net, stream,
				  str_make(p + at, MIN(n - at, (size_t)NET_MAX_DATA))) == 0);
	rig_flush(g);
}

void rig_end(struct rig *g, uint32_t stream)
{
	test_need(net_send_end(&g->net, stream) == 0);
	rig_flush(g);
}

void got_done(struct got *r)
{
	buf_done(&r->fields);
	buf_done(&r->text);
}

static void testing_take_fields(struct got *r, struct wire_in *fields, unsigned n)
{
	struct str name, value;

	while (n-- > 0 && net_next_field(fields, &name, &value))
		test_need(
			buf_printf(&r->fields, "%.*s: %.*s\n", STR_FMT(name), STR_FMT(value)) == 0);
	test_need(wire_ok(fields));
}

static void take_data(struct rig *g, struct got *r, uint32_t stream, struct str bytes)
{
	r->bytes += bytes.n;
	test_need(buf_add_str(&r->text, str_prefix(bytes, buf_room(&r->text))) == 0);
	if (!g->stalled) {
		test_need(net_send_credit(&g->net, stream, (uint32_t)bytes.n) == 0);
		rig_flush(g);
	}
}

/* One frame of the stream. */
static void testing_take(struct rig *g, struct got *r, const struct chan_frame *f)
{
	struct wire_in in = wire_in(f->payload), fields;
	uint32_t stream = wire_get_u32(&in), id;
	struct net_response m;
	struct net_trailers trailers;
	struct net_credit credit;
	struct str bytes;

	switch (f->type) {
	case NET_INTERIM:
	case NET_HEAD:
		test_need(net_get_response(f->payload, &m, &fields));
		testing_take_fields(r, &fields, m.fields_n);
		if (f->type == NET_INTERIM) {
			r->interims++;
			break;
		}
		r->status = m.status;
		r->body = m.body;
		r->length = m.length;
		r->close = m.close;
		break;
	case NET_DATA:
		test_need(net_get_data(f->payload, &id, &bytes));
		take_data(g, r, stream, bytes);
		break;
	case NET_END:
		test_need(net_get_trailers(f->payload, &trailers, &fields));
		testing_take_fields(r, &fields, trailers.fields_n);
		r->ended = true;
		break;
	case NET_RESET:
		r->reset = true;
		break;
	case NET_CREDIT:
		test_need(net_get_credit(f->payload, &credit));
		r->credit += credit.bytes;
		break;
	default:
		test_need(false);
	}
}

void rig_collect(struct rig *g, uint32_t stream, struct got *ret, int ms)
{
	struct chan_frame f;

	if (!ret->fields.max) {
		ret->fields = BUF_INIT(1 << 18);
		ret->text = BUF_INIT(TEXT_MAX);
	}
	while (!ret->ended && !ret->reset) {
		struct wire_in in;
		int r = chan_recv_wait(&g->net, &f, ms);

		if (r < 0) {
			ret->gone = r != -ETIMEDOUT;
			return;
		}
		in = wire_in(f.payload);
		if (wire_get_u32(&in) == stream)
			testing_take(g, ret, &f);
		chan_frame_done(&f);
	}
}

void rig_ask(struct rig *g, const struct ask *a, struct got *ret)
{
	*ret = (struct got){0};
	rig_collect(g, rig_open(g, a), ret, PATIENCE_MS);
}

bool got_has(const struct got *r, const char *text)
{
	return str_find(buf_str(&r->text), str_from(text)) < buf_len(&r->text);
}

bool got_field(const struct got *r, const char *line)
{
	return str_find(buf_str(&r->fields), str_from(line)) < buf_len(&r->fields);
}
