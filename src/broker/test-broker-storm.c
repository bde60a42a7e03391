/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway that has been taken over says anything in any order, to origins that do the same, while
 * the policy is replaced under way. The broker has to end well whatever happens: it ends the
 * channel, or serves on. CLOCHE_STORM=SEED:ROUNDS makes other and more storms than the few that are
 * always made; run them in a build with sanitizers. */
#include "base/clock.h"
#include "base/fd.h"
#include "broker/test-origin.h"
#include "broker/testing.h"
#include "http/ws.h"
#include "ipc/helper.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
/* Its usual status is one that a broker may end with. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "abort_on_error=1";
}
#endif

#define REAL "sk-real-0123456789abcdef"

enum { ROUNDS = 6, STEPS = 1500, STREAMS = 48, PORTS = 3 };

/* xorshift64: the same storm for the same seed, as far as origins and time let it. */
struct dice {
	uint64_t x;
};

static uint32_t roll(struct dice *d, uint32_t n)
{
	d->x ^= d->x << 13;
	d->x ^= d->x >> 7;
	d->x ^= d->x << 17;
	return (uint32_t)(d->x >> 33) % n;
}

/* --- origins --- */

static _Atomic uint64_t origin_seed;

static const struct str pieces[] = {
	STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
	STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
	STR("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
	    "\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0"),
	STR("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nno"),
	STR("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
	STR("HTTP/1.1 100 Continue\r\n\r\n"),
	STR("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
	STR("HTTP/1.1 204 No Content\r\nX: " REAL "\r\n\r\n"),
	STR("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" REAL),
	STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	    "Connection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"),
	STR("5\r\nhello\r\n"),
	STR("0\r\n\r\n"),
	STR("0\r\nX-Sum: 5\r\n\r\n"),
	STR("\x81\x05hello"),
	STR("\x01\x18" REAL),
	STR("\x80\0"),
	STR("\x89\0"),
	STR("\x88\2\3\xe8"),
	STR("\x82\x7e\xff\xff"),
	STR("\r\n"),
	STR("\0\0\0\0\0\0\0\0"),
};

/* The right answer to a WebSocket's handshake. */
static bool upgrade(struct test_conn *c, struct str head)
{
	size_t key = str_find(head, STR("Sec-WebSocket-Key: ")) + 19;
	char accept[WS_ACCEPT_LEN + 1], answer[256];

	if (key > head.n)
		return true;
	ws_accept(str_prefix(str_from_index(head, key), WS_KEY_LEN), accept);
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept);
	return test_conn_write_z(c, answer);
}

static void origin(struct test_conn *c, void *arg)
{
	struct dice d = {atomic_fetch_add(&origin_seed, 0x9e3779b97f4a7c15) | 1};
	struct buf head = BUF_INIT(1 << 18);
	char bytes[16 * 1024] = {0};
	bool more = true;

	(void)arg;
	for (int i = 0; i < 3; i++)
		(void)roll(&d, 2);
	if (roll(&d, 8) > 0) /* else it speaks first */
		more = test_conn_read_head(c, &head);
	while (more) {
		const struct str *s = &pieces[roll(&d, ARRAY_SIZE(pieces))];

		switch (roll(&d, 12)) {
		case 0:
			more = test_conn_read(c, bytes, sizeof(bytes)) > 0;
			break;
		case 1:
			more = test_conn_write(c, bytes, sizeof(bytes));
			break;
		case 2:
			test_conn_cut(c);
			more = false;
			break;
		case 3:
			more = false;
			break;
		case 4:
		case 5:
			more = upgrade(c, buf_str(&head));
			break;
		case 6:
			buf_clear(&head);
			more = test_conn_read_head(c, &head);
			break;
		default:
			more = test_conn_write(c, s->p, s->n);
		}
	}
	buf_done(&head);
}

/* --- the gateway --- */

struct known {
	uint32_t id;
	bool open; /* may send a body */
	bool raw;  /* nobody looks into it */
	uint32_t window;
	uint32_t owed; /* bytes that came, and are not credited */
	bool counted;  /* the body has a length */
	uint32_t left; /* of it */
};

struct storm {
	struct rig g;
	struct dice d;
	struct known streams[STREAMS];
	unsigned n;
	bool over; /* the channel has gone */
	uint32_t mints;
};

static const char *const hosts[] = {
	"a.test", "b.test", "h.test", "t.test", "no.other", "c.test", "127.0.0.1", "A.test", ""};
