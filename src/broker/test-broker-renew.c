/* SPDX-License-Identifier: Apache-2.0 */
/* Logins that are renewed: the test is the supervisor, which has the person's file, and the origin,
 * which has the token endpoint and what the tokens are for. */
#include "base/clock.h"
#include "base/fd.h"
#include "broker/test-seen.h"
#include "ipc/helper.h"
#include "tls/testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define OLD "sk-ant-oat01-old-0123456789abcdef"
#define FAKE "sk-ant-oat01-fak-ABCDEFGHIJKLMNOP"
#define NEW "sk-ant-oat01-new-and-longer-0123456789abcdef"
#define APP "ghs_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define OLD_REFRESH "sk-ant-ort01-old-0123456789abcdef"
#define NEW_REFRESH "sk-ant-ort01-new-0123456789abcdef"
#define GOOD                                                                                       \
	"{\"access_token\":\"" NEW "\",\"refresh_token\":\"" NEW_REFRESH "\",\"expires_in\":"      \
	"28800}"
#define AGAIN "log in again outside: claude /login"

enum { HOUR_MSEC = 3600 * 1000, LAST_MSEC = 30 * 1000 };

static struct test_ca *ca;
static struct test_origin *origin;

/* What the origin says and has seen. */
static struct {
	pthread_mutex_t lock;
	unsigned status;    /* of the token endpoint */
	const char *answer; /* and its body */
	bool mute;          /* it does not answer */
	int gate;           /* unless -1: it waits for a byte there before it answers */
	int late;           /* and there before it ends the answer to /late */
	const char *bad;    /* the token that is refused with 401 */
	unsigned asked;     /* requests for a token */
	struct buf seen;    /* all that came */
} o = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void origin_answer(struct test_conn *c, unsigned status, struct str body)
{
	char head[128];

	snprintf(
		head, sizeof(head), "HTTP/1.1 %u X\r\nContent-Length: %zu\r\n\r\n", status, body.n);
	(void)(test_conn_write_z(c, head) && test_conn_write(c, body.p, body.n));
}

static bool origin_read_body(struct test_conn *c, const struct buf *head)
{
	size_t at = str_find(buf_str(head), STR("Content-Length: "));
	size_t n = at < buf_len(head) ? strtoul(buf_data(head) + at + 16, NULL, 10) : 0;
	char bytes[4096];
	long got = n > 0 ? test_conn_read(c, bytes, MIN(n, sizeof(bytes))) : 0;

	must(got == (long)n);
	pthread_mutex_lock(&o.lock);
	must(buf_add_str(&o.seen, buf_str(head)) == 0 && buf_add(&o.seen, bytes, n) == 0);
	pthread_mutex_unlock(&o.lock);
	return n > 0;
}

/* The answer has the new token: its beginning, and later the rest. */
static void origin_answer_late(struct test_conn *c)
{
	static const char begins[] = "sk-ant-oat01-";
	char head[128], byte;

	snprintf(head, sizeof(head), "HTTP/1.1 200 X\r\nContent-Length: %zu\r\n\r\n%s", strlen(NEW),
		begins);
	must(test_conn_write_z(c, head) && read(o.late, &byte, 1) == 1);
	(void)test_conn_write_z(c, NEW + strlen(begins));
}

static void origin_serve_both(struct test_conn *c, void *arg)
{
	struct buf head = BUF_INIT(1 << 16);
	char byte;

	while (buf_clear(&head), test_conn_read_head(c, &head)) {
		bool is_token = origin_read_body(c, &head);

		if (is_token) {
			__atomic_add_fetch(&o.asked, 1, __ATOMIC_SEQ_CST);
			if (o.gate >= 0)
				must(read(o.gate, &byte, 1) >= 0);
			if (o.mute)
				continue;
			origin_answer(c, o.status, str_from(o.answer));
		} else if (str_starts(buf_str(&head), STR("GET /late "))) {
			origin_answer_late(c);
		} else {
			bool bad =
				o.bad && str_find(buf_str(&head), str_from(o.bad)) < buf_len(&head);

			origin_answer(c, bad ? 401 : 200, buf_str(&head));
		}
	}
	buf_done(&head);
}

static bool origin_saw(const char *text)
{
	bool has;

	pthread_mutex_lock(&o.lock);
	has = str_find(buf_str(&o.seen), str_from(text)) < buf_len(&o.seen);
	pthread_mutex_unlock(&o.lock);
	return has;
}

