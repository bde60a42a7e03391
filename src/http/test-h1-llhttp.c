/* SPDX-License-Identifier: Apache-2.0 */
/* Compares with another parser, llhttp in its strict mode: what we accept, it must accept too, and
 * understand in the same way. (The reverse need not hold: we refuse more.) Messages are made from a
 * grammar whose rules are broken now and then. */
#include "http/test-support.h"

#ifdef HAVE_LLHTTP
/* Two of its names are ours, too. */
#define HTTP_CONNECT LLHTTP_CONNECT
#define HTTP_TRACE LLHTTP_TRACE
#include <llhttp.h>
#undef HTTP_CONNECT
#undef HTTP_TRACE

#define MESSAGES 60000

struct theirs {
	char target[20000], body[20000], fields[40000];
	size_t target_len, body_len, fields_len;
	bool head, complete, in_value, in_trailers;
	uint64_t length;
	uint8_t method;
	uint16_t status, flags;
	int keep_alive;
	const char *reason;
};

static struct theirs theirs;

static void append(char *to, size_t size, size_t *n, const char *p, size_t add)
{
	must(*n + add < size);
	memcpy(to + *n, p, add);
	*n += add;
	to[*n] = '\0';
}

#define APPEND(what, p, n) append(theirs.what, sizeof(theirs.what), &theirs.what##_len, p, n)

static int on_url(llhttp_t *p, const char *at, size_t n)
{
	APPEND(target, at, n);
	return 0;
}

/* Values may end in blanks there. */
static void end_value(void)
{
	if (!theirs.in_value)
		return;
	while (theirs.fields_len && strchr(" \t", theirs.fields[theirs.fields_len - 1]))
		theirs.fields_len--;
	theirs.fields[theirs.fields_len] = '\0';
	theirs.in_value = false;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
	if (theirs.in_trailers)
		return 0;
	end_value();
	APPEND(fields, "|", 1);
	APPEND(fields, at, n);
	return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
	if (theirs.in_trailers)
		return 0;
	if (!theirs.in_value)
		APPEND(fields, ":", 1);
	theirs.in_value = true;
	APPEND(fields, at, n);
	return 0;
}

static int on_head(llhttp_t *p)
{
	end_value();
	theirs.head = theirs.in_trailers = true;
	theirs.length = p->content_length;
	theirs.method = p->method;
	theirs.status = p->status_code;
	theirs.flags = p->flags;
	theirs.keep_alive = llhttp_should_keep_alive(p);
	return 0;
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
	APPEND(body, at, n);
	return 0;
}

static int on_complete(llhttp_t *p)
{
	theirs.complete = true;
	return HPE_PAUSED;
}

