/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway that has been taken over (INV-NO-RAW-BYTES, INV-NARROW), clients that send nonsense,
 * and what the broker has left for itself when it serves. */
#include "base/fd.h"
#include "broker/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

/* A listener that never accepts: a TLS handshake with it does not end. */
static uint16_t silent_port(void)
{
	static struct sockaddr_in a = {.sin_family = AF_INET};
	static int fd = -1;
	socklen_t n = sizeof(a);

	if (fd < 0) {
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 64) == 0);
		must(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	}
	return ntohs(a.sin_port);
}

/* a.test: nobody listens by http, nobody answers by https; no name is looked up. */
static void serve(struct rig *g)
{
	rig_start(g);
	rig_allow(g, "domains:\n  - \"*.test\"\n");
	rig_connect_to(g, "a.test", 80, 1);
	rig_connect_to(g, "a.test", 443, silent_port());
	rig_serve(g);
}

static uint32_t open_upload(struct rig *g, uint64_t length)
{
	return rig_open(g, &(struct ask){.scheme = NET_HTTPS,
				   .host = "a.test",
				   .method = "POST",
				   .target = "/",
				   .body = length ? NET_BODY_LENGTH : NET_BODY_STREAM,
				   .length = length});
}

static void raw(struct rig *g, unsigned type, const char *p, size_t n)
{
	must(chan_send(&g->net, (uint16_t)type, str_make(p, n), NULL, 0) == 0);
}

static void bad_open(struct rig *g, const char *host, const char *method, const char *target,
	const char *name, const char *value)
{
	rig_open(g,
		&(struct ask){
			.host = host, .method = method, .target = target, .fields = {name, value}});
}