static unsigned origin_asked(void)
{
	return __atomic_load_n(&o.asked, __ATOMIC_SEQ_CST);
}

/* --- the supervisor --- */

static int fresh = -1; /* what the broker writes to */

/* The next one but its questions for changed names. */
static void next_frame(struct chan_frame *f)
{
	do
		must(chan_recv_wait(&g.supervisor, f, PATIENCE_MS) == 1);
	while (f->type == HELPER_NAMES_CHANGED);
}

static void take_open(void)
{
	struct helper_login_open m;
	struct chan_frame f;

	next_frame(&f);
	check(f.type == HELPER_LOGIN_OPEN && helper_get_login_open(f.payload, &m) && m.number == 3);
	chan_frame_done(&f);
}

static int memory(const char *text)
{
	int fd = memfd_create("login", MFD_CLOEXEC);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	must(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void say(uint16_t type, unsigned problem, const int *fds, unsigned n)
{
	const struct helper_login m = {.number = 3, .problem = problem};

	must(message_send(&g.supervisor, type, helper_login_message(), &m, fds, n) == 0);
	must(chan_flush_wait(&g.supervisor, PATIENCE_MS) == 0);
}

/* The broker has taken what was said before. */
static void heard(void)
{
	struct chan_frame f;

	must(helper_send_count(&g.supervisor) == 0);
	must(chan_flush_wait(&g.supervisor, PATIENCE_MS) == 0);
	next_frame(&f);
	check_int(f.type, HELPER_COUNTED);
	chan_frame_done(&f);
}

static void give(const char *text)
{
	_cleanup_fd_ int file = memory(text);

	fd_close(fresh);
	fresh = memory("");
	say(HELPER_LOGIN, 0, (int[]){file, fresh}, 2);
}

static bool take_end(void)
{
	struct helper_login_end m = {0};
	struct chan_frame f;

	next_frame(&f);
	check(f.type == HELPER_LOGIN_END && helper_get_login_end(f.payload, &m) && m.number == 3);
	chan_frame_done(&f);
	return m.write;
}

static bool written(const char *text)
{
	struct buf all = BUF_INIT(1 << 16);
	bool has;

	must(lseek(fresh, 0, SEEK_SET) == 0 && fd_read_to_end(fresh, &all) == 0);
	has = str_find(buf_str(&all), str_from(text)) < buf_len(&all);
	if (!has)
		printf("# written: %.*s\n", STR_FMT(buf_str(&all)));
	buf_done(&all);
	return has;
}

static uint64_t in_msec(int64_t msec)
{
	return (uint64_t)((int64_t)(clock_real_usec() / USEC_PER_MSEC) + msec);
}

/* The person's file with these tokens; good until the second call from here. */
static const char *file_of(const char *access, const char *refresh, uint64_t expires_msec)
{
	static char texts[2][1024], *text = texts[1];

	text = text == texts[0] ? texts[1] : texts[0];
	snprintf(text, sizeof(texts[0]),
		"{\"claudeAiOauth\":{\"accessToken\":\"%s\",\"refreshToken\":\"%s\","
		"\"expiresAt\":%llu,\"scopes\":[\"user:inference\"]},\"more\":1}",
		access, refresh, (unsigned long long)expires_msec);
	return text;
}

static const char *old_file(void)
{
	return file_of(OLD, OLD_REFRESH, in_msec(-1000));
}

/* --- the room --- */

static uint32_t ask(void)
{
	return rig_open(&g, &(struct ask){.scheme = NET_HTTPS,
				    .host = "a.site.test",
				    .target = "/api",
				    .fields = {"Authorization", "Bearer " FAKE}});
}

static void check_answer(uint32_t id, unsigned status, const char *text)
{
	wait_over(id);
	check_int(seen[id].status, status);
	if (!strstr(seen[id].text, text))
		tap_fail("no \"%s\" in: %s", text, seen[id].text);
	check(!strstr(seen[id].text, OLD) && !strstr(seen[id].text, NEW));
}

static bool log_has(const char *text)
{
	char *log = rig_log(&g, false);
	bool has = strstr(log, text) != NULL;

	free(log);
	return has;
}

/* --- all together --- */

static void send_login(const char *name, int64_t expires_in_msec)
{
	char in[] = "claudeAiOauth", token[] = "accessToken", refresh[] = "refreshToken",
	     expires[] = "expiresAt", file[] = ".claude/.credentials.json",
	     url[] = "https://login.site.test/v1/token", client[] = "9d1c-client",
	     again[] = "claude /login";
	struct netconf_login m = {.name = str_from(name),
		.number = 3,
		.expires_msec = in_msec(expires_in_msec),
		.file = file,
		.token = (char *[]){in, token, NULL},
		.refresh = (char *[]){in, refresh, NULL},
		.expires = (char *[]){in, expires, NULL},
		.url = url,
		.client_id = client,
		.again = again};

	must(netconf_send_login(&g.conf, &m) == 0);
}

static void begin_unserved(int64_t expires_in_msec)
{
	const struct test_cert cert = {.ca = ca, .dns = "*.site.test"};
	struct buf pem = BUF_INIT(8192);

	o.status = 200;
	o.answer = GOOD;
	o.mute = false;
	o.gate = -1;
	o.bad = NULL;
	o.asked = 0;
	o.seen = BUF_INIT(8 << 20);
	memset(seen, 0, sizeof(seen));
	rig_start(&g);
	origin = test_origin_start(
		&(struct test_origin_config){.cert = &cert, .serve = origin_serve_both});
	test_ca_add_pem(ca, &pem);
	must(chan_send(&g.conf, NETCONF_UPSTREAM_CA, buf_str(&pem), NULL, 0) == 0);
	buf_done(&pem);
	rig_allow(&g, "domains: [a.site.test]\n");
	rig_connect_to(&g, "a.site.test", 443, test_origin_port(origin));
	rig_connect_to(&g, "login.site.test", 443, test_origin_port(origin));
	rig_secret(&g, "TOKEN", OLD, FAKE, "a.site.test", "authorization");
	send_login("TOKEN", expires_in_msec);
}

static void begin(int64_t expires_in_msec)
{
	begin_unserved(expires_in_msec);
	rig_serve(&g);
}

static void end_of(int status)
{
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	test_origin_stop(origin);
	buf_done(&o.seen);
	fresh = fd_close(fresh);
}

static void end(void)
{
	static const char *const never[] = {OLD, NEW, OLD_REFRESH, NEW_REFRESH};

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		check(!log_has(never[i]));
	end_of(rig_stop(&g));
}

/* A whole renewal, up to the answer of the supervisor. */
static void renew(void)
{
	take_open();
	give(old_file());
	check(take_end());
}

/* --- tests --- */

static void test_expired(void)
{
	uint32_t id;

	begin(-1000);
	id = ask();
	renew();
	check(written("\"accessToken\":\"" NEW "\""));
	check(written("\"refreshToken\":\"" NEW_REFRESH "\""));
	check(written("\"scopes\":[\"user:inference\"]},\"more\":1}"));
	/* It echoes the request. */
	check_answer(id, 200, FAKE);
	check(origin_saw("POST /v1/token HTTP/1.1\r\nHost: login.site.test\r\n"));
	check(origin_saw("{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" OLD_REFRESH
			 "\",\"client_id\":\"9d1c-client\"}"));
	check(origin_saw("Authorization: Bearer " NEW "\r\n") && !origin_saw(OLD));
	say(HELPER_LOGIN_WRITTEN, 0, NULL, 0);
	check_answer(ask(), 200, FAKE);
	check_int(origin_asked(), 1);
	end();
}

static void test_near_its_end(void)
{
	uint32_t id;

	begin(LAST_MSEC);
	id = ask();
	renew();
	check_answer(id, 200, FAKE);
	check(!origin_saw("Bearer " OLD));
	end();
}

static void test_long_before_its_end(void)
{
	begin(HOUR_MSEC);
	check_answer(ask(), 200, FAKE);
	check(origin_saw("Bearer " OLD));
	check_int(origin_asked(), 0);
	end();
}

/* The person's own client has renewed it meanwhile. */
static void test_renewed_by_another(void)
{
	uint32_t id;

	begin(-1000);
	id = ask();
	take_open();
	give(file_of(NEW, NEW_REFRESH, in_msec(HOUR_MSEC)));
	check(!take_end());
	check_answer(id, 200, FAKE);
	check(origin_saw("Bearer " NEW));
	check_int(origin_asked(), 0);
	end();
}

/* An answer that began before is searched for the new token. */
static void test_answer_under_way(void)
{
	uint32_t id, late;
	int gate[2];

	begin(-1000);
	must(pipe(gate) == 0);
	o.late = gate[0];
	late = rig_open(
		&g, &(struct ask){.scheme = NET_HTTPS, .host = "a.site.test", .target = "/late"});
	while (seen[late].status == 0)
		must(take_frame(PATIENCE_MS));
	id = ask();
	renew();
	check_answer(id, 200, FAKE);
	must(write(gate[1], "", 1) == 1);
	check_answer(late, 200, FAKE);
	check_int((int)seen[late].bytes, (int)strlen(NEW));
	say(HELPER_LOGIN_WRITTEN, 0, NULL, 0);
	end();
	for (int i = 0; i < 2; i++)
		(void)fd_close(gate[i]);
}

static void test_fifty_at_once(void)
{
	uint32_t first, last = 0;

	begin(-1000);
	first = ask();
	for (int i = 1; i < 50; i++)
		last = ask();
	renew();
	say(HELPER_LOGIN_WRITTEN, 0, NULL, 0);
	for (uint32_t id = first; id <= last; id++)
		check_answer(id, 200, FAKE);
	check_int(origin_asked(), 1);
	end();
}

/* Ask, let the file come, and expect a refusal without anything written. */
static void check_fails(const char *file, unsigned status, const char *why)
{
	uint32_t id = ask();

	take_open();
	give(file);
	check(!take_end());
	check_answer(id, status, why);
	check(strstr(seen[id].text, "login_renewal_failed"));
}

/* The endpoint says that the refresh token is not valid: the file is looked at once more. */
static void refuse_token(const char *then)
{
	take_open();
	give(old_file());
	check(!take_end());
	heard();
	pass(USEC_PER_SEC);
	take_open();
	give(then);
	check(!take_end());
}

static void test_refused(void)
{
	uint32_t id;

	begin(-1000);
	o.status = 400;
	o.answer = "{\"error\":\"invalid_grant\",\"error_description\":\"" OLD_REFRESH " is old\"}";
	id = ask();
	refuse_token(old_file());
	check_answer(id, 403, AGAIN);
	check(log_has("WARNING: TOKEN: the login in ~/.claude/.credentials.json is not renewed any "
		      "more by its vendor: " AGAIN));
	/* Not at once, and never again with this token. */
	check_answer(ask(), 403, AGAIN);
	pass(6 * USEC_PER_SEC);
	check_fails(old_file(), 403, AGAIN);
	check_int(origin_asked(), 1);
	/* But when the person has logged in again, at once. */
	o.status = 200;
	o.answer = GOOD;
	pass(6 * USEC_PER_SEC);
	id = ask();
	take_open();
	give(file_of(OLD, "sk-ant-ort01-of-another-login", in_msec(-1)));
	check(take_end());
	check_answer(id, 200, FAKE);
	check_int(origin_asked(), 2);
	end();
}

/* Another program was quicker, and writes its tokens down a moment later. */
static void test_refused_for_another(void)
{
	uint32_t id;

	begin(-1000);
	o.status = 400;
	o.answer = "{\"error\":\"invalid_grant\"}";
	id = ask();
	refuse_token(file_of(NEW, NEW_REFRESH, in_msec(HOUR_MSEC)));
	check_answer(id, 200, FAKE);
	check(origin_saw("Bearer " NEW));
	check(!log_has("WARNING"));
	end();
}

static void test_odd_answers(void)
{
	static const struct {
		unsigned status;
		const char *answer;
	} rows[] = {{200, ""}, {200, "<html>"}, {200, "{}"},
		{200, "{\"access_token\":\"a b c d e\"}"},
		{200, "{\"access_token\":\"" FAKE "\\r\\nX: y\"}"}, {500, GOOD}, {401, "{}"},
		{302, ""}, {400, "invalid_grant"}};

	begin(-1000);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		o.status = rows[i].status;
		o.answer = rows[i].answer;
		check_fails(old_file(), 502, "could not be renewed");
		check_int(origin_asked(), i + 1);
		pass(6 * USEC_PER_SEC);
	}
	end();
}

/* A token that holds the surrogate cannot be used, but the refresh token that came with it is
 * written down. */
static void test_token_is_surrogate(void)
{
	uint32_t id;

	begin(-1000);
	o.answer = "{\"access_token\":\"" FAKE "\",\"refresh_token\":\"" NEW_REFRESH "\"}";
	id = ask();
	renew();
	check(written(NEW_REFRESH));
	wait_over(id);
	check_int(seen[id].status, 502);
	end();
}

static void test_no_answer(void)
{
	uint32_t id;

	begin(-1000);
	o.mute = true;
	id = ask();
	take_open();
	give(old_file());
	while (origin_asked() == 0)
		usleep(1000);
	settle();
	check(!seen[id].over);
	pass(31 * USEC_PER_SEC);
	check(!take_end());
	check_answer(id, 502, "could not be renewed: no answer in time");
	end();
}

static void test_odd_files(void)
{
	static const char *const files[] = {"", "[]", "{\"claudeAiOauth\":", "{\"a\":1,\"a\":2}"};

	begin(-1000);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		check_fails(files[i], 502, "cannot be read");
		pass(6 * USEC_PER_SEC);
	}
	check_fails("{}", 403, AGAIN);
	pass(6 * USEC_PER_SEC);
	check_fails(file_of(OLD, "", in_msec(-1)), 403, AGAIN);
	check_int(origin_asked(), 0);
	end();
}

