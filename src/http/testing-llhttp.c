/* SPDX-License-Identifier: Apache-2.0 */
#include "http/testing-llhttp.h"

#include <stdlib.h>
/* Two of its names are ours, too. */
#define HTTP_CONNECT LLHTTP_CONNECT
#define HTTP_TRACE LLHTTP_TRACE
#include <llhttp.h>
#undef HTTP_CONNECT
#undef HTTP_TRACE

struct theirs {
	struct buf target, fields, body, trailer;
	bool framing_trailer; /* g */
	bool head, complete, in_value, skip_body, at_eof;
	uint64_t length;
	size_t end;
	uint8_t method;
	uint16_t status, flags;
	int keep_alive;
	llhttp_errno_t error;
	const char *reason;
};

struct ours {
	enum h1_result result;
	enum http_body_result body_result;
	bool at_eof;
	struct http_head head;
	size_t head_end, end;
	struct buf fields, body;
};

static void append(struct buf *b, const char *p, size_t n)
{
	if (buf_add(b, p, n) < 0)
		abort();
}

static int on_url(llhttp_t *p, const char *at, size_t n)
{
	append(&((struct theirs *)p->data)->target, at, n);
	return 0;
}

/* Values may end in blanks there. */
static void end_value(struct theirs *t)
{
	size_t n = buf_len(&t->fields);

	while (t->in_value && n &&
		(buf_data(&t->fields)[n - 1] == ' ' || buf_data(&t->fields)[n - 1] == '\t'))
		n--;
	t->fields.tail = t->fields.head + n;
	t->in_value = false;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
	struct theirs *t = p->data;

	if (t->head) {
		append(&t->trailer, at, n);
		return 0;
	}
	end_value(t);
	append(&t->fields, "\n", 1);
	append(&t->fields, at, n);
	return 0;
}

static int on_field_end(llhttp_t *p)
{
	struct theirs *t = p->data;
	struct str name = buf_str(&t->trailer);

	t->framing_trailer |=
		str_ieq(name, STR("Content-Length")) || str_ieq(name, STR("Transfer-Encoding")) ||
		str_ieq(name, STR("Connection")) || str_ieq(name, STR("Proxy-Connection"));
	buf_clear(&t->trailer);
	return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
	struct theirs *t = p->data;

	if (t->head)
		return 0;
	if (!t->in_value)
		append(&t->fields, ":", 1);
	t->in_value = true;
	append(&t->fields, at, n);
	return 0;
}

static int on_head(llhttp_t *p)
{
	struct theirs *t = p->data;

	end_value(t);
	t->head = true;
	t->length = p->content_length;
	t->method = p->method;
	t->status = p->status_code;
	t->flags = p->flags;
	/* Its user has to know which answers never have a body (RFC 9112 6.3). */
	return p->type == HTTP_RESPONSE && (t->skip_body || p->status_code / 100 == 1 ||
						   p->status_code == 204 || p->status_code == 304);
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
	append(&((struct theirs *)p->data)->body, at, n);
	return 0;
}

static int on_complete(llhttp_t *p)
{
	struct theirs *t = p->data;

	t->complete = true;
	t->keep_alive = llhttp_should_keep_alive(p);
	return HPE_PAUSED;
}

