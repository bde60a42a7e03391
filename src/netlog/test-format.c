/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "netlog/netlog.h"

#include "base/rand.h"
#include "seeded.h"
#include "tap.h"
#include <jansson.h>

#define NOON (1769860800ULL * USEC_PER_SEC) /* 2026-01-31T12:00:00Z */

static const struct {
	struct netlog_event ev;
	const char *plain, *json;
} cases[] = {
	{{.kind = NETLOG_TASK_START, .time_usec = NOON},
		"=== TASK START 2026-01-31T12:00:00Z ===\n", "\"event\":\"task_start\"}\n"},
	{{.kind = NETLOG_TASK_END, .time_usec = NOON}, "=== TASK END 2026-01-31T12:00:00Z ===\n",
		"\"event\":\"task_end\"}\n"},
	{{.kind = NETLOG_DNS,
		 .time_usec = NOON,
		 .type = STR("A"),
		 .name = STR("api.x.com"),
		 .answer = STR("198.18.0.7")},
		"DNS A api.x.com -> 198.18.0.7\n",
		"\"event\":\"dns\",\"name\":\"api.x.com\",\"type\":\"A\",\"answer\":\"198.18.0.7\"}"
		"\n"},
	{{.kind = NETLOG_REQUEST,
		 .time_usec = NOON,
		 .allowed = true,
		 .method = STR("GET"),
		 .url = STR("https://x.com/a?b=1"),
		 .host = STR("x.com"),
		 .port = 443,
		 .status = 200},
		"ALLOWED GET https://x.com/a?b=1 -> 200\n",
		"\"event\":\"request\",\"decision\":\"allowed\",\"method\":\"GET\",\"url\":\"https:"
		"//x.com/"
		"a?b=1\",\"host\":\"x.com\",\"port\":443,\"status\":200}\n"},
	{{.kind = NETLOG_REQUEST,
		 .time_usec = NOON,
		 .allowed = true,
		 .method = STR("POST"),
		 .url = STR("https://x.com/"),
		 .status = 201,
		 .masked = 2,
		 .dropped = 1,
		 .region = STR("eu-central-1"),
		 .scrubbed = 3,
		 .has_transfer = true,
		 .duration_usec = 1234567,
		 .bytes_in = 10,
		 .bytes_out = 0},
		"ALLOWED POST https://x.com/ -> 201 [masked: 2] [dropped: 1] [region: "
		"eu-central-1] "
		"[scrubbed: 3]\n",
		"\"region\":\"eu-central-1\",\"status\":201,\"masked\":2,\"dropped\":1,"
		"\"scrubbed\":3,\"duration_ms\":1234.567,"
		"\"bytes_in\":10,\"bytes_out\":0}\n"},
	{{.kind = NETLOG_REQUEST,
		 .time_usec = NOON,
		 .method = STR("POST"),
		 .url = STR("https://x.com/"),
		 .status = 403,
		 .note = STR("graphql_operation_blocked"),
		 .masked = 1,
		 .tags = {{STR("graphql"), STR("query/a]\n[b")},
			 {STR("tools"), STR("x (1 of 2)")}}},
		"BLOCKED POST https://x.com/ -> 403 (graphql_operation_blocked) "
		"[graphql: query/a%5D%0A%5Bb] [tools: x (1 of 2)] [masked: 1]\n",
		"\"tags\":{\"graphql\":\"query/a]\\n[b\",\"tools\":\"x (1 of 2)\"},"
		"\"status\":403,\"masked\":1}\n"},
	{{.kind = NETLOG_REQUEST,
		 .time_usec = NOON,
		 .method = STR("GET"),
		 .url = STR("https://e.com/"),
		 .status = 403,
		 .rule = STR("domains[0] x.com"),
		 .reason = STR("host")},
		"BLOCKED GET https://e.com/ -> 403\n",
		"\"decision\":\"blocked\",\"method\":\"GET\",\"url\":\"https://e.com/"
		"\",\"rule\":\"domains[0] "
		"x.com\",\"reason\":\"host\",\"status\":403}\n"},
	{{.kind = NETLOG_REQUEST,
		 .time_usec = NOON,
		 .method = STR("GET"),
		 .url = STR("https://a/"),
		 .status = 403,
		 .note = STR("host mismatch: header=a, url=b")},
		"BLOCKED GET https://a/ -> 403 (host mismatch: header=a, url=b)\n",
		"\"note\":\"host mismatch: header=a, url=b\",\"status\":403}\n"},
	{{.kind = NETLOG_CONNECT,
		 .time_usec = NOON,
		 .host = STR("10.0.0.1"),
		 .port = 22,
		 .note = STR("tunneling not allowed")},
		"BLOCKED CONNECT 10.0.0.1:22 -> 403 (tunneling not allowed)\n",
		"\"event\":\"connect\",\"decision\":\"blocked\",\"host\":\"10.0.0.1\",\"note\":"
		"\"tunneling not "
		"allowed\",\"port\":22}\n"},
	{{.kind = NETLOG_CONNECT,
		 .time_usec = NOON,
		 .host = STR("a.com"),
		 .port = 443,
		 .note = STR("not HTTP"),
		 .status = 400},
		"BLOCKED CONNECT a.com:443 -> 400 (not HTTP)\n", "\"port\":443,\"status\":400}\n"},
	{{.kind = NETLOG_TUNNEL, .time_usec = NOON, .host = STR("p.com"), .port = 443},
		"ALLOWED CONNECT p.com:443 -> 200 [tunnel]\n",
		"\"event\":\"tunnel\",\"decision\":\"allowed\",\"host\":\"p.com\",\"port\":443}\n"},
	{{.kind = NETLOG_TCP,
		 .time_usec = NOON,
		 .host = STR("d.com"),
		 .port = 5432,
		 .status = 200,
		 .bytes_out = 12,
		 .bytes_in = 3456789012,
		 .note = STR("cancelled")},
		"ALLOWED CONNECT d.com:5432 -> 200 (cancelled) [tcp: 12/3456789012 bytes]\n",
		"\"event\":\"tcp\",\"decision\":\"allowed\",\"host\":\"d.com\","
		"\"note\":\"cancelled\",\"port\":5432,\"status\":200}\n"},
	{{.kind = NETLOG_STRIPPED,
		 .time_usec = NOON,
		 .name = STR("authorization"),
		 .method = STR("GET"),
		 .url = STR("https://x.com/")},
		"STRIPPED header 'authorization' from GET https://x.com/ (foreign credential "
		"blocked)\n",
		"\"name\":\"authorization\"}\n"},
	{{.kind = NETLOG_COLLAPSED,
		 .time_usec = NOON,
		 .count = 2,
		 .name = STR("authorization"),
		 .method = STR("GET"),
		 .url = STR("https://x.com/")},
		"COLLAPSED 2 duplicate 'authorization' headers in GET https://x.com/ (duplicate "
		"credential headers removed)\n",
		"\"name\":\"authorization\",\"count\":2}\n"},
	{{.kind = NETLOG_ERROR,
		 .time_usec = NOON,
		 .method = STR("GET"),
		 .url = STR("https://x.com/"),
		 .note = STR("connect: Connection refused")},
		"ERROR GET https://x.com/ -> connect: Connection refused\n",
		"\"note\":\"connect: Connection refused\"}\n"},
	{{.kind = NETLOG_WARNING, .time_usec = NOON, .note = STR("clock skew")},
		"WARNING: clock skew\n", "\"event\":\"warning\",\"note\":\"clock skew\"}\n"},
	{{.kind = NETLOG_WEBSOCKET,
		 .time_usec = NOON,
		 .method = STR("GET"),
		 .url = STR("https://a.test/ws"),
		 .status = 101,
		 .frames_out = 12,
		 .frames_in = 7,
		 .payload_out = 3401,
		 .payload_in = 220,
		 .close_code = 1000},
		"CLOSED GET https://a.test/ws -> 101 "
		"[websocket: 12/7 frames, 3401/220 bytes, close 1000]\n",
		"\"event\":\"websocket\",\"method\":\"GET\","
		"\"url\":\"https://a.test/ws\",\"status\":101,\"frames_out\":12,\"frames_in\":7,"
		"\"payload_out\":3401,\"payload_in\":220,\"close_code\":1000}\n"},
	{{.kind = NETLOG_POLICY, .time_usec = NOON, .count = 12, .note = STR("a\nb.yaml, --allow")},
		"POLICY 12 rules (a%0Ab.yaml, --allow)\n",
		"\"event\":\"policy\",\"note\":\"a\\nb.yaml, --allow\",\"count\":12}\n"},
	{{.kind = NETLOG_SUPPRESSED, .time_usec = NOON, .count = 17},
		"WARNING: 17 events suppressed (flood)\n",
		"\"event\":\"suppressed\",\"count\":17}\n"},
};