static void test_no_file(void)
{
	uint32_t id;

	begin(-1000);
	id = ask();
	take_open();
	say(HELPER_LOGIN, ENOENT, NULL, 0);
	check_answer(id, 502, "cannot be read: No such file or directory");
	end();
}

static void test_held_by_another(void)
{
	uint32_t id;

	begin(-1000);
	id = ask();
	for (int i = 0; i < 3; i++) {
		take_open();
		say(HELPER_LOGIN, EAGAIN, NULL, 0);
		heard();
		pass(USEC_PER_SEC);
	}
	renew();
	check_answer(id, 200, FAKE);
	end();
}

/* A file that changes while it is written is written anew, unless it has another login. */
static void test_changed_meanwhile(void)
{
	uint32_t id;

	begin(-1000);
	id = ask();
	renew();
	check_answer(id, 200, FAKE);
	say(HELPER_LOGIN_WRITTEN, ESTALE, NULL, 0);
	take_open();
	give("{\"claudeAiOauth\":{\"accessToken\":\"" OLD "\",\"refreshToken\":\"" OLD_REFRESH
	     "\"},\"later\":2}");
	check(take_end());
	check(written("\"later\":2") && written(NEW_REFRESH));
	say(HELPER_LOGIN_WRITTEN, ESTALE, NULL, 0);
	take_open();
	give(file_of("sk-ant-oat01-of-another-login", "sk-ant-ort01-of-another-login", 1));
	check(!take_end());
	check_answer(ask(), 200, FAKE);
	end();
}

