/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "netlog/reader.h"

#include "seeded.h"
#include "tap.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int file_of(struct str text)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	must(fd >= 0 && fd_write_all(fd, text.p, text.n) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static const struct netlog_event events[] = {
	{.kind = NETLOG_TASK_START, .time_usec = 1769860800ULL * USEC_PER_SEC},
	{.kind = NETLOG_DNS,
		.type = STR("TYPE65"),
		.name = STR("a\n[x]%"),
		.answer = STR("NODATA")},
	{.kind = NETLOG_REQUEST,
		.allowed = true,
		.method = STR("GET"),
		.url = STR("https://x.com/a%20b?c=[1]&d= e"),
		.status = 200,
		.masked = 3,
		.region = STR("us-east-1"),
		.scrubbed = 1},
	{.kind = NETLOG_REQUEST,
		.method = STR("GET"),
		.url = STR("https://e.com/\x1b[31m"),
		.status = 403,
		.process = STR("a] [b"),
		.pid = 12,
		.program = STR("/usr/bin/a b")},
	{.kind = NETLOG_REQUEST,
		.method = STR("POST"),
		.url = STR("https://e.com/"),
		.status = 403,
		.note = STR("(graphql)"),
		.masked = 1,
		.tags = {{STR("graphql"), STR("query/a [1] (b)")}, {STR("tools"), STR("c: d")}}},
	{.kind = NETLOG_REQUEST,
		.method = STR("PUT"),
		.url = STR("https://e.com/"),
		.status = 403,
		.region = STR("us-east-1, [eu]-*%")},
	{.kind = NETLOG_REQUEST,
		.method = STR("P\xc3\xb6st"),
		.url = STR("https://e.com/"),
		.status = 421,
		.note = STR("host mismatch: header=(a), url=b)")},
	{.kind = NETLOG_CONNECT,
		.host = STR("[2001:db8::1]"),
		.port = 22,
		.note = STR("not http"),
		.status = 403,
		.process = STR("ssh"),
		.pid = 7},
	{.kind = NETLOG_TUNNEL, .host = STR("p.com"), .port = 443, .allowed = true, .status = 200},
	{.kind = NETLOG_TCP,
		.host = STR("d.com"),
		.port = 5432,
		.allowed = true,
		.status = 200,
		.has_transfer = true,
		.bytes_out = 12,
		.bytes_in = 3456789012},
	{.kind = NETLOG_STRIPPED,
		.name = STR("authorization"),
		.method = STR("GET"),
		.url = STR("https://x.com/")},
	{.kind = NETLOG_COLLAPSED,
		.name = STR("cookie"),
		.count = 4,
		.method = STR("GET"),
		.url = STR("https://x.com/")},
	{.kind = NETLOG_ERROR,
		.method = STR("GET"),
		.url = STR("https://x.com/"),
		.note = STR("connect: timed out -> x")},
	{.kind = NETLOG_WARNING, .note = STR("17 things are odd")},
	{.kind = NETLOG_WEBSOCKET,
		.method = STR("GET"),
		.url = STR("https://a.test/ws"),
		.status = 101,
		.note = STR("cancelled (x)"),
		.frames_out = 1,
		.payload_in = 12345678901,
		.close_code = 4999,
		.scrubbed = 2},
	{.kind = NETLOG_WEBSOCKET, .method = STR("GET"), .url = STR("http://a/"), .status = 101},
	{.kind = NETLOG_POLICY, .count = 10000, .note = STR("a (1).yaml, --allow\n")},
	{.kind = NETLOG_POLICY},
	{.kind = NETLOG_SUPPRESSED, .count = 99},
	{.kind = NETLOG_TASK_END, .time_usec = 1769860801ULL * USEC_PER_SEC},
};