/* Returns how much llhttp took, or SIZE_MAX where it refused. */
static size_t their_parse(struct str in, bool request)
{
	llhttp_settings_t settings;
	llhttp_t p;
	llhttp_errno_t e;

	memset(&theirs, 0, sizeof(theirs));
	llhttp_settings_init(&settings);
	settings.on_url = on_url;
	settings.on_header_field = on_field;
	settings.on_header_value = on_value;
	settings.on_headers_complete = on_head;
	settings.on_body = on_body;
	settings.on_message_complete = on_complete;
	llhttp_init(&p, request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
	e = llhttp_execute(&p, in.p, in.n);
	theirs.reason = llhttp_get_error_reason(&p);
	if (e == HPE_OK)
		return in.n;
	if (e == HPE_PAUSED || e == HPE_PAUSED_UPGRADE)
		return (size_t)(llhttp_get_error_pos(&p) - in.p);
	return SIZE_MAX;
}

struct ours {
	struct http_head head;
	enum h1_result result;
	enum http_body_result body_result;
	size_t head_end, end;
	char body[20000];
	size_t body_len;
};

static void our_parse(struct ours *o, struct str in, bool request)
{
	struct h1_parser p;
	struct http_body body;
	struct str rest, data;

	if (request)
		h1_parser_request(&p, &o->head);
	else
		h1_parser_response(&p, &o->head, 0);
	o->result = h1_parse(&p, in, &o->head_end);
	o->body_len = 0;
	if (o->result != H1_DONE)
		return;
	rest = str_from_index(in, o->head_end);
	http_body_init(&body, &o->head, NULL);
	while ((o->body_result = http_body_read(&body, &rest, &data)) == HTTP_BODY_DATA) {
		must(o->body_len + data.n < sizeof(o->body));
		memcpy(o->body + o->body_len, data.p, data.n);
		o->body_len += data.n;
	}
	o->body[o->body_len] = '\0';
	o->end = in.n - rest.n;
	http_body_done(&body);
}

static const char *pick(const char *const *from, size_t n)
{
	return from[test_random((unsigned)n)];
}

#define PICK(...)                                                                                  \
	pick((const char *const[]){__VA_ARGS__},                                                   \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/* The first ten times of eleven. */
#define MOSTLY(usual, ...) (test_random(11) ? (usual) : PICK(__VA_ARGS__))

static void make_fields(struct buf *b, bool request)
{
	unsigned n = test_random(6);

	if (request)
		show(b, "Host%s%s%s", MOSTLY(": ", ":", ":\t", " : ", ""),
			MOSTLY("a", "a:80", "[::1]", "", "a,b", "a b"), MOSTLY("\r\n", "\n", "\r"));
	for (unsigned i = 0; i < n; i++)
		show(b, "%s%s%s%s",
			PICK("X", "Accept", "X-Very-Long-Name-Indeed", "Connection", "TE",
				"Trailer", "Content-Type", "X_y", "!#$%&'*+-.^_`|~", "Upgrade",
				"Expect", "Proxy-Connection", "Transfer-Encodin",
				"Content-Lengthx"),
			MOSTLY(": ", ":", ":  \t", " :", "", ": :"),
			PICK("close", "keep-alive", "x", "", "a, b", "upgrade", "websocket", "h2c",
				"100-continue", "trailers", "\"q\"", "\xff\x80", "a\tb", "a\rb",
				"a  b ", "keep-alive, close", "text/plain; q=\"1\\\"\""),
			MOSTLY("\r\n", "\n", "\r\r\n", "\r\n ", "\n\r"));
}

/* Returns which framing the fields claim: 0 none, 1 length, 2 chunked. */
static unsigned make_framing(struct buf *b)
{
	unsigned framing = test_random(3);

	if (framing == 1)
		show(b, "%s%s%s\r\n", MOSTLY("Content-Length", "content-length", "Content-Length "),
			MOSTLY(": ", ":", ":\t"),
			MOSTLY("5", "0", "05", "5 ", "+5", "0x5", "5,5", "5 5", "-5", "", "5\t",
				"99999999999999999999", "5\r\nContent-Length: 5",
				"5\r\nTransfer-Encoding: chunked"));
	else if (framing == 2)
		show(b, "%s%s%s\r\n",
			MOSTLY("Transfer-Encoding", "transfer-encoding", "Transfer-Encoding "),
			MOSTLY(": ", ":", ":\t"),
			MOSTLY("chunked", "Chunked", "chunked ", "chunked, identity", "identity",
				"gzip, chunked", "xchunked", "chunked\r\nTransfer-Encoding: x",
				"\"chunked\"", ",chunked", "chunked;x"));
	return framing;
}

static void make_body(struct buf *b, unsigned framing)
{
	if (framing == 1)
		show(b, "%s", MOSTLY("hello", "hell", "helloG", ""));
	if (framing != 2)
		return;
	for (unsigned n = test_random(4); n; n--)
		show(b, "%s%s%s%s",
			MOSTLY("3", "03", "00000003", "000000003", "0x3", "+3", "3 ", "g"),
			MOSTLY("\r\n", "\n", "\r", ";x\r\n", ";x=\"y\"\r\n", ";\r\n"),
			MOSTLY("abc", "ab", "abcd", "\r\n0"),
			MOSTLY("\r\n", "\n", "", "\r", "\n\r"));
	show(b, "%s%s%s%s", MOSTLY("0", "00", "00000000", "000000000", "-0"),
		MOSTLY("\r\n", "\n", ";x\r\n"),
		MOSTLY("", "X: y\r\n", "Host: b\r\n", "X: y\n", "X:y\r\n", "X : y\r\n", "X\r\n"),
		MOSTLY("\r\n", "\n", "\r\nG", "", "\r"));
}

static void make_message(struct buf *b, bool request)
{
	static const char *const statuses[] = {"200", "204", "304", "404", "500", "599"};
	unsigned framing;

	buf_clear(b);
	if (request)
		show(b, "%s%s%s%s%s%s", MOSTLY("", "\r\n", "\n"),
			PICK("GET", "POST", "PUT", "OPTIONS", "HEAD", "DELETE", "PATCH", "M-SEARCH",
				"CONNECT", "PROPFIND"),
			MOSTLY(" ", "  ", "\t"),
			PICK("/", "/a?b=c", "*", "http://a/", "http://a", "http://a?x", "a:80",
				"/\\|{}^`", "/%41%", "//a", "/?a?b", "/a;b=c,d", "http://b/", "x",
				"/#f"),
			MOSTLY(" ", "  ", "\t"),
			MOSTLY("HTTP/1.1\r\n", "HTTP/1.0\r\n", "HTTP/1.1\n", "HTTP/1.2\r\n",
				"HTTP/1.1 \r\n", "http/1.1\r\n"));
	else
		show(b, "%s%s%s%s", MOSTLY("HTTP/1.1 ", "HTTP/1.0 ", "HTTP/1.1  ", "HTTP/2.0 "),
			pick(statuses, ARRAY_SIZE(statuses)),
			MOSTLY(" OK", " ", "", " Not\tHere \xff", "x"),
			MOSTLY("\r\n", "\n", "\r\r\n"));
	make_fields(b, request);
	framing = make_framing(b);
	if (test_random(4) == 0)
		make_fields(b, false);
	show(b, "%s", MOSTLY("\r\n", "\n", "", "\r"));
	make_body(b, framing);
	/* One byte of it is something else, now and then. */
	if (test_random(4) == 0 && buf_len(b))
		buf_data(b)[test_random((unsigned)buf_len(b))] =
			"\r\n\0 \t:;,/x0\x7f\xff"[test_random(13)];
}

/* A server's faults that we tolerate and llhttp does not; h1.c lists them. */
static bool is_tolerated(const struct ours *o, struct str in)
{
	const struct http_fields *f = &o->head.fields;
	struct str head = str_prefix(in, o->head_end);
	unsigned lengths = http_fields_count(f, STR("Content-Length"));

	if (o->head.is_request)
		return false;
	if (str_find(head, STR("\r\n ")) < head.n || str_find(head, STR("\r\n\t")) < head.n)
		return true;
	return lengths > 1 || (lengths && http_fields_count(f, STR("Transfer-Encoding")));
}

/* What llhttp refuses beyond RFC 9112: methods that are not in its list, and a tab behind a
 * Content-Length. */
static bool is_refusal_of_theirs(const struct ours *o)
{
	struct str reason = str_from(theirs.reason);

	return (o->head.is_request && str_eq(reason, STR("Invalid method encountered"))) ||
	       ((o->head.flags & HTTP_HAS_LENGTH || o->head.status == 204) &&
		       str_eq(reason, STR("Invalid character in Content-Length")));
}

static unsigned accepted, complete;

/* llhttp leaves it to its user to know these (RFC 9112 6.3). */
static bool never_has_body(const struct http_head *h)
{
	return h->status == 204 || h->status == 304;
}

static void compare_heads(const struct ours *o, struct str in)
{
	const struct http_head *h = &o->head;
	_cleanup_(buf_donep) struct buf fields = BUF_INIT(100000);
	struct str target;

	for (unsigned i = 0; i < h->fields.n; i++)
		show(&fields, "|%.*s:%.*s", STR_FMT(http_fields_name(&h->fields, i)),
			STR_FMT(http_fields_value(&h->fields, i)));
	check_str(buf_str(&fields), theirs.fields);
	if (h->is_request) {
		check_str(http_head_method(h), llhttp_method_name(theirs.method));
		target = http_head_target(h);
		if (!(h->flags & HTTP_ABSOLUTE))
			check_str(target, theirs.target);
	} else {
		check_int(h->status, theirs.status);
	}
	check_int(h->body == HTTP_BODY_CHUNKED, (theirs.flags & F_CHUNKED) && !never_has_body(h));
	if (h->flags & HTTP_HAS_LENGTH)
		check_int(h->content_length, theirs.length);
	/* llhttp takes Proxy-Connection for Connection, which no RFC says. */
	if ((h->flags & HTTP_KEEP_ALIVE) && !(h->flags & HTTP_CONNECT) &&
		!http_fields_count(&h->fields, STR("Proxy-Connection")))
		check(theirs.keep_alive);
}

static void compare_bodies(const struct ours *o, size_t their_end)
{
	const struct http_head *h = &o->head;
	bool done = o->body_result == HTTP_BODY_DONE;

	if (never_has_body(h) || (h->flags & (HTTP_CONNECT | HTTP_UPGRADE)))
		return;
	check_int(theirs.complete, done);
	check_z(theirs.body, o->body);
	if (done && theirs.complete) {
		complete++;
		check_int(their_end, o->end);
	}
}

static void compare(struct ours *o, struct str in, bool request)
{
	size_t their_end;
	bool before = tap_ok_now;

	our_parse(o, in, request);
	if (o->result == H1_ERROR || (o->result == H1_DONE && o->body_result == HTTP_BODY_BAD))
		return;
	their_end = their_parse(in, request);
	if (is_tolerated(o, in) || (their_end == SIZE_MAX && is_refusal_of_theirs(o)))
		return;
	tap_ok_now = true;
	check_int(theirs.head, o->result == H1_DONE);
	if (o->result == H1_DONE && theirs.head) {
		accepted++;
		check(their_end != SIZE_MAX || o->body_result == HTTP_BODY_MORE ||
			never_has_body(&o->head));
		compare_heads(o, in);
		compare_bodies(o, their_end);
	}
	if (!tap_ok_now)
		tap_fail("llhttp says \"%s\" of: %.*s", theirs.reason ? theirs.reason : "",
			STR_FMT(in));
	tap_ok_now &= before;
}

static void differential(bool request)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(100000);
	static struct ours o;

	o.head = HTTP_HEAD_INIT;
	accepted = complete = 0;
	for (unsigned i = 0; i < MESSAGES; i++) {
		make_message(&in, request);
		compare(&o, buf_str(&in), request);
	}
	http_head_done(&o.head);
	printf("# %u messages, %u heads accepted, %u bodies complete\n", (unsigned)MESSAGES,
		accepted, complete);
	check(accepted > MESSAGES / 20 && complete > MESSAGES / 40);
}

static void requests_mean_the_same(void)
{
	differential(true);
}

static void responses_mean_the_same(void)
{
	differential(false);
}

int main(void)
{
	run_test(requests_mean_the_same);
	run_test(responses_mean_the_same);
	return tap_done();
}
#else
int main(void)
{
	printf("1..0 # SKIP llhttp is not installed (Debian package node-llhttp)\n");
	return 0;
}
#endif