static void test_gone_meanwhile(void)
{
	uint32_t id;

	begin(-1000);
	id = ask();
	renew();
	check_answer(id, 200, FAKE);
	say(HELPER_LOGIN_WRITTEN, ESTALE, NULL, 0);
	take_open();
	say(HELPER_LOGIN, ENOENT, NULL, 0);
	check_answer(ask(), 200, FAKE);
	heard();
	check(log_has("was renewed, but not written back: " AGAIN));
	end();
}

/* What could not be written is used for the next renewal. */
static void test_not_written(void)
{
	uint32_t id;

	begin(-1000);
	o.answer = "{\"access_token\":\"" NEW "\",\"refresh_token\":\"" NEW_REFRESH
		   "\",\"expires_in\":1}";
	o.bad = NEW;
	id = ask();
	renew();
	check_answer(id, 401, FAKE);
	say(HELPER_LOGIN_WRITTEN, ENOSPC, NULL, 0);
	heard();
	settle(); /* the line is written */
	check(log_has("was renewed, but not written back: " AGAIN));
	o.bad = NULL;
	id = ask();
	take_open();
	give(old_file());
	check(take_end());
	check(origin_saw("\"refresh_token\":\"" NEW_REFRESH "\""));
	check_answer(id, 200, FAKE);
	end();
}

