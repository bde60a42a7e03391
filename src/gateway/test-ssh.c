/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of SSH goes to a process that speaks SSH, which the test is here, and what that
 * process asks for becomes a stream; see testing.h. */
#include "base/fd.h"
#include "gateway/testing.h"
#include "ipc/sshleg.h"
#include "tap.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SSH_PATIENCE_MS = 20000 };

static struct rig rig;

/* The room's end of the leg. */
struct ssh_room {
	struct client c;
	int peer, plain;
};

static void ssh_connect(struct ssh_room *e)
{
	struct chan_frame f;
	char hello[32] = "";

	client_connect(&e->c, &rig);
	client_send(&e->c, "SSH-2.0-x\r\n");
	must(chan_recv_wait(&rig.supervisor, &f, SSH_PATIENCE_MS) == 1);
	must(f.type == HELPER_SSH && f.fds_n == 2 && f.payload.n == 0);
	e->peer = TAKE_FD(f.fds[0]);
	e->plain = TAKE_FD(f.fds[1]);
	chan_frame_done(&f);
	/* Nothing of it was read. */
	check_int(recv(e->peer, hello, sizeof(hello) - 1, MSG_DONTWAIT), 11);
	check_z(hello, "SSH-2.0-x\r\n");
}

static void ssh_close(struct ssh_room *e)
{
	client_close(&e->c);
	close(e->peer);
	fd_close(e->plain);
}

static void ssh_ask(struct ssh_room *e, const struct sshleg_request *m, const char *behind)
{
	struct buf b = BUF_INIT(SSHLEG_MAX_RECORD);

	must(sshleg_put_request(&b, m) == 0 && buf_add_str(&b, str_from(behind)) == 0);
	must(fd_write_all(e->plain, buf_data(&b), buf_len(&b)) == 0);
	buf_done(&b);
}

/* Read until there are n bytes, or to the end. */
static void ssh_read(struct ssh_room *e, struct buf *to, size_t n)
{
	struct pollfd p = {.fd = e->plain, .events = POLLIN};
	ssize_t got = 1;
	char *at;

	while (got > 0 && buf_len(to) < n) {
		must(poll(&p, 1, SSH_PATIENCE_MS) == 1);
		must(buf_reserve(to, 4096, &at) == 0);
		got = recv(e->plain, at, 4096, MSG_DONTWAIT);
		if (got > 0)
			buf_commit(to, (size_t)got);
	}
}

static const struct sshleg_request fetch = {.method = SSHLEG_FETCH,
	.user = STR("me"),
	.path = STR("/a/b"),
	.protocol = STR("version=2")};

static uint32_t ssh_expect_open(const char *method, const char *fields)
{
	struct rig_open o = rig_expect_open(&rig);
	uint32_t stream = o.m.stream;

	check(o.m.kind == NET_KIND_TUNNEL && o.m.scheme == NET_SSH && o.m.body == NET_BODY_STREAM);
	check_str(o.m.host, "127.0.0.1");
	check_int(o.m.port, rig.port);
	check_str(o.m.method, method);
	check_str(o.m.target, "/a/b");
	check_z(o.fields, fields);
	rig_open_done(&o);
	return stream;
}

static void test_allowed(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct buf down = BUF_INIT(1 << 20), up = BUF_INIT(1 << 20);
	struct sshleg_answer answer;
	struct ssh_room e;
	ssize_t n;

	ssh_connect(&e);
	ssh_ask(&e, &fetch, "behind it");
	m.stream = ssh_expect_open("FETCH", "Ssh-User: me\nGit-Protocol: version=2\n");
	rig_head(&rig, NET_HEAD, &m, "");
	rig_data(&rig, m.stream, STR("a piece"));
	must(shutdown(e.plain, SHUT_WR) == 0);
	rig_expect_body(&rig, m.stream, &up, NULL);
	check_str(buf_str(&up), "behind it");
	rig_end(&rig, m.stream, "");
	ssh_read(&e, &down, SIZE_MAX);
	n = sshleg_take_answer(buf_str(&down), &answer);
	must(n > 0);
	check_int(answer.status, 200);
	check_str(str_from_index(buf_str(&down), (size_t)n), "a piece");
	ssh_close(&e);
	buf_done(&down);
	buf_done(&up);
}