static void check_same(const struct netlog_event *a, const struct netlog_event *b)
{
	check_int(a->kind, b->kind);
	check_int(a->allowed, b->allowed);
	check(str_eq(a->method, b->method) && str_eq(a->url, b->url));
	check(str_eq(a->name, b->name) && str_eq(a->type, b->type));
	check(str_eq(a->region, b->region));
	check(a->pid == b->pid && str_eq(a->process, b->process) && str_eq(a->program, b->program));
	check(str_eq(a->answer, b->answer) && str_eq(a->note, b->note));
	check(str_eq(a->host, b->host));
	check_int(a->port, b->port);
	check_int(a->status, b->status);
	check_int(a->count, b->count);
	if (b->kind == NETLOG_TCP)
		check(a->bytes_out == b->bytes_out && a->bytes_in == b->bytes_in);
	for (size_t i = 0; i < NETLOG_TAGS; i++) {
		check(str_eq(a->tags[i].name, b->tags[i].name));
		check(str_eq(a->tags[i].text, b->tags[i].text));
	}
	check(a->masked == b->masked && a->dropped == b->dropped && a->scrubbed == b->scrubbed);
	if (b->time_usec)
		check(a->time_usec == b->time_usec);
}

static void test_round_trip(void)
{
	for (int form = 0; form < 2; form++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(1U << 20);
		_cleanup_(netlog_reader_freep) struct netlog_reader *r = NULL;
		_cleanup_fd_ int fd = -1;
		struct netlog_event ev;

		for (size_t i = 0; i < ARRAY_SIZE(events); i++)
			must((form ? netlog_format_json : netlog_format_plain)(&events[i], &text) ==
				0);
		fd = file_of(buf_str(&text));
		r = netlog_reader_new(fd);
		for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
			must(netlog_reader_next(r, &ev, NULL) == 1);
			check_same(&ev, &events[i]);
		}
		check_int(netlog_reader_next(r, &ev, NULL), 0);
		check_int(netlog_reader_next(r, &ev, NULL), 0);
	}
}

static void test_json_transfer(void)
{
	static const char line[] =
		"{\"time\":\"2026-01-31T12:00:00.250000+00:00\",\"event\":\"request\",\"decision\":"
		"\"allowed\",\"url\":\"https://x.com/"
		"\",\"rule\":\"domains[0]\",\"reason\":\"allowed\","
		"\"duration_ms\":1.500,\"bytes_in\":7,\"bytes_out\":9,\"port\":99999,\"masked\":-"
		"1}";
	_cleanup_fd_ int fd = file_of(str_from(line));
	_cleanup_(netlog_reader_freep) struct netlog_reader *r = netlog_reader_new(fd);
	_cleanup_(buf_donep) struct buf shown = BUF_INIT(4096);
	struct netlog_event ev;

	must(netlog_reader_next(r, &ev, NULL) == 1);
	check(ev.time_usec == 1769860800ULL * USEC_PER_SEC + 250000);
	check(ev.has_transfer && ev.duration_usec == 1500 && ev.bytes_in == 7 && ev.bytes_out == 9);
	check_str(ev.rule, "domains[0]");
	check_int(ev.port, 65535);
	check_int(ev.masked, 0);
	check(netlog_event_show(&ev, &shown) == 0);
	check_str(buf_str(&shown), "12:00:00.250 ALLOWED  https://x.com/ -> 0\n");
}