/* An origin that refuses a token before its time is believed once. */
static void test_401(void)
{
	uint32_t id;

	begin(HOUR_MSEC);
	o.bad = "sk-ant-oat01-";
	check_answer(ask(), 401, FAKE);
	id = ask();
	take_open();
	give(file_of(OLD, OLD_REFRESH, in_msec(HOUR_MSEC)));
	check(take_end());
	say(HELPER_LOGIN_WRITTEN, 0, NULL, 0);
	check_answer(id, 401, FAKE);
	check(origin_saw("Bearer " OLD) && origin_saw("Bearer " NEW));
	for (int i = 0; i < 3; i++)
		check_answer(ask(), 401, FAKE);
	check_int(origin_asked(), 1);
	end();
}

/* If it cannot be renewed then, it is used on: what the origin says of it is the room's answer. */
static void test_401_and_no_endpoint(void)
{
	uint32_t id;

	begin(HOUR_MSEC);
	o.bad = OLD;
	o.status = 503;
	check_answer(ask(), 401, FAKE);
	id = ask();
	take_open();
	give(file_of(OLD, OLD_REFRESH, in_msec(HOUR_MSEC)));
	check(!take_end());
	check_answer(id, 401, FAKE);
	check_answer(ask(), 401, FAKE);
	check_int(origin_asked(), 1);
	end();
}

