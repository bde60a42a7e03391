/* SPDX-License-Identifier: Apache-2.0 */
/* Git over ssh as a gateway asks for it, also one that has been taken over. The test is the process
 * that speaks SSH with the host, which the supervisor would start. */
#include "base/fd.h"
#include "broker/testing.h"
#include "ipc/helper.h"
#include "ipc/sshleg.h"
#include "tls/testing.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

enum { SSH_PATIENCE_MS = 20000 };

static void serve_nothing(struct test_conn *c, void *arg)
{
	char byte;

	(void)test_conn_read(c, &byte, 1);
}

struct ssh_setting {
	struct rig g;
	struct test_origin *server;
	int peer, plain;
};

static void ssh_begin(struct ssh_setting *s)
{
	*s = (struct ssh_setting){.peer = -1, .plain = -1};
	rig_start(&s->g);
	s->server = test_origin_start(&(struct test_origin_config){.serve = serve_nothing});
	rig_allow(&s->g, "url_prefixes:\n  - host: git.test\n    schemes: [ssh]\n    path: /a/b\n");
	rig_connect_to(&s->g, "git.test", 22, test_origin_port(s->server));
	rig_serve(&s->g);
}

static void ssh_finish(struct ssh_setting *s)
{
	int status = rig_stop(&s->g);

	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fd_close(s->peer);
	fd_close(s->plain);
	test_origin_stop(s->server);
}

static const struct ask fetch = {.kind = NET_KIND_TUNNEL,
	.scheme = NET_SSH,
	.host = "git.test",
	.port = 22,
	.method = "FETCH",
	.target = "/a/b.git",
	.fields = {"Ssh-User", "git", "Git-Protocol", "version=2"},
	.body = NET_BODY_STREAM};

/* Take what the supervisor is asked for. */
static void ssh_expect_end(struct ssh_setting *s)
{
	struct chan_frame f = {0};

	s->peer = fd_close(s->peer);
	s->plain = fd_close(s->plain);
	do {
		chan_frame_done(&f);
		must(chan_recv_wait(&s->g.supervisor, &f, SSH_PATIENCE_MS) == 1);
	} while (f.type != HELPER_SSH);
	must(f.fds_n == 2);
	s->peer = TAKE_FD(f.fds[0]);
	s->plain = TAKE_FD(f.fds[1]);
	chan_frame_done(&f);
}

static void ssh_expect_request(struct ssh_setting *s)
{
	struct sshleg_request m;
	struct pollfd p = {.fd = s->plain, .events = POLLIN};
	char text[4096];
	ssize_t n;

	must(poll(&p, 1, SSH_PATIENCE_MS) == 1);
	n = recv(s->plain, text, sizeof(text), 0);
	must(n > 0 && sshleg_take_request(str_make(text, (size_t)n), &m) == n);
	check(m.method == SSHLEG_FETCH && m.port == 22);
	check_str(m.user, "git");
	check_str(m.host, "git.test");
	check_str(m.path, "/a/b.git");
	check_str(m.protocol, "version=2");
}

static void ssh_say(struct ssh_setting *s, unsigned status, const char *text, const char *behind)
{
	struct buf b = BUF_INIT(SSHLEG_MAX_RECORD);
	const struct sshleg_answer m = {.status = (uint16_t)status, .text = str_from(text)};

	must(sshleg_put_answer(&b, &m) == 0 && buf_add_str(&b, str_from(behind)) == 0);
	/* In two parts. */
	must(fd_write_all(s->plain, buf_data(&b), 3) == 0);
	must(fd_write_all(s->plain, buf_data(&b) + 3, buf_len(&b) - 3) == 0);
	buf_done(&b);
}

static void test_passes(void)
{
	struct ssh_setting s;
	struct got r = {0};
	char up[16] = "", *log;
	uint32_t id;

	ssh_begin(&s);
	id = rig_open(&s.g, &fetch);
	ssh_expect_end(&s);
	ssh_expect_request(&s);
	ssh_say(&s, 200, "", "a piece");
	rig_data(&s.g, id, "input", 5);
	rig_end(&s.g, id);
	rig_flush(&s.g);
	check_int(recv(s.plain, up, 5, MSG_WAITALL), 5);
	check_z(up, "input");
	check_int(recv(s.plain, up, 5, MSG_WAITALL), 0);
	s.plain = fd_close(s.plain);
	rig_collect(&s.g, id, &r, SSH_PATIENCE_MS);
	check_int(r.status, 200);
	check(r.ended && !r.reset);
	check_str(buf_str(&r.text), "a piece");
	got_done(&r);
	log = rig_log(&s.g, false);
	check(strstr(log, "ALLOWED FETCH ssh://git@git.test/a/b.git -> 200") != NULL);
	free(log);
	ssh_finish(&s);
}

/* Nothing is dialled for what no rule allows, and what is said is a text. */
static void test_policy(void)
{
	static const struct {
		const char *method, *target, *user, *said;
	} cases[] = {
		{"PUSH", "/a/b", "git",
			"git.test is listed, but this path not for the method PUSH"},
		{"FETCH", "/a/bc", "git", "not the path /a/bc"},
		{"FETCH", "/a/b", "root", "not for the user root"},
	};
	struct ssh_setting s;

	ssh_begin(&s);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ask a = fetch;
		struct got r = {0};

		a.method = cases[i].method;
		a.target = cases[i].target;
		a.fields[1] = cases[i].user;
		rig_ask(&s.g, &a, &r);
		check_int(r.status, 403);
		check(got_has(&r, cases[i].said) && got_has(&r, "schemes: [ssh]"));
		check(!got_has(&r, "{"));
		got_done(&r);
	}
	ssh_finish(&s);
}

/* The process says that there is no session, sends what is none of its answers, or goes away. */
static void test_no_session(void)
{
	struct ssh_setting s;

	ssh_begin(&s);
	for (int i = 0; i < 4; i++) {
		uint32_t id = rig_open(&s.g, &fetch);
		struct got r = {0};

		ssh_expect_end(&s);
		if (i == 0)
			ssh_say(&s, 502, "the key is\n\x1b[2J another", "");
		else if (i == 1)
			must(fd_write_all(s.plain, "\xff\xff\xff\xff", 4) == 0);
		else if (i == 2)
			must(fd_write_all(s.plain, "\2\0\0\0\xc8\0", 6) == 0);
		else
			must(shutdown(s.plain, SHUT_RDWR) == 0);
		rig_collect(&s.g, id, &r, SSH_PATIENCE_MS);
		check_int(r.status, 502);
		check(got_has(&r, i == 0 ? "the key is??[2J another" : "no session of SSH"));
		got_done(&r);
	}
	ssh_finish(&s);
}

static void test_broken_protocol(void)
{
	struct ask asks[7];

	for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
		asks[i] = fetch;
	asks[0].method = "GET";
	asks[1].target = "/a/../b";
	asks[2].target = "*";
	asks[3].fields[1] = "-l";
	asks[4].fields[3] = "version=2;id";
	asks[5].fields[2] = "Cookie";
	asks[6].kind = NET_KIND_HTTP;
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
		struct ssh_setting s;

		ssh_begin(&s);
		(void)rig_open(&s.g, &asks[i]);
		if (!rig_ended(&s.g))
			tap_fail("case %zu is served", i);
		(void)rig_stop(&s.g);
		test_origin_stop(s.server);
	}
}

int main(void)
{
	run_test(test_passes);
	run_test(test_policy);
	run_test(test_no_session);
	run_test(test_broken_protocol);
	return tap_done();
}