/* Lines as older writers have them, and lines that are nothing. */
static void test_foreign_lines(void)
{
	static const struct {
		const char *line;
		enum netlog_kind kind;
	} lines[] = {
		{"ALLOWED POST https://api.github.com/graphql -> 200 [graphql: query/viewer] "
		 "[masked: 1]",
			NETLOG_REQUEST},
		{"BLOCKED CONNECT evil.com:443 -> 403 (tunneling not allowed)", NETLOG_CONNECT},
		{"BLOCKED GET https://a/ -> 403 (host mismatch: header=a, url=b)", NETLOG_REQUEST},
		{"DNS AAAA x.com -> NOTIMP", NETLOG_DNS},
		{"ALLOWED", NETLOG_OTHER},
		{"ALLOWED GET", NETLOG_OTHER},
		{"ALLOWED GET https://x.com/", NETLOG_OTHER},
		{"ALLOWED GET https://x.com/ -> ", NETLOG_OTHER},
		{"ALLOWED GET https://x.com/ -> abc", NETLOG_OTHER},
		{"ALLOWED GET https://x.com/ -> 200x", NETLOG_OTHER},
		{"ALLOWED GET https://x.com/ -> 99999", NETLOG_OTHER},
		{" ALLOWED GET https://x.com/ -> 200", NETLOG_OTHER},
		{"COLLAPSED x duplicate 'a' headers in GET u (d)", NETLOG_OTHER},
		{"=== TASK START never ===", NETLOG_OTHER},
		{"=== TASK", NETLOG_OTHER},
		{"{", NETLOG_OTHER},
		{"{}", NETLOG_OTHER},
		{"{\"event\":\"other\"}", NETLOG_OTHER},
		{"{\"event\":\"request\",\"event\":\"dns\"}", NETLOG_OTHER},
		{"{\"event\":[1]}", NETLOG_OTHER},
		{"{\"event\":\"dns\",\"name\":{\"a\":1}}", NETLOG_DNS},
		{"\x1b[31m", NETLOG_OTHER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_fd_ int fd = file_of(str_from(lines[i].line));
		_cleanup_(netlog_reader_freep) struct netlog_reader *r = netlog_reader_new(fd);
		struct netlog_event ev;

		must(netlog_reader_next(r, &ev, NULL) == 1);
		if (ev.kind != lines[i].kind)
			tap_fail("%s: %s", lines[i].line, netlog_kind_word(ev.kind));
		check_int(netlog_reader_next(r, &ev, NULL), 0);
	}
}

/* Its front alone may look like another event. */
static void test_long_lines(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1U << 20);
	_cleanup_(netlog_reader_freep) struct netlog_reader *r = NULL;
	_cleanup_fd_ int fd = -1;
	struct netlog_event ev;

	must(buf_add_str(&text, STR("ERROR GET https://x/ -> ")) == 0);
	for (int i = 0; i < 300000; i++)
		must(buf_add_char(&text, 'x') == 0);
	must(buf_add_str(&text, STR("\n\n\nWARNING: after\nWARNING: torn")) == 0);
	fd = file_of(buf_str(&text));
	r = netlog_reader_new(fd);
	must(netlog_reader_next(r, &ev, NULL) == 1);
	check_int(ev.kind, NETLOG_OTHER);
	check(ev.note.n >= 65536 && ev.note.n < 90000);
	must(netlog_reader_next(r, &ev, NULL) == 1);
	check_str(ev.note, "after");
	must(netlog_reader_next(r, &ev, NULL) == 1);
	check_str(ev.note, "torn");
	check_int(netlog_reader_next(r, &ev, NULL), 0);
}

/* Whatever is in the file: no control byte is shown, and reading ends. */
static void test_hostile(void)
{
	static const char *const starts[] = {"ALLOWED ", "DNS ", "{\"event\":\"dns\",\"name\":\"",
		"", "=== TASK START ", "COLLAPSED 1 duplicate '", "WARNING: "};

	for (int round = 0; round < 3000; round++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(65536), shown = BUF_INIT(1U << 20);
		_cleanup_(netlog_reader_freep) struct netlog_reader *r = NULL;
		_cleanup_fd_ int fd = -1;
		struct netlog_event ev;
		int lines = 0;

		for (int i = 0; i < 5; i++) {
			char bytes[100];

			rand_bytes(bytes, sizeof(bytes));
			must(buf_add_str(&text, str_from(starts[rand_below(7)])) == 0);
			must(buf_add(&text, bytes, rand_below(sizeof(bytes))) == 0);
			must(buf_add_str(&text, rand_below(2) ? STR("\"} -> 200\n") : STR("\n")) ==
				0);
		}
		fd = file_of(buf_str(&text));
		r = netlog_reader_new(fd);
		while (netlog_reader_next(r, &ev, NULL) == 1) {
			must(++lines < 600);
			buf_clear(&shown);
			must(netlog_event_show(&ev, &shown) == 0);
			for (size_t i = 0; i + 1 < buf_len(&shown); i++)
				check(buf_data(&shown)[i] >= 0x20 && buf_data(&shown)[i] < 0x7f);
			check(buf_data(&shown)[buf_len(&shown) - 1] == '\n');
		}
		check(lines > 0);
	}
}