static void second_hello(struct rig *g)
{
	raw(g, NET_HELLO, "\1\0\0\0\0\0\0\0", 8);
}
static void unknown_frame(struct rig *g)
{
	raw(g, 99, "", 0);
}
static void frame_of_ours(struct rig *g)
{
	raw(g, NET_HEAD, "\1\0\0\0", 4);
}
static void short_open(struct rig *g)
{
	raw(g, NET_OPEN, "\1\0\0\0", 4);
}
static void data_of_no_stream(struct rig *g)
{
	rig_data(g, 77, "x", 1);
}
static void number_again(struct rig *g)
{
	open_upload(g, 0);
	g->next = 1;
	open_upload(g, 0);
}
/* Both frames in one write, so that the stream cannot have ended in between. */
static void data_after_end(struct rig *g)
{
	uint32_t id = open_upload(g, 0);

	must(net_send_end(&g->net, id) == 0);
	rig_data(g, id, "x", 1);
}
static void more_than_length(struct rig *g)
{
	rig_data(g, open_upload(g, 3), "four", 4);
}
static void less_than_length(struct rig *g)
{
	rig_end(g, open_upload(g, 3));
}
static void more_than_window(struct rig *g)
{
	static const char zeros[NET_REQUEST_WINDOW + NET_MAX_DATA];

	rig_data(g, open_upload(g, 0), zeros, sizeof(zeros));
}
static void empty_data(struct rig *g)
{
	uint32_t id = open_upload(g, 0);

	raw(g, NET_DATA, (const char *)&id, 4);
}
static void credit_for_nothing(struct rig *g)
{
	must(net_send_credit(&g->net, open_upload(g, 0), 1) == 0);
}
static void bad_reset(struct rig *g)
{
	open_upload(g, 0);
	raw(g, NET_RESET, "\1\0\0\0\11", 5);
}
static void host_not_canonical(struct rig *g)
{
	bad_open(g, "A.test", "GET", "/", NULL, NULL);
}
static void host_with_port(struct rig *g)
{
	bad_open(g, "a.test:80", "GET", "/", NULL, NULL);
}
static void host_disguised(struct rig *g)
{
	bad_open(g, "127.1", "GET", "/", NULL, NULL);
}
static void method_splits(struct rig *g)
{
	bad_open(g, "a.test", "GET / HTTP/1.1\r\n", "/", NULL, NULL);
}
static void method_connect(struct rig *g)
{
	bad_open(g, "a.test", "CONNECT", "/", NULL, NULL);
}
static void target_splits(struct rig *g)
{
	bad_open(g, "a.test", "GET", "/ HTTP/1.1\r\nX: y", NULL, NULL);
}
static void target_absolute(struct rig *g)
{
	bad_open(g, "a.test", "GET", "http://b.test/", NULL, NULL);
}
static void field_splits(struct rig *g)
{
	bad_open(g, "a.test", "GET", "/", "X", "a\r\nHost: evil");
}
static void field_host(struct rig *g)
{
	bad_open(g, "a.test", "GET", "/", "hOST", "evil");
}
static void field_length(struct rig *g)
{
	bad_open(g, "a.test", "GET", "/", "Content-Length", "5");
}
static void field_coding(struct rig *g)
{
	bad_open(g, "a.test", "POST", "/", "Transfer-Encoding", "chunked");
}
static void field_connection(struct rig *g)
{
	bad_open(g, "a.test", "GET", "/", "Connection", "close");
}
static void field_upgrade(struct rig *g)
{
	bad_open(g, "a.test", "GET", "/", "Upgrade", "websocket");
}
static void websocket_post(struct rig *g)
{
	rig_open(g, &(struct ask){.kind = NET_KIND_WEBSOCKET,
			    .host = "a.test",
			    .method = "POST",
			    .target = "/",
			    .body = NET_BODY_STREAM});
}
static void websocket_without_frames(struct rig *g)
{
	rig_open(g, &(struct ask){.kind = NET_KIND_WEBSOCKET, .host = "a.test", .target = "/"});
}
static void tunnel_with_target(struct rig *g)
{
	rig_open(g, &(struct ask){.kind = NET_KIND_TUNNEL,
			    .scheme = NET_HTTPS,
			    .host = "a.test",
			    .method = "",
			    .target = "/",
			    .body = NET_BODY_STREAM});
}
static void tunnel_in_plain(struct rig *g)
{
	rig_open(g, &(struct ask){.kind = NET_KIND_TUNNEL,
			    .host = "a.test",
			    .method = "",
			    .target = "",
			    .body = NET_BODY_STREAM});
}
static void length_without_body(struct rig *g)
{
	rig_open(g, &(struct ask){.host = "a.test", .target = "/", .length = 5});
}
static void trailer_framing(struct rig *g)
{
	uint32_t id = open_upload(g, 0);
	struct net_fields_out f = net_begin_trailers(&g->net, id);

	net_add_field(&f, STR("Content-Length"), STR("7"));
	must(net_end_fields(&f) == 0);
}
static void oversize(struct rig *g)
{
	/* A header that announces more than the protocol's maximum. */
	static const char header[8] = {0, 0, 16, 0, NET_DATA, 0, 0, 0};

	must(write(g->net.fd, header, sizeof(header)) == sizeof(header));
}

/* Ends the rig, whose broker has to have ended because of what it was told. */
static void broken_off(struct rig *g, const char *name)
{
	char *log;
	int status;

	if (!rig_ended(g))
		tap_fail("%s: the broker goes on", name);
	log = rig_log(g, false);
	check(strstr(log, "WARNING: the gateway broke the protocol"));
	free(log);
	status = rig_stop(g);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
		tap_fail("%s: wait status %x", name, (unsigned)status);
}

static void test_protocol(void)
{
	static const struct {
		const char *name;
		void (*act)(struct rig *g);
	} table[] = {
#define ROW(f) {#f, f}
		ROW(second_hello),
		ROW(unknown_frame),
		ROW(frame_of_ours),
		ROW(short_open),
		ROW(data_of_no_stream),
		ROW(number_again),
		ROW(data_after_end),
		ROW(more_than_length),
		ROW(less_than_length),
		ROW(more_than_window),
		ROW(empty_data),
		ROW(credit_for_nothing),
		ROW(bad_reset),
		ROW(host_not_canonical),
		ROW(host_with_port),
		ROW(host_disguised),
		ROW(method_splits),
		ROW(method_connect),
		ROW(target_splits),
		ROW(target_absolute),
		ROW(field_splits),
		ROW(field_host),
		ROW(field_length),
		ROW(websocket_post),
		ROW(websocket_without_frames),
		ROW(tunnel_with_target),
		ROW(tunnel_in_plain),
		ROW(field_coding),
		ROW(field_connection),
		ROW(field_upgrade),
		ROW(length_without_body),
		ROW(trailer_framing),
		ROW(oversize),
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct rig g;

		serve(&g);
		table[i].act(&g);
		rig_flush(&g);
		broken_off(&g, table[i].name);
	}
}