static const char *const methods[] = {"GET", "POST", "HEAD", "PUT", "PURGE", "CONNECT", "get"};
static const char *const targets[] = {"/", "/hello", "/big/300000", "/never", "/bidi", "/sink",
	"/reset", "/goaway", "/refused", "/trailers", "/interim", "/cut", "*", "x"};
static const char *const fields[][2] = {{"Authorization", "Bearer sk-fake-ABCDEFGHIJKLMNOP"},
	{"Content-Type", "application/grpc"}, {"Accept-Encoding", "gzip, br"},
	{"Range", "bytes=0-1"}, {"x", ""}, {"Cookie", "a=b"}, {"Content-Length", "3"},
	{"Sec-WebSocket-Key", "x"}};

static struct known *any(struct storm *s)
{
	return s->n ? &s->streams[roll(&s->d, s->n)] : NULL;
}

/* Mostly from the front of a table, whose end is what breaks the protocol. */
static uint32_t pick(struct storm *s, uint32_t good, uint32_t all)
{
	return roll(&s->d, 400) ? roll(&s->d, good) : roll(&s->d, all);
}

static void step_open(struct storm *s)
{
	static const enum net_kind kinds[] = {
		NET_KIND_HTTP, NET_KIND_HTTP, NET_KIND_WEBSOCKET, NET_KIND_TUNNEL};
	enum net_kind kind = kinds[roll(&s->d, ARRAY_SIZE(kinds))];
	bool odd = roll(&s->d, 400) == 0;
	struct ask a = {.kind = kind,
		.scheme = kind == NET_KIND_TUNNEL || roll(&s->d, 3) ? NET_HTTPS : NET_HTTP,
		.host = hosts[kind == NET_KIND_TUNNEL && roll(&s->d, 3) ? 3 : pick(s, 7, 9)],
		.method = methods[pick(s, 5, 7)],
		.target = targets[pick(s, 13, 14)],
		.body = (enum net_body)roll(&s->d, 3),
		.te = roll(&s->d, 2),
		.expects = roll(&s->d, 3) == 0,
		.more = true};
	struct known *k = &s->streams[s->n < STREAMS ? s->n++ : roll(&s->d, STREAMS)];

	a.length = a.body == NET_BODY_LENGTH ? 1 + roll(&s->d, 100000) : 0;
	for (unsigned i = 0; i < roll(&s->d, 4); i++)
		memcpy(&a.fields[i * 2], fields[pick(s, 6, 8)], sizeof(fields[0]));
	if (kind != NET_KIND_HTTP && !odd) {
		a.body = NET_BODY_STREAM;
		a.length = 0;
		a.expects = false;
		a.method = "GET";
	}
	if (kind == NET_KIND_TUNNEL && !odd) {
		a.method = a.target = "";
		a.fields[0] = NULL;
	}
	*k = (struct known){.open = a.body != NET_BODY_NONE,
		.raw = kind == NET_KIND_TUNNEL,
		.window = NET_REQUEST_WINDOW,
		.counted = a.body == NET_BODY_LENGTH,
		.left = (uint32_t)a.length};
	k->id = rig_open(&s->g, &a);
}

static void step_data(struct storm *s)
{
	static const char hello[] = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
	static const char zeros[NET_MAX_DATA];
	struct known *k = any(s);
	uint32_t n = roll(&s->d, 3) ? sizeof(hello) - 1 : 1 + roll(&s->d, NET_MAX_DATA);

	if (k && k->counted && n > k->left && k->left > 0)
		n = k->left;
	if (!k || ((!k->open || n > k->window || (k->counted && n > k->left)) && roll(&s->d, 2000)))
		return;
	must(net_send_data(&s->g.net, k->id, str_make(n <= sizeof(hello) - 1 ? hello : zeros, n)) ==
		0);
	k->window -= n;
	k->left -= k->counted ? n : 0;
}

static void step_end(struct storm *s)
{
	struct known *k = any(s);
	struct net_fields_out f;

	if (!k || ((!k->open || k->left > 0) && roll(&s->d, 2000)))
		return;
	f = net_begin_trailers(&s->g.net, k->id);
	if (!k->counted && roll(&s->d, 50) == 0)
		net_add_field(&f, STR("x-sum"), STR("5"));
	must(net_end_fields(&f) == 0);
	k->open = false;
}