static void test_refused(void)
{
	static const char why[] = "it is not listed\nurl_prefixes:";
	struct net_response m = {.status = 403, .body = NET_BODY_LENGTH, .length = sizeof(why) - 1};
	struct sshleg_request push = fetch;
	struct buf down = BUF_INIT(1 << 20);
	struct sshleg_answer answer;
	struct ssh_room e;

	push.method = SSHLEG_PUSH;
	push.protocol = STR_NULL;
	ssh_connect(&e);
	ssh_ask(&e, &push, "");
	m.stream = ssh_expect_open("PUSH", "Ssh-User: me\n");
	rig_head(&rig, NET_HEAD, &m, "");
	rig_data(&rig, m.stream, str_from(why));
	rig_end(&rig, m.stream, "");
	check_int(rig_expect_reset(&rig, m.stream), NET_RESET_CANCELLED);
	ssh_read(&e, &down, SIZE_MAX);
	check_int(sshleg_take_answer(buf_str(&down), &answer), buf_len(&down));
	check_int(answer.status, 403);
	check_str(answer.text, why);
	ssh_close(&e);
	buf_done(&down);
}

/* What the process sends is as hostile as what the room sends: it ends that connection alone. */
static void test_hostile(void)
{
	static const struct str bad[] = {STR("\xff\xff\xff\xff"), STR("\1\0\0\0\0"),
		STR("\x1a\0\0\0\0\3\0\0\0-it\4\0\0\0/a/b\0\0\0\0\0\0\0\0\0\0"),
		STR("\x1a\0\0\0\0\3\0\0\0git\4\0\0\0/../\0\0\0\0\0\0\0\0\0\0"),
		STR("\x1a\0\0\0\2\3\0\0\0git\4\0\0\0/a/b\0\0\0\0\0\0\0\0\0\0")};
	struct buf down = BUF_INIT(4096);
	struct ssh_room e;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ssh_connect(&e);
		must(fd_write_all(e.plain, bad[i].p, bad[i].n) == 0);
		ssh_read(&e, &down, SIZE_MAX);
		check_int(buf_len(&down), 0);
		ssh_close(&e);
	}
	buf_done(&down);
}

/* The process goes away, before and behind its request. */
static void test_gone(void)
{
	struct ssh_room e;
	uint32_t stream;

	ssh_connect(&e);
	ssh_close(&e);
	ssh_connect(&e);
	ssh_ask(&e, &fetch, "");
	stream = ssh_expect_open("FETCH", "Ssh-User: me\nGit-Protocol: version=2\n");
	ssh_close(&e);
	check_int(rig_expect_reset(&rig, stream), NET_RESET_CANCELLED);
}

/* Other things are what they always were; and SSH is when the rules have gone. */
static void test_others(void)
{
	struct response p;
	struct rig_open o;
	struct client c;

	client_connect(&c, &rig);
	client_send(&c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	o = rig_expect_open(&rig);
	check(o.m.kind == NET_KIND_HTTP);
	rig_answer(&rig, o.m.stream, "seen");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
	must(net_send_ports(&rig.broker, &(struct net_ports){0}) == 0);
	must(chan_flush_wait(&rig.broker, SSH_PATIENCE_MS) == 0);
	client_connect(&c, &rig);
	client_send(&c, "SSH-2.0-x\r\n");
	check(strstr(rig_expect_event(&rig, NET_EVENT_TCP), "|SSH|"));
	check(client_expect_end(&c, SSH_PATIENCE_MS));
	client_close(&c);
}

int main(void)
{
	rig_start(&rig, &(struct rig_config){.late_ports = true});
	must(net_send_ports(&rig.broker, &(struct net_ports){.ssh = true}) == 0);
	must(chan_flush_wait(&rig.broker, SSH_PATIENCE_MS) == 0);
	run_test(test_allowed);
	run_test(test_refused);
	run_test(test_hostile);
	run_test(test_gone);
	run_test(test_others);
	must(rig_stop(&rig));
	return tap_done();
}