/* Where the kernel keeps a descriptor from the broker (ipc/test-chan.c), the sender hears of it. */
static void test_descriptor(void)
{
	int fd = STDOUT_FILENO, status;
	struct rig g;

	serve(&g);
	must(chan_send(&g.net, NET_EVENT, STR("x"), &fd, 1) == 0);
	if (chan_flush(&g.net) != -EPERM)
		return broken_off(&g, "with a descriptor");
	status = rig_stop(&g);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Before hello nothing counts. */
static void test_no_hello(void)
{
	struct rig g;

	rig_start(&g);
	g.next = 1;
	must(chan_send(&g.net, NET_OPEN, STR("x"), NULL, 0) == 0);
	rig_serve(&g);
	check(rig_ended(&g));
	rig_stop(&g);
}

static void mint(struct rig *g, uint32_t request, const char *host, struct net_cert *ret)
{
	struct chan_frame f;

	must(net_send_mint(
		     &g->net, &(struct net_mint){.request = request, .host = str_from(host)}) == 0);
	must(chan_recv_wait(&g->net, &f, 30000) == 1);
	must(f.type == NET_CERT && net_get_cert(f.payload, ret));
	must(ret->request == request);
}

static void test_mint(void)
{
	static const char *const bad[] = {"", "A.test", "a..test", "a.test.", "127.1", "a.test:1",
		"[::1", "a b", "[fe80::1%1]"};
	static const char *const good[] = {"a.test", "192.0.2.1", "[2001:db8::1]", "2001:db8::1"};
	struct rig g;
	struct net_cert c;
	uint32_t n = 0, minted = 0;
	char name[32];

	serve(&g);
	check(str_find(buf_str(&g.pem), STR("-----BEGIN CERTIFICATE-----")) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		mint(&g, n++, bad[i], &c);
		if (c.ok)
			tap_fail("minted \"%s\"", bad[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		mint(&g, n++, good[i], &c);
		if (!c.ok || c.leaf.n < 300)
			tap_fail("not minted \"%s\"", good[i]);
	}
	/* A flood of names that no rule lists is slowed down, without touching those listed. */
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "x%d.example", i);
		mint(&g, n++, name, &c);
		minted += c.ok;
	}
	check(minted >= 47 && minted <= 150); /* a burst of 50, three of it used above */
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "x%d.test", i);
		mint(&g, n++, name, &c);
		check(c.ok);
	}
	rig_stop(&g);
}

