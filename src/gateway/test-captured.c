/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that come from a relay: what is said of them, what a hostile one may say, and what it
 * can take. Most tests of listeners run with such connections, too (meson.build). See testing.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "clockwork.h"
#include "gateway/testing.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, MOMENT_MS = 100, RATE = 4096, TEXT_MAX = 8192 };

#define GET "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"

static struct rig rig;

static void start(void)
{
	rig_start(&rig, &(struct rig_config){.captured = true});
}

static void stop(void)
{
	check(rig_stop(&rig));
}

/* A connection of the room to this address, with a name if it is made for one. */
static void mean(const char *address, uint16_t port, const char *name)
{
	struct net_client *m = &rig.meant.client;

	memset(m->address, 0, sizeof(m->address));
	memset(m->server, 0, sizeof(m->server));
	m->family = strchr(address, ':') ? 6 : 4;
	m->server_port = port;
	must(inet_pton(m->family == 6 ? AF_INET6 : AF_INET, address, m->server) == 1);
	m->address[0] = 10;
	rig.meant.name = str_from(name);
}

static void answer(struct client *c, const struct rig_open *o)
{
	struct response p;

	rig_answer(&rig, o->m.stream, "ok");
	check_int(client_response(c, &p, 0), 200);
	check_str(buf_str(&p.body), "ok");
	response_done(&p);
}

/* --- what is the same --- */

/* Everything that the log, policy and attribution have of a request, in one text. */
static void describe(char text[TEXT_MAX], bool captured, bool tls)
{
	struct rig_open o;
	struct client c;

	rig.captured = captured;
	if (tls)
		must(client_connect_tls(&c, &rig, "a.test"));
	else
		client_connect(&c, &rig);
	client_send(&c, "POST /x?y HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nA: b\r\n\r\n");
	o = rig_expect_open(&rig);
	snprintf(text, TEXT_MAX, "%d %d %.*s %u %.*s %.*s %d %s client %u %u %d.%d %d.%d owner %u",
		o.m.kind, o.m.scheme, STR_FMT(o.m.host), o.m.port, STR_FMT(o.m.method),
		STR_FMT(o.m.target), o.m.body, o.fields, o.m.client.family, o.m.client.server_port,
		o.m.client.address[0], o.m.client.address[3], o.m.client.server[0],
		o.m.client.server[3], o.m.owner.pid);
	answer(&c, &o);
	rig_open_done(&o);
	client_close(&c);
}

static void test_same_as_a_listener(void)
{
	char listened[TEXT_MAX], captured[TEXT_MAX];

	start();
	for (int tls = 0; tls < 2; tls++) {
		describe(listened, false, tls);
		describe(captured, true, tls);
		check_z(captured, listened);
	}
	stop();
}

/* --- what is said of it --- */

/* A protocol that is refused: its event is "destination|SSH||0". */
static void expect_destination(const char *destination)
{
	struct client c;
	char want[128];

	client_connect(&c, &rig);
	client_send(&c, "SSH-2.0-x\r\n");
	check(client_expect_end(&c, PATIENCE_MS));
	snprintf(want, sizeof(want), "%s|SSH||0", destination);
	check_z(rig_expect_event(&rig, NET_EVENT_TCP), want);
	client_close(&c);
}

static void test_destinations(void)
{
	start();
	mean("203.0.113.9", 2222, NULL);
	expect_destination("203.0.113.9:2222");
	mean("2001:db8::1", 22, NULL);
	expect_destination("[2001:db8::1]:22");
	/* The address of a name is that of the gateway's own map, whatever the relay's is. */
	mean("198.18.7.7", 22, "b.test");
	expect_destination("b.test (198.18.0.1:22)");
	mean("fd00:c10c::99", 22, "C.Test.");
	expect_destination("c.test ([fd00:c10c::2]:22)");
	mean("fd00:c10c::7", 22, "b.test");
	expect_destination("b.test ([fd00:c10c::1]:22)");
	/* Without a name, an address of the gateway's map has that map's name. */
	mean("198.18.0.2", 22, NULL);
	expect_destination("c.test (198.18.0.2:22)");
	mean("198.18.7.7", 22, NULL);
	expect_destination("198.18.7.7:22");
	stop();
}

/* A request for another host than the connection was made to. */
static void test_request_elsewhere(void)
{
	struct client c;
	struct response p;

	start();
	mean("198.18.0.9", 8080, "b.test");
	client_connect(&c, &rig);
	client_send(&c, "GET / HTTP/1.1\r\nHost: b.test:1\r\n\r\n");
	check_int(client_response(&c, &p, 0), 421);
	check_z(rig_expect_event(&rig, NET_EVENT_MISMATCH), "b.test|b.test:1|port|421");
	response_done(&p);
	client_close(&c);
	stop();
}