static void step_credit(struct storm *s)
{
	struct known *k = any(s);

	if (!k || (k->owed == 0 && roll(&s->d, 2000)))
		return;
	must(net_send_credit(&s->g.net, k->id, k->owed ? k->owed : 1) == 0);
	k->owed = 0;
}

static void step_reset(struct storm *s)
{
	struct known *k = any(s);

	if (k)
		must(net_send_reset(&s->g.net, k->id, (enum net_reset)roll(&s->d, 4)) == 0);
	if (k)
		k->open = false;
}

static void step_mint(struct storm *s)
{
	const struct net_mint m = {.request = s->mints++,
		.host = str_from(hosts[roll(&s->d, ARRAY_SIZE(hosts))]),
		.port = roll(&s->d, 4) ? 443 : (uint16_t)roll(&s->d, 65536),
		.h2 = roll(&s->d, 4) > 0,
		.http1 = roll(&s->d, 4) > 0};

	must(net_send_mint(&s->g.net, &m) == 0);
}

static void step_event(struct storm *s)
{
	const struct net_client known = {.family = 4, .port = 1, .server_port = 443};
	const struct net_event e = {.kind = (enum net_event_kind)roll(&s->d, NET_EVENT_KIND_END),
		.client = roll(&s->d, 2) ? known : (struct net_client){0},
		.a = STR("a.test"),
		.b = STR("\x1b[31m\n"),
		.method = STR("GET")};

	must(net_send_event(&s->g.net, &e) == 0);
}

/* Whatever bytes, as whatever frame. */
static void step_raw(struct storm *s)
{
	static const uint16_t types[] = {NET_HELLO, NET_MINT, NET_OPEN, NET_EVENT, NET_CERT,
		NET_HEAD, NET_DATA, NET_END, NET_RESET, NET_CREDIT, 77};
	char bytes[64];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(roll(&s->d, 3) ? 0 : roll(&s->d, 256));
	must(chan_send(&s->g.net, types[roll(&s->d, ARRAY_SIZE(types))],
		     str_make(bytes, roll(&s->d, sizeof(bytes))), NULL, 0) == 0);
}

static void step_policy(struct storm *s)
{
	static const char *const policies[] = {"domains: [a.test, h.test]\n",
		("url_prefixes:\n  - host: \"*.test\"\n    methods: [GET]\n  - host: t.test\n"
		 "    tunnel: true\n"),
		"domains: [\"*.test\"]\nurl_prefixes:\n  - host: t.test\n    tunnel: true\n"};
	struct chan c;
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(chan_init(&c, pair[0], NETCONF_MAX_PAYLOAD, 1 << 20) == 0);
	if (helper_send_policy(&s->g.supervisor, &pair[1]) == 0)
		(void)!chan_flush_wait(&s->g.supervisor, 1000);
	close(pair[1]);
	(void)!netconf_send_allowlist(
		&c, &(struct netconf_allowlist){STR("n"), str_from(policies[roll(&s->d, 3)])});
	(void)!chan_send(&c, NETCONF_DONE, STR_NULL, NULL, 0);
	(void)!chan_flush_wait(&c, 1000);
	chan_done(&c);
}

/* Answers those who ask for an owner, sometimes. */
static void serve_supervisor(struct storm *s)
{
	struct helper_owner m = {.owner = {7, STR("n\n"), STR("/p")}};
	struct helper_who who;
	struct chan_frame f;

	while (chan_recv(&s->g.supervisor, &f) > 0) {
		if (f.type == HELPER_WHO && helper_get_who(f.payload, &who) && roll(&s->d, 2)) {
			m.number = who.number;
			if (helper_send_owner(&s->g.supervisor, &m) == 0)
				(void)!chan_flush(&s->g.supervisor);
		}
		chan_frame_done(&f);
	}
}

static struct known *find(struct storm *s, uint32_t id)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->streams[i].id == id)
			return &s->streams[i];
	return NULL;
}

static void take(struct storm *s, int ms)
{
	struct chan_frame f;
	int r;

	while ((r = chan_recv_wait(&s->g.net, &f, ms)) > 0) {
		struct wire_in in = wire_in(f.payload);
		struct known *k = find(s, wire_get_u32(&in));

		check(!k || k->raw || str_find(f.payload, STR(REAL)) == f.payload.n);
		if (k && f.type == NET_DATA)
			k->owed += (uint32_t)f.payload.n - 4;
		else if (k && f.type == NET_CREDIT)
			k->window += wire_get_u32(&in);
		else if (k && f.type == NET_RESET)
			k->open = false;
		chan_frame_done(&f);
	}
	s->over = r < 0 && r != -ETIMEDOUT;
}