static void test_forms(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(4096), json = BUF_INIT(4096);

		must(netlog_format_plain(&cases[i].ev, &plain) == 0);
		must(netlog_format_json(&cases[i].ev, &json) == 0);
		check_str(buf_str(&plain), cases[i].plain);
		if (!str_starts(buf_str(&json), STR("{\"time\":\"2026-01-31T12:00:00")) ||
			!str_ends(buf_str(&json), str_from(cases[i].json)))
			tap_fail("%zu: %.*s", i, STR_FMT(buf_str(&json)));
	}
}

/* Lines of the plain form have no time, so an event that was read from one has none to show. */
static void test_no_time_is_made_up(void)
{
	_cleanup_(buf_donep) struct buf json = BUF_INIT(4096);
	const struct netlog_event ev = {.kind = NETLOG_WARNING, .note = STR("x")};

	must(netlog_format_json(&ev, &json) == 0);
	check_str(buf_str(&json), "{\"event\":\"warning\",\"note\":\"x\"}\n");
}

/* What a room would like to have in the log. */
static const struct str forgeries[] = {
	STR("x\nALLOWED GET https://evil.com/ -> 200"),
	STR("x\r\nBLOCKED"),
	STR("x\x1b[2J\x1b]0;owned\x07"),
	STR("https://x.com/] [masked: 5]"),
	STR("x\xe2\x80\xae moc.live"),
	STR("x\xc2\x9b"
	    "31m"),
	STR("x\0y"),
	STR("\"},{\"event\":\"request\""),
	STR("\\\"\\u0000"),
	STR("\xff\xfe\xc0\xaf"),
	STR("%0A%5B"),
	STR(" -> 200"),
	STR("\x7f\x80"),
	STR("\xf0\x9f\x98\x80"),
};