static void test_owner(void)
{
	struct rig_open o;
	struct rig_frame *f;
	struct net_event e;
	struct client c;

	start();
	rig.meant.owner = (struct net_owner){7, STR("cu\nrl"), STR("/usr/bin/curl")};
	client_connect(&c, &rig);
	rig.meant.owner = (struct net_owner){0};
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	check_int(o.m.owner.pid, 7);
	check_str(o.m.owner.name, "cu\nrl");
	check_str(o.m.owner.program, "/usr/bin/curl");
	answer(&c, &o);
	rig_open_done(&o);
	client_send(&c, "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n");
	f = rig_recv(&rig, PATIENCE_MS);
	must(f && f->type == NET_EVENT && net_get_event(str_make(f->payload, f->n), &e));
	check_int(e.owner.pid, 7);
	check_str(e.owner.program, "/usr/bin/curl");
	free(f);
	client_close(&c);
	stop();
}

/* --- DNS --- */

static void add_asked(const char *name, uint16_t type, enum capture_answer answer, const char *v)
{
	struct capture_asked m = {.name = str_from(name), .type = type, .answer = answer};

	if (v)
		must(inet_pton(strchr(v, ':') ? AF_INET6 : AF_INET, v, m.address) == 1);
	must(capture_send_asked(&rig.capture, &m) == 0);
}

static void flush_asked(void)
{
	must(chan_flush_wait(&rig.capture, PATIENCE_MS) == 0);
}

static void say_asked(const char *name, uint16_t type, enum capture_answer answer, const char *v)
{
	add_asked(name, type, answer, v);
	flush_asked();
}

static void test_asked(void)
{
	start();
	say_asked("A.test", 1, CAPTURE_ANSWER_A, "198.18.0.77");
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "A.test|A|198.18.0.77|0");
	say_asked("b.test", 28, CAPTURE_ANSWER_AAAA, "fd00:c10c::77");
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "b.test|AAAA|fd00:c10c::77|0");
	say_asked("c\n[]", 65280, CAPTURE_ANSWER_FORMERR, NULL);
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "c\n[]|TYPE65280|FORMERR|0");
	/* A name is logged once a minute. */
	say_asked("a.TEST", 28, CAPTURE_ANSWER_NODATA, NULL);
	check(rig_recv(&rig, MOMENT_MS) == NULL);
	clock_pass(rig.pid, 60 * USEC_PER_SEC);
	say_asked("a.TEST", 28, CAPTURE_ANSWER_NODATA, NULL);
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "a.TEST|AAAA|NODATA|0");
	stop();
}

/* A query over TCP is answered from the gateway's map, which a name that a relay says is in. */
static void test_dns_tcp(void)
{
	static const char query[] = "\0\x18\x12\x34\1\0\0\1\0\0\0\0\0\0\1b\4test\0\0\1\0\1";
	struct client c;

	start();
	mean("198.18.9.9", 22, "b.test");
	expect_destination("b.test (198.18.0.1:22)");
	mean("192.0.2.53", 53, NULL);
	client_connect(&c, &rig);
	client_send_str(&c, str_make(query, sizeof(query) - 1));
	must(shutdown(c.fd, SHUT_WR) == 0);
	while (buf_len(&c.in) < 2 + 24 + 16 && client_read(&c, PATIENCE_MS))
		;
	check(str_ends(buf_str(&c.in), STR("\0\4\xc6\x12\0\1")));
	check(client_expect_end(&c, PATIENCE_MS));
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "b.test|A|198.18.0.1|0");
	client_close(&c);
	stop();
}

/* --- ends --- */

static void expect_frame(uint32_t stream, enum net_frame type, const char *data)
{
	struct rig_frame *f = rig_recv(&rig, PATIENCE_MS);
	struct str bytes;
	uint32_t id;

	must(f);
	check_int(f->type, type);
	if (data) {
		check(net_get_data(str_make(f->payload, f->n), &id, &bytes) && id == stream);
		check_str(bytes, data);
	}
	free(f);
}

/* A ClientHello makes it; returns its stream. */
static uint32_t open_tunnel(struct client *c)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct cloche_err err = {0};
	struct tls_client *tls;
	struct rig_open o;

	rig.tunnel = true;
	client_connect(c, &rig);
	must(tls_client_new(rig.trust, c->fd, STR("a.test"), rig.port, &tls, &err) == 0);
	must(tls_client_handshake(tls) == TLS_IO_READ);
	tls_client_free(tls);
	o = rig_expect_open(&rig);
	check_int(o.m.kind, NET_KIND_TUNNEL);
	m.stream = o.m.stream;
	rig_open_done(&o);
	rig_head(&rig, NET_HEAD, &m, NULL);
	expect_frame(m.stream, NET_DATA, NULL); /* the hello */
	return m.stream;
}

