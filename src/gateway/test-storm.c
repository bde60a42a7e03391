/* SPDX-License-Identifier: Apache-2.0 */
/* A room that says anything in any order, on many connections at once, while a broker answers as it
 * may, at any time. The gateway has to live on and end well. CLOCHE_STORM=SEED:ROUNDS makes other
 * and more storms than the few that are always made; run them in a build with sanitizers. */
#include "gateway/limits.h"
#include "gateway/testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tap.h>

enum { ROUNDS = 2, STEPS = 1500, CONNS = 8, STREAMS = 64 };

/* xorshift64: the same storm for the same seed, as far as time lets it. */
static uint64_t dice;

static uint32_t roll(uint32_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 33) % n;
}

static struct rig rig;
static unsigned opened, bodies;

/* --- the room --- */

static struct room {
	bool open, h2;
	struct client c;
	uint32_t next;     /* stream of HTTP/2 */
	uint32_t sends[8]; /* streams whose requests have not ended; 0: none */
} rooms[CONNS];

static const struct str pieces[] = {
	STR("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	STR("POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n"),
	STR("POST /x HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n"),
	STR("PUT /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 300000\r\n\r\n"),
	STR("HEAD / HTTP/1.0\r\nHost: a.test\r\n\r\n"),
	STR("GET /ws HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
	    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
	STR("5\r\nhello\r\n"),
	STR("0\r\nX-Sum: 1\r\n\r\n"),
	STR("hello"),
	STR("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
	STR("\x88\x80\0\0\0\0"),
	STR("\x89\x80\0\0\0\0"),
	STR("\r\n"),
};

/* A request, or trailers of the one in the slot. Returns its length. */
static uint32_t h2_head(struct room *r, uint32_t *slot, char *to, uint32_t *id, uint32_t *flags)
{
	uint32_t n;

	if (*slot && roll(8) == 0) {
		*id = *slot;
		*flags |= 1;
		*slot = 0;
		memcpy(to, "\0\1x\1y", 5);
		return 5;
	}
	*id = r->next;
	r->next += 2;
	n = (uint32_t)snprintf(
		to, 200, "%c\x87\x84\x01%ca.test:%u", roll(2) ? 0x82 : 0x83, 0, rig.port);
	to[4] = (char)(n - 5);
	*flags |= roll(3) ? 0 : 1;
	if (!(*flags & 1))
		*slot = *id;
	return n;
}

/* Types 0 to 9, and one that nobody knows. */
static size_t h2_frame(struct room *r, char *to)
{
	uint32_t *slot = &r->sends[roll(ARRAY_SIZE(r->sends))], n = 0;
	uint32_t type =
		roll(200) ? (uint32_t[]){0, 0, 0, 1, 1, 1, 3, 6, 8, 8, 4}[roll(11)] : roll(11);
	uint32_t id = r->next > 1 ? 1 + 2 * roll((r->next - 1) / 2) : 1;
	uint32_t flags = roll(500) ? 0 : roll(256);

	if (r->next == 1)
		type = 1;
	if (type == 0 && *slot == 0 && roll(500))
		type = 1;
	if (type == 0 && *slot)
		id = *slot;
	switch (type) {
	case 0:
		n = roll(4) ? roll(100) : roll(16384);
		memset(to + 9, 0, n);
		flags |= roll(20) == 0;
		if (flags & 1)
			*slot = 0;
		break;
	case 1:
		flags |= 4U;
		n = h2_head(r, slot, to + 9, &id, &flags);
		break;
	case 8:
		n = 4;
		id = roll(2) ? id : 0;
		memset(to + 9, 0, 4);
		to[11] = (char)roll(256);
		to[12] = 1;
		break;
	case 6:
	case 4:
		n = type == 6 ? 8 : 6 * roll(2);
		id = roll(500) ? 0 : id;
		memcpy(to + 9, "\0\4\0\0\xff\xff\0\0", 8);
		break;
	default:
		n = 4;
		memset(to + 9, 0, 4);
		if (id == *slot)
			*slot = 0;
		to[12] = (char)roll(14);
	}
	to[0] = (char)(n >> 16);
	to[1] = (char)(n >> 8);
	to[2] = (char)n;
	to[3] = (char)type;
	to[4] = (char)flags;
	to[5] = 0;
	to[6] = (char)(id >> 16);
	to[7] = (char)(id >> 8);
	to[8] = (char)id;
	return n + 9;
}

static void step_connect(struct room *r)
{
	*r = (struct room){.open = true, .next = 1, .h2 = roll(3) > 0};
	rig.h2 = r->h2;
	if (!r->h2 && roll(2)) {
		client_connect(&r->c, &rig);
	} else if (!client_connect_tls(&r->c, &rig, "a.test")) {
		client_close(&r->c);
		r->open = false;
		return;
	}
	r->h2 = r->c.tls && tls_client_is_h2(r->c.tls);
	if (r->h2)
		client_send_some(&r->c, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
}

static void step_room(void)
{
	static char bytes[40 * 1024];
	struct room *r = &rooms[roll(CONNS)];
	size_t n = 0;

	if (!r->open) {
		step_connect(r);
		return;
	}
	if (roll(40) == 0 || r->c.ended) {
		client_close(&r->c);
		r->open = false;
		return;
	}
	if (roll(3) == 0) {
		(void)client_read(&r->c, 0);
		buf_clear(&r->c.in);
		return;
	}
	for (uint32_t i = 1 + roll(4); i > 0 && n < 20000; i--) {
		if (r->h2) {
			n += h2_frame(r, bytes + n);
		} else if (roll(10)) {
			const struct str *s = &pieces[roll(ARRAY_SIZE(pieces))];

			memcpy(bytes + n, s->p, s->n);
			n += s->n;
		} else {
			memset(bytes + n, 'a', 9000);
			n += roll(9000);
		}
	}
	(void)client_send_some(&r->c, str_make(bytes, n));
}

/* --- the broker --- */

static struct known {
	uint32_t id; /* 0: free */
	enum net_kind kind;
	bool head, ended, got_end;
	uint32_t window, owed;
	bool counted;
	uint64_t left;
} streams[STREAMS];

static struct known *find(uint32_t id)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (streams[i].id == id)
			return &streams[i];
	return NULL;
}

static void take_open(struct str payload)
{
	struct known *k = find(0);
	struct wire_in fields;
	struct net_open m;

	must(net_get_open(payload, &m, &fields));
	opened++;
	if (!k)
		k = &streams[roll(STREAMS)]; /* that one is never answered */
	*k = (struct known){.id = m.stream,
		.kind = m.kind,
		.got_end = m.body == NET_BODY_NONE,
		.window = NET_WINDOW};
}

static void take_frames(void)
{
	struct rig_frame *f;

	while ((f = rig_recv(&rig, roll(3) == 0))) {
		struct str payload = str_make(f->payload, f->n);
		struct wire_in in = wire_in(payload);
		uint32_t id = f->type >= NET_DATA ? wire_get_u32(&in) : 0;
		struct known *k = id ? find(id) : NULL;

		if (f->type == NET_OPEN)
			take_open(payload);
		bodies += f->type == NET_DATA;
		if (k && f->type == NET_DATA)
			k->owed += (uint32_t)f->n - 4;
		if (k && f->type == NET_CREDIT)
			k->window += wire_get_u32(&in);
		if (k && f->type == NET_END)
			k->got_end = true;
		if (k && (f->type == NET_RESET || (k->ended && k->got_end)))
			k->id = 0;
		free(f);
	}
}

static void send_head(struct known *k)
{
	static const uint16_t statuses[] = {200, 200, 204, 304, 403, 101};
	struct net_response m = {.stream = k->id,
		.status = statuses[roll(ARRAY_SIZE(statuses))],
		.body = (enum net_body)roll(3),
		.close = roll(4) == 0};
	bool interim = roll(3) == 0;

	if (interim)
		m = (struct net_response){.stream = k->id, .status = roll(2) ? 100 : 103};
	if (m.body == NET_BODY_LENGTH)
		m.length = 1 + roll(100000);
	k->head = !interim;
	k->counted = m.body == NET_BODY_LENGTH;
	k->left = m.length;
	rig_head(&rig, interim ? NET_INTERIM : NET_HEAD, &m, roll(2) ? "x: y\n" : NULL);
}

static void step_broker(void)
{
	static const char zeros[NET_MAX_DATA];
	struct known *k = &streams[roll(STREAMS)];
	uint32_t n = roll(2) ? 1 + roll(10) : 1 + roll(NET_MAX_DATA);
	uint32_t what = roll(12);

	if (k->id == 0)
		return;
	if (what == 0) {
		rig_reset(&rig, k->id, (enum net_reset)roll(NET_RESET_END));
		k->id = 0;
	} else if (what < 4 && k->owed > 0) {
		must(net_send_credit(&rig.broker, k->id, k->owed) == 0);
		k->owed = 0;
	} else if (k->ended) {
		return;
	} else if (!k->head) {
		send_head(k);
	} else if (what < 6) {
		k->ended = true;
		rig_end(&rig, k->id, roll(2) ? "x-sum: 1\n" : NULL);
		if (k->got_end)
			k->id = 0;
	} else if (n <= k->window) {
		if (k->counted && roll(20))
			n = (uint32_t)MIN((uint64_t)n, k->left);
		if (n == 0)
			return;
		k->window -= n;
		k->left -= MIN((uint64_t)n, k->left);
		rig_data(&rig, k->id, str_make(zeros, n));
	}
}

static void storm(uint64_t seed)
{
	struct gateway_limits limits = gateway_limits_default;
	const struct rig_config config = {.limits = &limits};
	bool well;

	dice = seed * 0x9e3779b97f4a7c15 | 1;
	limits.linger_usec = limits.head_usec = 20 * 1000;
	limits.idle_usec = limits.body_window_usec = 50 * 1000;
	limits.stream_idle_usec = 200 * 1000;
	opened = bodies = 0;
	memset(streams, 0, sizeof(streams));
	rig_start(&rig, &config);
	for (int i = 0; i < STEPS; i++) {
		step_room();
		take_frames();
		for (int n = 0; n < 8; n++)
			step_broker();
		if (roll(100) == 0)
			must(net_send_forget(&rig.broker) == 0);
		must(chan_flush_wait(&rig.broker, 30000) == 0);
	}
	if (seed % 2) /* else they are still there when it ends */
		for (int i = 0; i < CONNS; i++)
			if (rooms[i].open)
				client_close(&rooms[i].c);
	well = rig_stop(&rig);
	for (int i = 0; i < CONNS; i++) {
		if (rooms[i].open && seed % 2 == 0)
			client_close(&rooms[i].c);
		rooms[i].open = false;
	}
	if (!well || getenv("CLOCHE_STORM"))
		printf("# seed %llu: %u requests, %u frames with bodies\n",
			(unsigned long long)seed, opened, bodies);
	check(well);
}

static void test_storms(void)
{
	const char *more = getenv("CLOCHE_STORM");
	uint64_t seed = 1, rounds = ROUNDS;

	if (more)
		must(sscanf(more, "%lu:%lu", &seed, &rounds) == 2);
	for (; rounds > 0; rounds--)
		storm(seed++);
}

int main(void)
{
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	run_test(test_storms);
	return tap_done();
}