static void test_summary(void)
{
	cloche_network_summary sum = {0};
	size_t blocked = 0;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		netlog_summary_add(&sum, &events[i]);
		blocked += netlog_event_is_blocked(&events[i]);
	}
	check_int(sum.allowed, 3);
	check_int(sum.blocked, 5);
	check_int(blocked, 5);
	check_int(sum.dns, 1);
	check_int(sum.errors, 1);
	check_int(sum.stripped, 1);
	check_int(sum.masked, 4);
}

/* The beginning of a request stands in the JSON form alone, and is not told to a reader. */
static void test_beginnings(void)
{
	const struct netlog_config config = {
		.plain_fd = memfd_create("plain", MFD_CLOEXEC),
		.json_fd = memfd_create("json", MFD_CLOEXEC),
		.live_fd = -1,
		.kept_fd = -1,
		.flood_per_sec = 1,
		.flood_burst = 1,
	};
	struct netlog *log = netlog_new(&config);
	struct netlog_reader *r;
	struct netlog_event ev = {
		.kind = NETLOG_INTENT, .method = STR("GET"), .url = STR("https://x.com/")};

	must(log && config.plain_fd >= 0 && config.json_fd >= 0);
	for (int i = 0; i < 3; i++) /* not limited: a request depends on it */
		check_int(netlog_write(log, &ev), 0);
	check_int(netlog_counts(log).allowed, 0);
	ev.kind = NETLOG_REQUEST;
	ev.allowed = true;
	ev.status = 204;
	check_int(netlog_write(log, &ev), 0);
	netlog_free(log);
	check_int(
		lseek(config.plain_fd, 0, SEEK_CUR), strlen("ALLOWED GET https://x.com/ -> 204\n"));
	check(lseek(config.json_fd, 0, SEEK_SET) == 0);
	r = netlog_reader_new(config.json_fd);
	must(r);
	check_int(netlog_reader_next(r, &ev, NULL), 1);
	check(ev.kind == NETLOG_REQUEST && ev.status == 204);
	check_int(netlog_reader_next(r, &ev, NULL), 0);
	netlog_reader_free(r);
	close(config.plain_fd);
	close(config.json_fd);
}

/* What is written after the end was reached comes with the next call, in whole lines. */
static void test_follow(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC), in;
	struct netlog_reader *r;
	struct netlog_event ev;
	char path[64];

	must(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	in = open(path, O_RDONLY | O_CLOEXEC);
	r = netlog_reader_new(in);
	must(in >= 0 && r);
	netlog_reader_follow(r);
	must(write(fd, "WARNING: 1\nWARN", 15) == 15);
	check_int(netlog_reader_next(r, &ev, NULL), 1);
	check_str(ev.note, "1");
	check_int(netlog_reader_next(r, &ev, NULL), 0);
	check_int(netlog_reader_next(r, &ev, NULL), 0);
	must(write(fd, "ING: 2\nWARNING: 3\n", 18) == 18);
	check_int(netlog_reader_next(r, &ev, NULL), 1);
	check_str(ev.note, "2");
	check_int(netlog_reader_skip(r, NULL), 0);
	check_int(netlog_reader_next(r, &ev, NULL), 0);
	must(write(fd, "WARNING: 4\n", 11) == 11);
	check_int(netlog_reader_next(r, &ev, NULL), 1);
	check_str(ev.note, "4");
	netlog_reader_free(r);
	close(in);
	close(fd);
}

static void test_read_error(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_(netlog_reader_freep) struct netlog_reader *r = netlog_reader_new(-1);
	struct netlog_event ev;

	check_int(netlog_reader_next(r, &ev, &err), -E_SYSTEM);
	check(err.sys_errno != 0);
}

int main(void)
{
	seeded_begin();
	run_test(test_round_trip);
	run_test(test_json_transfer);
	run_test(test_foreign_lines);
	run_test(test_long_lines);
	run_test(test_hostile);
	run_test(test_summary);
	run_test(test_beginnings);
	run_test(test_follow);
	run_test(test_read_error);
	return tap_done();
}