static void expect_text(struct client *c, const char *text)
{
	while (buf_len(&c->in) < strlen(text) && client_read(c, PATIENCE_MS))
		;
	check_str(buf_str(&c->in), text);
	buf_clear(&c->in);
}

/* Each direction ends by itself, whichever is first. */
static void test_half_closes(void)
{
	struct client c;
	uint32_t stream;

	start();
	stream = open_tunnel(&c);
	rig_data(&rig, stream, STR("down"));
	rig_end(&rig, stream, "");
	expect_text(&c, "down");
	check(client_expect_end(&c, PATIENCE_MS) && !c.cut);
	client_send(&c, "up");
	expect_frame(stream, NET_DATA, "up");
	must(shutdown(c.fd, SHUT_WR) == 0);
	expect_frame(stream, NET_END, NULL);
	client_close(&c);

	stream = open_tunnel(&c);
	client_send(&c, "up");
	expect_frame(stream, NET_DATA, "up");
	must(shutdown(c.fd, SHUT_WR) == 0);
	expect_frame(stream, NET_END, NULL);
	rig_data(&rig, stream, STR("down"));
	expect_text(&c, "down");
	check(!c.ended);
	rig_end(&rig, stream, "");
	check(client_expect_end(&c, PATIENCE_MS) && !c.cut);
	client_close(&c);
	stop();
}

/* --- hostile relays --- */

static const char malformed[] = "sent a malformed frame", hung_up[] = "has ended";

/* The gateway ends by itself, and says why. */
static void expect_failure(const char *why)
{
	struct rig_frame *f = rig_recv(&rig, PATIENCE_MS);

	check(f == NULL);
	free(f);
#ifndef SANITIZED /* there, what tells the supervisor is not run */
	struct cloche_err err = {0};
	struct chan_frame said;

	must(chan_recv_wait(&rig.supervisor, &said, PATIENCE_MS) == 1);
	check_int(said.type, HELPER_FAILED);
	check_int(
		helper_get_failed(said.payload, &err), why == malformed ? -E_PROTOCOL : -E_NETWORK);
	check(strstr(err.message, why) != NULL);
	chan_frame_done(&said);
#endif
	check(!rig_stop(&rig));
}

static int make_listening(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(sa_family_t)) == 0);
	must(listen(fd, 1) == 0);
	return fd;
}

static int make_one_of_pair(int type)
{
	int pair[2];

	must(fd_socketpair(type, pair) == 0);
	close(pair[0]);
	return pair[1];
}

static int make_pipe(void)
{
	int pair[2];

	must(fd_pipe(pair) == 0);
	close(pair[1]);
	return pair[0];
}

static void test_wrong_descriptors(void)
{
	const int fds[] = {
		make_listening(),
		make_one_of_pair(SOCK_SEQPACKET),
		make_pipe(),
		memfd_create("file", MFD_CLOEXEC),
		open("/dev/null", O_RDWR | O_CLOEXEC),
		open("/", O_PATH | O_CLOEXEC),
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		must(fds[i] >= 0);
		start();
		rig_capture(&rig, &fds[i], 1);
		expect_failure(malformed);
		close(fds[i]);
	}
}

static void test_wrong_number_of_descriptors(void)
{
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	for (unsigned n = 0; n <= 2; n += 2) {
		start();
		rig_capture(&rig, pair, n);
		expect_failure(malformed);
	}
	start();
	must(chan_send(&rig.capture, CAPTURE_ASKED,
		     STR("\1\0\0\0a\0\0\2" /* and an address */
			 "0123456789abcdef"),
		     pair, 1) == 0);
	must(chan_flush_wait(&rig.capture, PATIENCE_MS) == 0);
	expect_failure(malformed);
	close(pair[0]);
	close(pair[1]);
}

static void test_wrong_values(void)
{
	static const char *const no_names[] = {"a..b", ".", "a b", "\xc3\xa4.test", "a.test..",
		"0123456789012345678901234567890123456789012345678901234567890123.test"};
	int fd = make_one_of_pair(SOCK_STREAM);

	for (size_t i = 0; i < ARRAY_SIZE(no_names); i++) {
		start();
		mean("198.18.0.9", 80, no_names[i]);
		rig_capture(&rig, &fd, 1);
		expect_failure(malformed);
	}
	start();
	mean("198.18.0.9", 0, NULL);
	rig_capture(&rig, &fd, 1);
	expect_failure(malformed);
	start();
	rig.meant.client = (struct net_client){0};
	rig_capture(&rig, &fd, 1);
	expect_failure(malformed);
	close(fd);
}

