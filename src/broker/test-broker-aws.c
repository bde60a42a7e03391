/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a room has signed with surrogates of AWS credentials, as a gateway hands them on
 * (INV-SECRET-SCOPE). */
#include "aws/request.h"
#include "broker/testing.h"
#include "http/ws.h"
#include "secrets/secret_set.h"
#include "tls/testing.h"

#include <stdio.h>
#include <sys/wait.h>
#include <tap.h>

#define REAL_ID "AKIAREALREALREALREAL"
#define REAL_SECRET "real/secret+of/forty/bytes/0123456789abc"
#define FAKE_ID "AKIAFAKEFAKEFAKEFAKE"
#define FAKE_SECRET "fake/secret+of/forty/bytes/9876543210xyz"
#define SITE "aws.test"
#define CODE "a1b2.execute-api.aws.test" /* of somebody else */
#define TIME "20260131T120000Z"
#define CHUNKS "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static struct test_ca *ca;

struct setting {
	struct rig g;
	struct test_origin *origin;
	struct buf seen;
};

static void answer(struct test_conn *c, struct str head)
{
	size_t key = str_find(head, STR("Sec-WebSocket-Key: "));
	char accept[WS_ACCEPT_LEN + 1], text[256];

	snprintf(text, sizeof(text),
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	if (key < head.n) {
		ws_accept(str_prefix(str_from_index(head, key + 19), 24), accept);
		snprintf(text, sizeof(text),
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
			"Connection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			accept);
	}
	(void)!test_conn_write_z(c, text);
}

/* Answers requests of HTTP/1.1, whose bodies are not looked at, and nothing of HTTP/2. */
static void serve(struct test_conn *c, void *arg)
{
	struct setting *s = arg;
	char bytes[4096];
	long n;

	if (test_conn_is_h2(c))
		(void)!test_conn_write(c, "\0\0\0\4\0\0\0\0\0", 9); /* SETTINGS */
	while ((n = test_conn_read(c, bytes, sizeof(bytes))) > 0) {
		test_need(buf_add(&s->seen, bytes, (size_t)n) == 0);
		if (!test_conn_is_h2(c))
			answer(c, buf_str(&s->seen));
		else if (str_find(buf_str(&s->seen), STR("PRI * HTTP/2.0")) < buf_len(&s->seen) &&
			 buf_len(&s->seen) > 150)
			break;
	}
}

static void add_secret(struct rig *g, const char *name, const char *value, const char *surrogate,
	enum secret_role role)
{
	char site[] = SITE, code[] = CODE, *scopes[] = {site, code, NULL}, *none[] = {NULL};
	const struct netconf_secret m = {.name = str_from(name),
		.value = str_from(value),
		.surrogate = str_from(surrogate),
		.scopes = scopes,
		.headers = none,
		.role = (uint8_t)role};

	must(netconf_send_secret(&g->conf, &m) == 0);
}

static void start(struct setting *s, bool h2)
{
	const struct test_cert cert = {.ca = ca, .dns = SITE};
	struct test_origin_config config = {.cert = &cert, .serve = serve, .arg = s, .h2 = h2};
	struct buf pem = BUF_INIT(8192);

	s->seen = BUF_INIT(1 << 20);
	rig_start(&s->g);
	s->origin = test_origin_start(&config);
	test_ca_add_pem(ca, &pem);
	must(chan_send(&s->g.conf, NETCONF_UPSTREAM_CA, buf_str(&pem), NULL, 0) == 0);
	buf_done(&pem);
	rig_allow(&s->g, "domains: [" SITE ", " CODE "]\n");
	rig_connect_to(&s->g, SITE, 443, test_origin_port(s->origin));
	add_secret(&s->g, "ID", REAL_ID, FAKE_ID, SECRET_AWS_KEY_ID);
	add_secret(&s->g, "KEY", REAL_SECRET, FAKE_SECRET, SECRET_AWS_SECRET_KEY);
	rig_serve(&s->g);
}

/* Also waits for the origin. */
static void stop(struct setting *s)
{
	int status = rig_stop(&s->g);

	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	test_origin_stop(s->origin);
}

static bool has_seen(const struct setting *s, struct str text)
{
	return str_find(buf_str(&s->seen), text) < buf_len(&s->seen);
}

/* Authorization of a PUT or GET of /b/k as a room signs it. */
static void sign_for(
	const char *host, const char *method, const char *payload, struct aws_signed *ret)
{
	_cleanup_(aws_signer_freep) struct aws_signer *room =
		aws_signer_new(STR(FAKE_ID), STR(FAKE_SECRET), STR_NULL);
	const struct aws_form form = {.path = AWS_PATH_WIRE, .hash = AWS_HASH_STATED};
	struct aws_field fields[] = {{STR("host"), str_from(host)},
		{STR("x-amz-content-sha256"), str_from(payload)}, {STR("x-amz-date"), STR(TIME)},
		{STR("authorization"),
			STR("AWS4-HMAC-SHA256 Credential=" FAKE_ID "/20260131/eu-1/s3/aws4_request,"
			    "SignedHeaders=host;x-amz-content-sha256;x-amz-date,"
			    "Signature=" ZEROS)}};
	const struct aws_request req = {.method = str_from(method),
		.target = STR("/b/k"),
		.fields = fields,
		.n_fields = ARRAY_SIZE(fields)};
	const char *why;
	struct aws_auth auth;

	must(aws_auth_find(&req, &auth, &why) == 1);
	must(aws_sign(&req, &auth, &form, room, auth.payload, ret) == 0);
	must(buf_cstr(&ret->value));
	aws_auth_done(&auth);
}

static void sign(const char *method, const char *payload, struct aws_signed *ret)
{
	sign_for(SITE, method, payload, ret);
}

static struct ask asked(const char *method, const char *payload, const struct aws_signed *s)
{
	return (struct ask){.scheme = NET_HTTPS,
		.host = SITE,
		.method = method,
		.target = "/b/k",
		.fields = {"x-amz-content-sha256", payload, "x-amz-date", TIME, "authorization",
			s->value.mem}};
}

/* Signs, asks; got is to be given to got_done(). */
static void ask(struct setting *s, const char *method, const char *payload, struct got *ret)
{
	struct aws_signed made;
	struct ask a;

	sign(method, payload, &made);
	a = asked(method, payload, &made);
	rig_ask(&s->g, &a, ret);
	aws_signed_done(&made);
}

static void test_signed_again(void)
{
	struct setting s;
	struct got r;
	char *log;

	start(&s, false);
	ask(&s, "GET", AWS_EMPTY_HASH, &r);
	check(r.status == 200 && got_has(&r, "ok"));
	got_done(&r);
	log = rig_log(&s.g, false);
	check(strstr(
		log, "WARNING: Container clock skew detected: x-amz-date=" TIME ", proxy-time="));
	free(log);
	stop(&s);
	check(has_seen(&s, STR("Credential=" REAL_ID "/20260131/eu-1/s3/aws4_request,")));
	check(!has_seen(&s, STR(FAKE_ID)));
	buf_done(&s.seen);
}

/* RFC 7541 6.2.1, 6.2.3: literals with a new name, which begins as x-amz-date does. */
#define NEVER_INDEXED STR("\x10\x88\xf2")
#define INDEXED STR("\x40\x88\xf2")

/* What stands in a compression table can be guessed at, byte by byte. */
static void test_not_compressed(void)
{
	struct setting s;
	struct got r;

	start(&s, true);
	ask(&s, "GET", AWS_EMPTY_HASH, &r);
	check_int(r.status, 502);
	got_done(&r);
	stop(&s);
	check(has_seen(&s, NEVER_INDEXED) && !has_seen(&s, INDEXED));
	buf_done(&s.seen);
}

static void send_chunk(struct setting *s, const char *head, struct got *ret)
{
	struct aws_signed made;
	struct ask a;
	uint32_t id;

	sign("PUT", CHUNKS, &made);
	a = asked("PUT", CHUNKS, &made);
	a.body = NET_BODY_STREAM;
	id = rig_open(&s->g, &a);
	rig_data(&s->g, id, head, strlen(head));
	rig_collect(&s->g, id, ret, 10000);
	aws_signed_done(&made);
}

/* The answer says what was wrong with a chunk. */
static void test_chunks_refused(void)
{
	static const struct {
		const char *head, *says;
	} bad[] = {
		{"800001;chunk-signature=" ZEROS "\r\n", "larger than 8388608 bytes"},
		{"1;chunk-signature=" ZEROS "\r\na\r\n", "not that of its chunk"},
		{"1;\r\n", "chunk-signature"},
	};
	struct setting s;

	start(&s, false);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct got r = {0};

		send_chunk(&s, bad[i].head, &r);
		check_int(r.status, 502);
		if (!got_has(&r, bad[i].says))
			tap_fail("%s: %.*s", bad[i].says, STR_FMT(buf_str(&r.text)));
		got_done(&r);
	}
	stop(&s);
	buf_done(&s.seen);
}

/* Its frames go through a filter of their own, which no other one may take the place of
 * (INV-NO-RAW-BYTES). */
static void test_no_chunks_without_a_body(void)
{
	struct aws_signed made;
	struct setting s;
	struct got r;
	struct ask a;

	start(&s, false);
	sign("GET", CHUNKS, &made);
	a = asked("GET", CHUNKS, &made);
	rig_ask(&s.g, &a, &r);
	check(r.status == 403 && got_has(&r, "there is no body"));
	got_done(&r);
	a.kind = NET_KIND_WEBSOCKET;
	a.body = NET_BODY_STREAM;
	rig_ask(&s.g, &a, &r);
	check(r.status == 403 && got_has(&r, "there is no body"));
	got_done(&r);
	aws_signed_done(&made);
	stop(&s);
	check_int(buf_len(&s.seen), 0);
	buf_done(&s.seen);
}

/* What an ordinary request's line says stands in that of a WebSocket, too, and once. */
static void test_websocket_in_the_log(void)
{
	struct aws_signed made;
	struct setting s;
	struct got r = {0};
	struct ask a;
	char *log, *at;

	start(&s, false);
	sign("GET", AWS_EMPTY_HASH, &made);
	a = asked("GET", AWS_EMPTY_HASH, &made);
	a.kind = NET_KIND_WEBSOCKET;
	a.body = NET_BODY_STREAM;
	rig_collect(&s.g, rig_open(&s.g, &a), &r, 500);
	check_int(r.status, 101);
	got_done(&r);
	aws_signed_done(&made);
	must(net_send_reset(&s.g.net, 1, NET_RESET_CANCELLED) == 0);
	rig_ask(&s.g, &(struct ask){.scheme = NET_HTTPS, .host = SITE, .target = "/"}, &r);
	got_done(&r);
	log = rig_log(&s.g, false);
	at = strstr(log, "ALLOWED GET https://aws.test/b/k -> 101 [masked: 1] [region: eu-1]");
	check(at && strstr(log, "CLOSED GET ") && !strstr(at + 70, "region"));
	free(log);
	stop(&s);
	buf_done(&s.seen);
}

static void test_another_service(void)
{
	struct aws_signed made;
	struct setting s;
	struct got r;
	struct ask a;

	start(&s, false);
	sign_for(CODE, "GET", AWS_EMPTY_HASH, &made);
	a = asked("GET", AWS_EMPTY_HASH, &made);
	a.host = CODE;
	rig_ask(&s.g, &a, &r);
	check(r.status == 403 && got_has(&r, "another service than that of the host"));
	got_done(&r);
	aws_signed_done(&made);
	stop(&s);
	check_int(buf_len(&s.seen), 0);
	buf_done(&s.seen);
}

int main(void)
{
	ca = test_ca_new("Test root");
	run_test(test_signed_again);
	run_test(test_not_compressed);
	run_test(test_chunks_refused);
	run_test(test_no_chunks_without_a_body);
	run_test(test_websocket_in_the_log);
	run_test(test_another_service);
	test_ca_free(ca);
	return tap_done();
}