static void step(struct storm *s)
{
	static void (*const steps[])(struct storm *) = {step_open, step_open, step_data, step_data,
		step_data, step_credit, step_credit, step_credit, step_end, step_reset, step_mint,
		step_event};

	if (roll(&s->d, 3000) == 0)
		step_raw(s);
	else if (roll(&s->d, 100) == 0)
		step_policy(s);
	else
		steps[roll(&s->d, ARRAY_SIZE(steps))](s);
	if (roll(&s->d, 4) == 0)
		rig_flush(&s->g);
	if (roll(&s->d, 8) == 0)
		take(s, (int)roll(&s->d, 3));
	serve_supervisor(s);
}

static void start(
	struct storm *s, struct test_origin *o[PORTS], struct test_ca *ca, struct origin_seen *seen)
{
	const struct test_cert cert = {.ca = ca, .dns = "*.test"};
	const struct test_origin_config configs[PORTS] = {{.serve = origin},
		{.serve = origin, .cert = &cert},
		{.serve = origin_serve_h2, .cert = &cert, .arg = seen, .h2 = true}};
	struct buf pem = BUF_INIT(8192);

	rig_start(&s->g);
	for (int i = 0; i < PORTS; i++)
		o[i] = test_origin_start(&configs[i]);
	test_ca_add_pem(ca, &pem);
	must(chan_send(&s->g.conf, NETCONF_UPSTREAM_CA, buf_str(&pem), NULL, 0) == 0);
	buf_done(&pem);
	rig_allow(&s->g,
		"domains: [\"*.test\"]\nurl_prefixes:\n  - host: t.test\n    tunnel: true\n");
	rig_connect_to(&s->g, "a.test", 80, test_origin_port(o[0]));
	rig_connect_to(&s->g, "b.test", 80, test_origin_port(o[0]));
	rig_connect_to(&s->g, "t.test", 443, test_origin_port(o[0]));
	rig_connect_to(&s->g, "a.test", 443, test_origin_port(o[1]));
	rig_connect_to(&s->g, "b.test", 443, test_origin_port(o[2]));
	rig_connect_to(&s->g, "h.test", 443, test_origin_port(o[2]));
	rig_connect_to(&s->g, "c.test", 443, 1);
	rig_secret(&s->g, "TOKEN", REAL, "sk-fake-ABCDEFGHIJKLMNOP", "a.test", "authorization");
	rig_secret(&s->g, "OTHER", "sk-real-fedcba9876543210", "sk-fake-ponmlkjihgfedcba", "h.test",
		"authorization");
	rig_serve(&s->g);
}

static void storm(uint64_t seed, struct test_ca *ca)
{
	struct storm *s = calloc(1, sizeof(*s));
	struct origin_seen seen = {.heads = BUF_INIT(64 << 20)};
	struct test_origin *o[PORTS];
	bool ended, well;
	int status, i;
	char *log;

	must(s);
	s->d.x = seed * 0x9e3779b97f4a7c15 | 1;
	atomic_store(&origin_seed, s->d.x);
	start(s, o, ca, &seen);
	for (i = 0; i < STEPS && !s->over; i++)
		step(s);
	must(chan_send(&s->g.net, 99, STR_NULL, NULL, 0) == 0);
	rig_flush(&s->g);
	ended = rig_ended(&s->g);
	log = rig_log(&s->g, false);
	status = rig_stop(&s->g);
	well = ended && strstr(log, "the gateway broke the protocol") && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 1;
	check(well && !strstr(log, "sk-real-"));
	if (!well || getenv("CLOCHE_STORM"))
		printf("# seed %llu, %d steps, %u streams: ended %d, status %#x\n",
			(unsigned long long)seed, i, s->g.next - 1, ended, status);
	free(log);
	for (i = 0; i < PORTS; i++)
		test_origin_stop(o[i]);
	buf_done(&seen.heads);
	free(s);
}

static void test_storms(void)
{
	const char *more = getenv("CLOCHE_STORM");
	uint64_t seed = 1, rounds = ROUNDS;
	struct test_ca *ca = test_ca_new("Test root");

	if (more)
		must(sscanf(more, "%lu:%lu", &seed, &rounds) == 2);
	for (; rounds > 0; rounds--)
		storm(seed++, ca);
	test_ca_free(ca);
}

int main(void)
{
	run_test(test_storms);
	return tap_done();
}