static void their_parse(struct theirs *t, struct str in, bool request)
{
	llhttp_settings_t settings;
	llhttp_t p;

	llhttp_settings_init(&settings);
	settings.on_url = on_url;
	settings.on_header_field = on_field;
	settings.on_header_field_complete = on_field_end;
	settings.on_header_value = on_value;
	settings.on_headers_complete = on_head;
	settings.on_body = on_body;
	settings.on_message_complete = on_complete;
	llhttp_init(&p, request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
	p.data = t;
	t->error = llhttp_execute(&p, in.p, in.n);
	t->reason = llhttp_get_error_reason(&p);
	if (t->error == HPE_OK) {
		t->end = in.n;
		t->at_eof = llhttp_finish(&p) == HPE_PAUSED && t->complete;
		t->complete &= !t->at_eof;
	} else if (t->error == HPE_PAUSED || t->error == HPE_PAUSED_UPGRADE) {
		t->end = (size_t)(llhttp_get_error_pos(&p) - in.p);
		t->error = HPE_OK;
	}
}

static void our_body(struct ours *o, struct str rest)
{
	struct http_body body;
	struct str data;
	size_t all = o->head_end + rest.n;

	http_body_init(&body, &o->head, NULL);
	while ((o->body_result = http_body_read(&body, &rest, &data)) == HTTP_BODY_DATA)
		append(&o->body, data.p, data.n);
	o->end = all - rest.n;
	if (o->body_result == HTTP_BODY_MORE)
		o->at_eof = http_body_eof(&body) == 0;
	http_body_done(&body);
}

static void our_parse(struct ours *o, struct str in, bool request, unsigned opt)
{
	const struct http_fields *f = &o->head.fields;
	struct h1_parser p;

	if (request)
		h1_parser_request(&p, &o->head);
	else
		h1_parser_response(&p, &o->head, opt);
	o->result = h1_parse(&p, in, &o->head_end);
	if (o->result != H1_DONE)
		return;
	for (unsigned i = 0; i < f->n; i++)
		if (buf_printf(&o->fields, "\n%.*s:%.*s", STR_FMT(http_fields_name(f, i)),
			    STR_FMT(http_fields_value(f, i))) < 0)
			abort();
	our_body(o, str_from_index(in, o->head_end));
}

/* c. */
static bool is_tolerated(const struct ours *o, struct str in)
{
	const struct http_fields *f = &o->head.fields;
	struct str head = str_prefix(in, o->head_end);
	unsigned lengths = http_fields_count(f, STR("Content-Length"));

	if (o->head.is_request)
		return false;
	for (size_t i = 0; i < head.n; i++)
		if (head.p[i] == '\n' && (i == 0 || head.p[i - 1] != '\r'))
			return true;
	if (str_chr(http_fields_get(f, STR("Content-Length")), ',') <
		http_fields_get(f, STR("Content-Length")).n)
		return true;
	if (str_find(head, STR("\n ")) < head.n || str_find(head, STR("\n\t")) < head.n)
		return true;
	return lengths > 1 || (lengths && http_fields_count(f, STR("Transfer-Encoding")));
}

static bool is_method_of_theirs(struct str method)
{
	static const char *const names[] = {
#define NAME(number, name, string) #string,
		HTTP_METHOD_MAP(NAME)
#undef NAME
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(method, str_from(names[i])))
			return true;
	return false;
}

/* a, b, g and h. */
static bool is_refusal_of_theirs(const struct ours *o, const struct theirs *t, struct str in)
{
	if (o->head.is_request && !is_method_of_theirs(http_head_method(&o->head)))
		return true;
	if (t->framing_trailer)
		return true;
	if (!o->head.is_request && t->error != HPE_OK &&
		str_starts(str_from(t->reason), STR("Invalid character in chunk")))
		return true;
	if (str_chr(str_prefix(in, o->head_end), '\t') == o->head_end)
		return false;
	if (t->error == HPE_OK) /* it reads to the end of the connection */
		return !o->head.is_request && o->head.body == HTTP_BODY_CHUNKED &&
		       !(t->flags & F_CHUNKED);
	return str_eq(str_from(t->reason), STR("Invalid character in Content-Length")) ||
	       str_eq(str_from(t->reason), STR("Request has invalid `Transfer-Encoding`"));
}

static const char *compare_framing(const struct http_head *h, const struct theirs *t)
{
	bool bodiless = !h->is_request && (h->flags & HTTP_TO_HEAD || h->status / 100 == 1 ||
						  h->status == 204 || h->status == 304);

	if (!bodiless && (h->body == HTTP_BODY_CHUNKED) != !!(t->flags & F_CHUNKED))
		return "whether it is chunked";
	if (bodiless && h->body != HTTP_BODY_NONE)
		return "whether it has a body";
	if (h->flags & HTTP_HAS_LENGTH && h->content_length != t->length)
		return "Content-Length";
	return NULL;
}

static bool is_ascii(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= 0x80)
			return false;
	return true;
}