/* Bytes that no encoder of ours makes. */
static void test_wrong_bytes(void)
{
	static const struct str all[] = {
		STR("\0\0\0\0\1\0\0\0"),   /* no payload */
		STR("\0\0\0\0\x09\0\0\0"), /* an unknown frame */
		STR("\0\0\0\0\1\0\1\0"),   /* a descriptor that does not come */
		STR("\0\0\1\0\1\0\0\0"),   /* too long */
		STR("\x17\0\0\0\2\0\0\0"   /* an answer that there is not */
		    "\0\0\0\0\0\0\6"
		    "0123456789abcdef"),
		STR("GET / HTTP/1.1\r\n"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		start();
		must(fd_write_all(rig.capture.fd, all[i].p, all[i].n) == 0);
		expect_failure(malformed);
	}
}

/* Half a network is none. */
static void test_end_of_relay(void)
{
	struct client c;

	start();
	client_connect(&c, &rig);
	client_send(&c, "GET / HT");
	must(shutdown(rig.capture.fd, SHUT_WR) == 0);
	check(client_expect_end(&c, PATIENCE_MS));
	client_close(&c);
	expect_failure(hung_up);
}

/* A socket that is connected to nothing ends at once, and is nobody else's trouble. */
static void test_unconnected(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rig_open o;
	struct client c;

	must(fd >= 0);
	start();
	rig_capture(&rig, &fd, 1);
	close(fd);
	check(strstr(rig_expect_event(&rig, NET_EVENT_TCP), "|client closed before"));
	client_connect(&c, &rig);
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	answer(&c, &o);
	rig_open_done(&o);
	client_close(&c);
	stop();
}

/* Descriptors that come with the bytes of a connection are nobody's. */
static void test_attached(void)
{
	static char request[] = GET;
	struct iovec iov = {.iov_base = request, .iov_len = sizeof(request) - 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_control control;
	struct rig_open o;
	struct client c;
	int fds[FD_ATTACHED_MAX];
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = STDIN_FILENO;
	start();
	client_connect(&c, &rig);
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	answer(&c, &o);
	rig_open_done(&o);
	fd_attach(&msg, &control, fds, ARRAY_SIZE(fds));
	n = sendmsg(c.fd, &msg, MSG_NOSIGNAL);
	if (n < 0) { /* the kernel can refuse that (Linux 6.16) */
		check_int(errno, EPERM);
		client_send(&c, GET);
	} else {
		check_int(n, sizeof(request) - 1);
	}
	o = rig_expect_open(&rig);
	answer(&c, &o);
	rig_open_done(&o);
	client_close(&c);
	stop();
}

/* Both ends of a pair as two connections: the gateway answers itself, and soon has enough of it. */
static void test_joined(void)
{
	struct rig_frame *f;
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	start();
	must(send(pair[0], "GET / HTTP/1.1\r\nHost: a.test:1\r\n\r\n", 34, 0) == 34);
	rig_capture(&rig, &pair[0], 1);
	rig_capture(&rig, &pair[1], 1);
	close(pair[0]);
	close(pair[1]);
	(void)rig_expect_event(&rig, NET_EVENT_MISMATCH);
	(void)rig_expect_event(&rig, NET_EVENT_TCP);
	f = rig_recv(&rig, MOMENT_MS);
	check(f == NULL);
	free(f);
	stop();
}

/* What a relay says counts as its connections do: what comes too fast waits for the next second,
 * even if it was read already. */
static void test_flood(void)
{
	enum { MORE = 10 };
	struct rig_open o;
	struct client c;

	start();
	for (int i = 0; i < RATE + MORE; i++) {
		add_asked(i == RATE + MORE - 1 ? "last.test" : "a.test", 1, CAPTURE_ANSWER_NODATA,
			NULL);
		if (i % 1000 == 0)
			flush_asked();
	}
	flush_asked();
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "a.test|A|NODATA|0");
	check_z(rig_expect_event(&rig, NET_EVENT_LIMIT), "connections|too many in one second||0");
	client_connect(&c, &rig);
	client_send(&c, GET);
	check(rig_recv(&rig, MOMENT_MS) == NULL);
	clock_pass(rig.pid, USEC_PER_SEC);
	check_z(rig_expect_event(&rig, NET_EVENT_DNS), "last.test|A|NODATA|0");
	o = rig_expect_open(&rig);
	answer(&c, &o);
	rig_open_done(&o);
	client_close(&c);
	stop();
}

int main(void)
{
	clock_hold();
	run_test(test_same_as_a_listener);
	run_test(test_destinations);
	run_test(test_request_elsewhere);
	run_test(test_owner);
	run_test(test_asked);
	run_test(test_dns_tcp);
	run_test(test_half_closes);
	run_test(test_wrong_descriptors);
	run_test(test_wrong_number_of_descriptors);
	run_test(test_wrong_values);
	run_test(test_wrong_bytes);
	run_test(test_end_of_relay);
	run_test(test_unconnected);
	run_test(test_attached);
	run_test(test_joined);
	run_test(test_flood);
	return tap_done();
}