static void check_forged(const struct netlog_event *ev)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(4096), json = BUF_INIT(4096);
	json_t *o;

	must(netlog_format_plain(ev, &plain) == 0);
	must(netlog_format_json(ev, &json) == 0);
	check(buf_len(&plain) <= NETLOG_LINE_MAX && buf_len(&json) <= NETLOG_LINE_MAX);
	check(str_chr(buf_str(&plain), '\n') == buf_len(&plain) - 1);
	check(str_chr(buf_str(&json), '\n') == buf_len(&json) - 1);
	for (size_t i = 0; i + 1 < buf_len(&plain); i++)
		check(buf_data(&plain)[i] >= 0x20 && buf_data(&plain)[i] < 0x7f);
	for (size_t i = 0; i + 1 < buf_len(&json); i++)
		check(buf_data(&json)[i] >= 0x20 && buf_data(&json)[i] < 0x7f);
	check(str_find(buf_str(&plain), STR("[masked: 5")) == buf_len(&plain));
	o = json_loadb(
		buf_data(&json), buf_len(&json), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	check(json_is_object(o));
	check_z(json_string_value(json_object_get(o, "event")), netlog_kind_word(ev->kind));
	json_decref(o);
}

static struct netlog_event event_of(enum netlog_kind kind, struct str s)
{
	return (struct netlog_event){.kind = kind,
		.time_usec = NOON,
		.method = s,
		.url = s,
		.host = s,
		.port = 1,
		.rule = s,
		.reason = s,
		.note = s,
		.name = s,
		.type = s,
		.answer = s,
		.tags = {{STR("graphql"), s}, {STR("tools"), s}}};
}

static void test_injection(void)
{
	for (int kind = 0; kind <= NETLOG_OTHER; kind++)
		for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
			struct netlog_event ev = event_of((enum netlog_kind)kind, forgeries[i]);

			check_forged(&ev);
		}
}

/* One line of at most 4 KiB, whatever and however much is in it. */
static void test_cap(void)
{
	static const char fill[] = {'a', '%', '\n', '\xff', '"', '\0'};
	static char big[70000];

	for (size_t f = 0; f < sizeof(fill); f++)
		for (int kind = 0; kind <= NETLOG_OTHER; kind++) {
			struct netlog_event ev = event_of((enum netlog_kind)kind, STR_NULL);

			memset(big, fill[f], sizeof(big));
			ev = event_of((enum netlog_kind)kind, str_make(big, sizeof(big)));
			ev.count = ev.duration_usec = ev.bytes_in = ev.bytes_out = UINT64_MAX;
			ev.masked = ev.dropped = ev.collapsed = ev.scrubbed = UINT32_MAX;
			ev.has_transfer = true;
			ev.status = 999;
			ev.frames_out = ev.frames_in = ev.payload_out = ev.payload_in = UINT64_MAX;
			ev.close_code = UINT16_MAX;
			if (kind == NETLOG_REQUEST || kind == NETLOG_WEBSOCKET)
				ev.masked = 0;
			check_forged(&ev);
		}
}

static void test_random(void)
{
	for (int i = 0; i < 5000; i++) {
		char bytes[1500];
		struct netlog_event ev;

		rand_bytes(bytes, sizeof(bytes));
		ev = event_of((enum netlog_kind)rand_below(NETLOG_OTHER + 1),
			str_make(bytes, rand_below(sizeof(bytes))));
		check_forged(&ev);
	}
}

int main(void)
{
	seeded_begin();
	run_test(test_forms);
	run_test(test_no_time_is_made_up);
	run_test(test_injection);
	run_test(test_cap);
	run_test(test_random);
	return tap_done();
}
