/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/test-origin.h"
#include "http/body.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char hello_gzip[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd"
				 "\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";

const char *const origin_malformed[] = {
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: "
	"chunked\r\n\r\n5\r\nhello\r\n0\r\n"
	"\r\nHTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
	"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
	"HTTP/2 200 OK\r\n\r\n",
	"SSH-2.0-OpenSSH_9\r\n",
	"HTTP/1.1 99 Low\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"", /* closes at once */
	"HTTP/1.1 200 OK\r\nContent-Le",
};
const size_t origin_malformed_n = ARRAY_SIZE(origin_malformed);

/* Whether it was asked for before. */
static bool is_new(struct origin_seen *seen, struct str target)
{
	struct str all;
	size_t first;
	bool is;

	pthread_mutex_lock(&lock);
	all = buf_str(&seen->heads);
	first = str_find(all, target) + 1;
	is = str_find(str_from_index(all, first), target) + first == all.n;
	pthread_mutex_unlock(&lock);
	return is;
}

void origin_note(struct origin_seen *seen, struct str head)
{
	pthread_mutex_lock(&lock);
	seen->requests++;
	test_need(buf_add_str(&seen->heads, head) == 0);
	pthread_mutex_unlock(&lock);
}

static void answer(struct test_conn *c, struct str body)
{
	char head[128];

	snprintf(head, sizeof(head),
		"HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nAlt-Svc: h3=\":443\"\r\n\r\n", body.n);
	(void)(test_conn_write_z(c, head) && test_conn_write(c, body.p, body.n));
}

/* The body of the request. */
static uint64_t drain(struct test_conn *c, const struct http_head *head)
{
	struct http_body body;
	char b[65536];
	uint64_t n = 0;

	http_body_init(&body, head, NULL);
	while (!http_body_is_done(&body)) {
		long got = test_conn_read(c, b, sizeof(b));
		struct str in = str_make(b, got > 0 ? (size_t)got : 0), data;

		if (got <= 0)
			break;
		while (http_body_read(&body, &in, &data) == HTTP_BODY_DATA)
			n += data.n;
	}
	http_body_done(&body);
	return n;
}

static void big(struct test_conn *c, uint64_t n)
{
	static const char zeros[65536];
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n",
		(unsigned long long)n);
	if (!test_conn_write_z(c, head))
		return;
	for (; n > 0; n -= MIN(n, (uint64_t)sizeof(zeros)))
		if (!test_conn_write(c, zeros, (size_t)MIN(n, (uint64_t)sizeof(zeros))))
			return;
}

static void split(struct test_conn *c, struct str body)
{
	const struct timespec pause = {.tv_nsec = 300000};

	(void)test_conn_write_z(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (size_t i = 0; i < body.n; i++) {
		char chunk[8];
		int n = snprintf(chunk, sizeof(chunk), "1\r\n%c\r\n", body.p[i]);

		nanosleep(&pause, NULL);
		if (!test_conn_write(c, chunk, (size_t)n))
			return;
	}
	(void)test_conn_write_z(c, "0\r\n\r\n");
}

static void echo_head(struct test_conn *c, const struct http_head *head)
{
	struct str auth = http_fields_get(&head->fields, STR("Authorization"));
	char text[512];

	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Seen: %.*s\r\n\r\n",
		STR_FMT(auth));
	(void)test_conn_write_z(c, text);
}

/* False: the connection is to be closed. */
static bool serve_one(struct test_conn *c, const struct http_head *head, const struct buf *raw)
{
	struct str t = http_head_target(head);
	char number[24];

	if (str_starts(t, STR("/hello")) || str_starts(t, STR("/once")) ||
		str_starts(t, STR("/die")) || str_starts(t, STR("/mute"))) {
		drain(c, head);
		answer(c, STR("hello"));
		return !str_starts(t, STR("/once"));
	}
	if (str_starts(t, STR("/echohead")))
		echo_head(c, head);
	else if (str_starts(t, STR("/echo")))
		answer(c, buf_str(raw));
	else if (str_starts(t, STR("/split")))
		split(c, buf_str(raw));
	else if (str_starts(t, STR("/chunked")))
		return test_conn_write_z(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
					    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
					    "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\n\r\n");
	else if (str_starts(t, STR("/sink"))) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)drain(c, head));
		answer(c, str_from(number));
	} else if (str_starts(t, STR("/big/"))) {
		snprintf(number, sizeof(number), "%.*s", STR_FMT(str_from_index(t, 5)));
		big(c, strtoull(number, NULL, 10));
	} else {
		return false;
	}
	return true;
}

static void last_words(struct test_conn *c, struct str t)
{
	char b[64];

	if (str_starts(t, STR("/eof")))
		(void)test_conn_write_z(c, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
	if (str_starts(t, STR("/cut")) || str_eq(t, STR("/gzip")))
		test_conn_cut(c);
	if (str_eq(t, STR("/gzip")))
		(void)(test_conn_write_z(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n") &&
			test_conn_write(c, hello_gzip, sizeof(hello_gzip) - 1));
	if (str_eq(t, STR("/cut")))
		(void)test_conn_write_z(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbroken");
	if (str_eq(t, STR("/cutclose")))
		(void)test_conn_write_z(c, "HTTP/1.1 200 OK\r\n\r\nbroken");
	if (str_starts(t, STR("/never")))
		while (test_conn_read(c, b, sizeof(b)) > 0)
			continue;
	if (str_starts(t, STR("/raw/"))) {
		size_t i = (size_t)(t.p[5] - 'a');

		test_need(i < origin_malformed_n);
		(void)test_conn_write_z(c, origin_malformed[i]);
	}
}

void origin_serve(struct test_conn *c, void *arg)
{
	struct http_head head = HTTP_HEAD_INIT;
	struct buf raw = BUF_INIT(1 << 18);
	bool more = true;
	unsigned n = 0;

	while (more && test_conn_read_head(c, &raw)) {
		struct h1_parser p;
		size_t used;

		origin_note(arg, buf_str(&raw));
		h1_parser_request(&p, &head);
		/* What the broker writes must please the strict parser. */
		if (h1_parse(&p, buf_str(&raw), &used) != H1_DONE) {
			(void)test_conn_write_z(c, "HTTP/1.1 599 Malformed request\r\n\r\n");
			break;
		}
		more = n++ == 0 || !str_starts(http_head_target(&head), STR("/die"));
		if (str_eq(http_head_target(&head), STR("/mute")))
			more = !is_new(arg, STR("/mute"));
		more = more && serve_one(c, &head, &raw);
		if (!more)
			last_words(c, http_head_target(&head));
		buf_clear(&raw);
	}
	http_head_done(&head);
	buf_done(&raw);
}