static void refused(const char *yaml, const char *text)
{
	struct rig g;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int status;

	rig_start(&g);
	rig_allow(&g, yaml);
	rig_refused(&g, &err);
	if (!strstr(err.message, text))
		tap_fail("\"%s\" is not in \"%s\"", text, err.message);
	status = rig_stop(&g);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void test_configuration(void)
{
	struct rig g;
	struct cloche_err err = CLOCHE_ERR_INIT;

	refused("domains:\n  - a.test\n  bad\n", "allow.yaml:4:1");
	refused("domain:\n  - a.test\n", "allow.yaml:1");
	rig_start(&g);
	must(chan_send(&g.conf, NETCONF_UPSTREAM_CA, STR("no pem"), NULL, 0) == 0);
	rig_refused(&g, &err);
	check(strstr(err.message, "--upstream-ca"));
	rig_stop(&g);
	rig_start(&g);
	rig_secret(&g, "TOKEN", "short", "short", "a.test", "authorization");
	rig_refused(&g, &err);
	check(strstr(err.message, "TOKEN") && !strstr(err.message, "short"));
	rig_stop(&g);
	/* A client that goes away before it is done. */
	rig_start(&g);
	chan_done(&g.conf);
	g.conf = (struct chan){.fd = -1};
	check(rig_ended(&g));
	rig_stop(&g);
}

static bool status_has(const struct rig *g, const char *line)
{
	struct buf b = BUF_INIT(1 << 16);
	char path[64];
	int fd;
	bool has;

	snprintf(path, sizeof(path), "/proc/%d/status", g->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd >= 0 && fd_read_to_end(fd, &b) == 0);
	close(fd);
	has = str_find(buf_str(&b), str_from(line)) < buf_len(&b);
	buf_done(&b);
	return has;
}

static void test_narrow(void)
{
	struct rig g;

	serve(&g);
	check(status_has(&g, "Seccomp:\t2"));
	check(status_has(&g, "NoNewPrivs:\t1"));
	rig_stop(&g);
}

/* Whoever goes away, the broker goes, too. */
static void test_ends(void)
{
	struct rig g;
	int status;

	serve(&g);
	chan_done(&g.net);
	g.net = (struct chan){.fd = -1};
	status = rig_stop(&g);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	rig_start(&g); /* before it was configured */
	status = rig_stop(&g);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_counts(void)
{
	struct rig g;
	struct got r;
	struct chan_frame f;
	struct netconf_counts n;

	serve(&g);
	for (int i = 0; i < 3; i++) {
		rig_ask(&g, &(struct ask){.host = "no.example", .target = "/"}, &r);
		check_int(r.status, 403);
		got_done(&r);
	}
	chan_done(&g.supervisor);
	g.supervisor = (struct chan){.fd = -1};
	must(chan_recv_wait(&g.conf, &f, 30000) == 1 && f.type == NETCONF_COUNTS);
	must(netconf_get_counts(f.payload, &n));
	check_int(n.allowed, 0);
	check_int(n.blocked, 3);
	rig_stop(&g);
}

/* A request whose connection ends is begun anew, and what comes of it meanwhile waits. The next
 * connection is not made: the listener's queue is full. */
static void test_sent_while_dialling(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), conn, filler, status;
	const struct ask get = {.host = "a.test", .target = "/"};
	const struct ask put = {
		.host = "a.test", .target = "/", .method = "PUT", .body = NET_BODY_STREAM};
	socklen_t n = sizeof(a);
	struct got r = {0};
	char bytes[4096];
	struct rig g;
	uint32_t id;

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 0) == 0);
	must(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	rig_start(&g);
	rig_allow(&g, "domains: [a.test]\n");
	rig_connect_to(&g, "a.test", 80, ntohs(a.sin_port));
	rig_serve(&g);
	id = rig_open(&g, &get);
	conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	must(conn >= 0 && read(conn, bytes, sizeof(bytes)) > 0);
	must(write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38) == 38);
	rig_collect(&g, id, &r, 5000);
	check(r.ended);
	got_done(&r);

	filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(filler >= 0 && connect(filler, (struct sockaddr *)&a, n) == 0);
	id = rig_open(&g, &put);
	must(read(conn, bytes, sizeof(bytes)) > 0 && shutdown(conn, SHUT_WR) == 0);
	while (read(conn, bytes, sizeof(bytes)) > 0)
		continue;
	rig_data(&g, id, "more", 4);
	/* Another one, which is answered when that has been looked at. */
	rig_ask(&g, &(struct ask){.host = "other.test", .target = "/"}, &r);
	check_int(r.status, 403);
	got_done(&r);
	must(net_send_reset(&g.net, id, NET_RESET_CANCELLED) == 0);
	rig_flush(&g);
	rig_ask(&g, &(struct ask){.host = "other.test", .target = "/"}, &r);
	check_int(r.status, 403);
	got_done(&r);
	status = rig_stop(&g);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(filler);
	close(conn);
	close(fd);
}

int main(void)
{
	run_test(test_protocol);
	run_test(test_descriptor);
	run_test(test_no_hello);
	run_test(test_mint);
	run_test(test_configuration);
	run_test(test_narrow);
	run_test(test_ends);
	run_test(test_counts);
	run_test(test_sent_while_dialling);
	return tap_done();
}