static void test_401_renewed_by_another(void)
{
	uint32_t id;

	begin(HOUR_MSEC);
	o.bad = OLD;
	check_answer(ask(), 401, FAKE);
	id = ask();
	take_open();
	give(file_of(NEW, NEW_REFRESH, in_msec(HOUR_MSEC)));
	check(!take_end());
	check_answer(id, 200, FAKE);
	check_int(origin_asked(), 0);
	end();
}

/* The room ends while a token is under way: it is still written down. */
static void test_room_ends(void)
{
	int gate[2], status;

	must(pipe(gate) == 0);
	begin(-1000);
	o.gate = gate[0];
	(void)ask();
	take_open();
	give(old_file());
	while (origin_asked() == 0)
		usleep(1000);
	chan_done(&g.net);
	g.net = (struct chan){.fd = -1};
	must(write(gate[1], "x", 1) == 1);
	check(take_end());
	check(written(NEW) && written(NEW_REFRESH));
	say(HELPER_LOGIN_WRITTEN, 0, NULL, 0);
	must(waitpid(g.pid, &status, 0) == g.pid);
	chan_done(&g.supervisor);
	chan_done(&g.conf);
	buf_done(&g.pem);
	unlink(g.log);
	unlink(g.json);
	end_of(status);
	close(gate[0]);
	close(gate[1]);
}

/* What waits for a login is not let go, or lost, by another token. */
static void test_another_token(void)
{
	char host[] = "a.site.test", *scopes[] = {host, NULL};
	struct buf key = BUF_INIT(8192);
	uint32_t id, other;

	test_rsa_add_pem(&key);
	begin_unserved(-1000);
	must(netconf_send_github_app(&g.conf, &(struct netconf_github_app){.name = STR("APP"),
						      .surrogate = STR(APP),
						      .app_id = STR("1"),
						      .installation_id = STR("67"),
						      .key = buf_str(&key),
						      .base_url = STR("https://login.site.test"),
						      .scopes = scopes}) == 0);
	rig_serve(&g);
	id = ask();
	take_open();
	other = rig_open(&g, &(struct ask){.scheme = NET_HTTPS,
				     .host = host,
				     .target = "/api",
				     .fields = {"Authorization", "Bearer " APP}});
	/* The origin has none for it. */
	check_answer(other, 502, "no token of GitHub App");
	check_int(seen[id].status, 0);
	give(old_file());
	check(take_end());
	say(HELPER_LOGIN_WRITTEN, 0, NULL, 0);
	check_answer(id, 200, FAKE);
	end();
	buf_done(&key);
}

static void test_unknown_secret(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	begin_unserved(0);
	send_login("ANOTHER", 0);
	rig_refused(&g, &err);
	check(err.code == E_PROTOCOL);
	(void)rig_stop(&g);
	test_origin_stop(origin);
	buf_done(&o.seen);
}

int main(void)
{
	clock_hold();
	ca = test_ca_new("Test root");
	run_test(test_expired);
	run_test(test_near_its_end);
	run_test(test_long_before_its_end);
	run_test(test_renewed_by_another);
	run_test(test_answer_under_way);
	run_test(test_fifty_at_once);
	run_test(test_refused);
	run_test(test_refused_for_another);
	run_test(test_odd_answers);
	run_test(test_token_is_surrogate);
	run_test(test_no_answer);
	run_test(test_odd_files);
	run_test(test_no_file);
	run_test(test_held_by_another);
	run_test(test_changed_meanwhile);
	run_test(test_gone_meanwhile);
	run_test(test_not_written);
	run_test(test_401);
	run_test(test_401_and_no_endpoint);
	run_test(test_401_renewed_by_another);
	run_test(test_room_ends);
	run_test(test_another_token);
	run_test(test_unknown_secret);
	test_ca_free(ca);
	return tap_done();
}