static const char *compare_heads(const struct ours *o, const struct theirs *t)
{
	const struct http_head *h = &o->head;

	if (!str_eq(buf_str(&o->fields), buf_str(&t->fields)))
		return "the fields";
	if (!h->is_request)
		return h->status == t->status ? compare_framing(h, t) : "the status";
	if (!str_eq(http_head_method(h), str_from(llhttp_method_name(t->method))))
		return "the method";
	/* e and i. */
	if (!(h->flags & (HTTP_ABSOLUTE | HTTP_CONNECT)) && is_ascii(buf_str(&t->target)) &&
		!str_eq(http_head_target(h), buf_str(&t->target)))
		return "the target";
	return compare_framing(h, t);
}

static const char *compare_bodies(const struct ours *o, const struct theirs *t)
{
	bool done = o->body_result == HTTP_BODY_DONE;

	if (t->complete != done)
		return "whether the message has ended";
	if (!str_eq(buf_str(&o->body), buf_str(&t->body)))
		return "the body";
	if (done && o->end != t->end)
		return "where the message ends";
	/* d. */
	if (done && (o->head.flags & HTTP_KEEP_ALIVE) && !t->keep_alive &&
		!http_fields_count(&o->head.fields, STR("Proxy-Connection")))
		return "whether the connection goes on";
	if (!done && o->at_eof != t->at_eof)
		return "whether the end of the connection ends it";
	return NULL;
}

static enum llhttp_verdict judge(
	const struct ours *o, const struct theirs *t, struct str in, const char **ret_what)
{
	/* f. */
	bool other = o->head.flags & HTTP_CONNECT || o->head.status == 101;

	if (is_tolerated(o, in) || is_refusal_of_theirs(o, t, in))
		return LLHTTP_NO_CLAIM;
	*ret_what = t->reason ? t->reason : "whether the head has ended";
	/* What has not ended may still be refused by us: llhttp looks at a line before its end. */
	if (t->head != (o->result == H1_DONE) ||
		(t->error != HPE_OK && o->body_result != HTTP_BODY_MORE))
		return LLHTTP_DIFFERS;
	if (o->result == H1_MORE)
		return LLHTTP_SAME_SO_FAR;
	*ret_what = compare_heads(o, t);
	if (!*ret_what && !other)
		*ret_what = compare_bodies(o, t);
	if (*ret_what)
		return LLHTTP_DIFFERS;
	return other || o->body_result != HTTP_BODY_DONE ? LLHTTP_SAME_HEAD : LLHTTP_SAME_MESSAGE;
}

enum llhttp_verdict llhttp_compare(struct str in, bool request, unsigned opt, size_t *ret_end,
	bool *ret_keep_alive, const char **ret_what)
{
	static const struct buf empty = BUF_INIT(SIZE_MAX / 2);
	struct theirs t = {.target = empty, .fields = empty, .body = empty, .trailer = empty};
	struct ours o = {.head = HTTP_HEAD_INIT, .fields = empty, .body = empty};
	enum llhttp_verdict verdict = LLHTTP_NO_CLAIM;

	t.skip_body = opt & H1_TO_HEAD;
	our_parse(&o, in, request, opt);
	if (o.result != H1_ERROR && (o.result == H1_MORE || o.body_result != HTTP_BODY_BAD)) {
		their_parse(&t, in, request);
		verdict = judge(&o, &t, in, ret_what);
	}
	*ret_end = o.end;
	*ret_keep_alive = o.head.flags & HTTP_KEEP_ALIVE;
	http_head_done(&o.head);
	buf_done(&o.fields);
	buf_done(&o.body);
	buf_done(&t.target);
	buf_done(&t.fields);
	buf_done(&t.body);
	buf_done(&t.trailer);
	return verdict;
}
