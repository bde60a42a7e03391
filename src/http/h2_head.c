/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the decoded fields become a head of the message model, by the rules of RFC
 * 9113 8.2 and 8.3. The library has checked most of these rules (pseudo-fields, their order, lower
 * case, fields that belong to a connection). What decides where a message goes, where it ends, or
 * what bytes it may hold is checked here again, by the same functions as for HTTP/1. */
#include "http/chunked.h"
#include "http/h2_internal.h"
#include "http/valid.h"

#include <errno.h>

enum { FIELD_COST = 32 /* RFC 9113 6.5.2 */ };

void h2_head_begin(struct h2 *h)
{
	http_head_clear(&h->head);
	h->head.version = HTTP_2;
	h->head.flags = HTTP_KEEP_ALIVE;
	http_fields_clear(&h->trailers);
	buf_clear(&h->cookie);
	h->authority = (struct http_span){0};
	h->head_bytes = 0;
	h->crumbs = h->continuations = 0;
	h->refused = false;
}

static int bad(const char *why, const char **ret_why)
{
	*ret_why = why;
	return -EPROTO;
}

static int too_large(int r, const char **ret_why)
{
	return r == -E2BIG ? bad("the head is too large", ret_why) : r;
}

static int count(struct h2 *h, struct str name, struct str value, size_t max, const char **ret_why)
{
	h->head_bytes += name.n + value.n + FIELD_COST;
	return h->head_bytes > max ? bad("the head is too large", ret_why) : 0;
}

/* Copy s to the head's storage, and set ret to its place there. */
static int keep(struct http_head *h, struct str s, struct http_span *ret, const char **ret_why)
{
	size_t at = h->fields.text.tail;
	int r = buf_add_str(&h->fields.text, s);

	if (r < 0)
		return too_large(r, ret_why);
	*ret = (struct http_span){.at = (uint32_t)at, .len = (uint32_t)s.n};
	return 0;
}

static int method(struct http_head *h, struct str value, const char **ret_why)
{
	if (!http_is_method(value))
		return bad("malformed :method", ret_why);
	if (str_eq(value, STR("CONNECT")))
		h->flags |= HTTP_CONNECT;
	if (str_eq(value, STR("TRACE")))
		h->flags |= HTTP_TRACE;
	return keep(h, value, &h->s_method, ret_why);
}

static int status(struct http_head *h, struct str value, const char **ret_why)
{
	unsigned n;

	if (http_parse_status(value, &n) < 0)
		return bad("malformed :status", ret_why);
	if (n == 101) /* RFC 9113 8.6 */
		return bad("a :status that may not be", ret_why);
	h->status = (uint16_t)n;
	return keep(h, str_from(http_status_text(n)), &h->s_reason, ret_why);
}

static int path(struct http_head *h, struct str value, const char **ret_why)
{
	int r = keep(h, value, &h->s_target, ret_why);

	if (r == 0)
		r = http_head_encode_query(h);
	if (r == -EINVAL || (r == 0 && !http_is_target(http_head_target(h))))
		return bad("malformed :path", ret_why);
	return too_large(r, ret_why);
}

static int pseudo(
	struct h2 *h, bool request, struct str name, struct str value, const char **ret_why)
{
	struct http_head *head = &h->head;

	if (!request)
		return str_eq(name, STR(":status")) ? status(head, value, ret_why)
						    : bad("unknown pseudo-field", ret_why);
	if (str_eq(name, STR(":method")))
		return method(head, value, ret_why);
	if (str_eq(name, STR(":scheme")))
		return http_is_token(value) ? keep(head, value, &head->s_scheme, ret_why)
					    : bad("malformed :scheme", ret_why);
	if (str_eq(name, STR(":path")))
		return path(head, value, ret_why);
	if (str_eq(name, STR(":authority")))
		return keep(head, value, &h->authority, ret_why);
	return bad("unknown pseudo-field", ret_why);
}

/* RFC 9113 8.2.3: join the cookie fields into one. */
static int crumb(struct h2 *h, struct str value, const char **ret_why)
{
	int r = 0;

	if (++h->crumbs > HTTP_FIELDS_MAX || !http_is_field_value(value))
		return bad("malformed cookie", ret_why);
	if (buf_len(&h->cookie) > 0)
		r = buf_add_str(&h->cookie, STR("; "));
	if (r == 0)
		r = buf_add_str(&h->cookie, value);
	return too_large(r, ret_why);
}

static int add(struct http_fields *f, struct str name, struct str value, const char **ret_why)
{
	int r = http_fields_add(f, name, value);

	return r == -EINVAL ? bad("malformed field", ret_why) : too_large(r, ret_why);
}

int h2_head_add(struct h2 *h, bool request, struct str name, struct str value, const char **ret_why)
{
	int r = count(h, name, value, HTTP_HEAD_MAX, ret_why);

	if (r < 0)
		return r;
	if (name.n > 0 && name.p[0] == ':')
		return pseudo(h, request, name, value, ret_why);
	if (request && str_eq(name, STR("cookie")))
		return crumb(h, value, ret_why);
	return add(&h->head.fields, name, value, ret_why);
}

int h2_trailer_add(struct h2 *h, struct str name, struct str value, const char **ret_why)
{
	int r = count(h, name, value, HTTP_TRAILERS_MAX, ret_why);

	if (r < 0)
		return r;
	if (name.n > 0 && name.p[0] == ':')
		return bad("a pseudo-field in the trailers", ret_why);
	if (!http_is_trailer_name(name))
		return 0;
	return add(&h->trailers, name, value, ret_why);
}

/* The port, or the default port of the scheme if there is none. */
static uint16_t real_port(const struct http_head *h, uint16_t port)
{
	if (port)
		return port;
	return str_ieq(http_head_scheme(h), STR("https")) ? 443 : 80;
}

static int set_host(struct http_head *h, struct str authority, const char **ret_why)
{
	struct str name;

	if (http_parse_authority(authority, &name, &h->port) < 0)
		return bad("malformed :authority or Host", ret_why);
	h->s_host = (struct http_span){
		.at = (uint32_t)(name.p - h->fields.text.mem), .len = (uint32_t)name.n};
	return 0;
}

/* RFC 9113 8.3.1: Host and :authority must name the same host. */
static int host(struct h2 *h, const char **ret_why)
{
	struct http_head *head = &h->head;
	const struct http_fields *f = &head->fields;
	struct str name;
	uint16_t port;
	int i = http_fields_find_id(f, HTTP_F_HOST, 0), r;

	if (h->authority.len == 0 && i < 0)
		return bad("neither :authority nor Host", ret_why);
	r = set_host(head,
		h->authority.len > 0 ? http_head_span(head, h->authority)
				     : http_fields_value(f, (unsigned)i),
		ret_why);
	for (; r == 0 && i >= 0; i = http_fields_find_id(f, HTTP_F_HOST, (unsigned)i + 1)) {
		if (http_parse_authority(http_fields_value(f, (unsigned)i), &name, &port) < 0 ||
			!str_ieq(name, http_head_host(head)) ||
			real_port(head, port) != real_port(head, head->port))
			r = bad("Host is not :authority", ret_why);
	}
	return r;
}

static int length(struct http_head *h, bool end, const char **ret_why)
{
	int i = http_fields_find_id(&h->fields, HTTP_F_CONTENT_LENGTH, 0);
	uint64_t n;

	http_head_set_body(h, end ? HTTP_BODY_NONE : HTTP_BODY_CHUNKED, 0);
	if (i < 0)
		return 0;
	if (http_parse_length(http_fields_value(&h->fields, (unsigned)i), &n) < 0 ||
		http_fields_find_id(&h->fields, HTTP_F_CONTENT_LENGTH, (unsigned)i + 1) >= 0)
		return bad("malformed Content-Length", ret_why);
	http_head_set_body(h, HTTP_BODY_LENGTH, n);
	if (end)
		h->body = HTTP_BODY_NONE;
	return 0;
}

/* Check the fields for one hop only; none but "te: trailers" is allowed (RFC 9113 8.2.2). */
static int connection(struct http_head *h, const char **ret_why)
{
	for (unsigned i = 0; i < h->fields.n; i++) {
		const struct http_field *f = &h->fields.v[i];
		struct str value = http_fields_value(&h->fields, i);

		if (f->id == HTTP_F_EXPECT) {
			if (!str_ieq(value, STR("100-continue")))
				h->flags |= HTTP_EXPECT_OTHER;
			else if (h->body != HTTP_BODY_NONE)
				h->flags |= HTTP_EXPECT_CONTINUE;
		}
		if (!f->hop || f->id == HTTP_F_HTTP2_SETTINGS)
			continue;
		if (!h->is_request || f->id != HTTP_F_TE || !str_ieq(value, STR("trailers")))
			return bad("a field of a connection", ret_why);
		h->flags |= HTTP_TE_TRAILERS;
	}
	return 0;
}

static int finish_request(struct h2 *h, bool end, const char **ret_why)
{
	struct http_head *head = &h->head;
	int r = 0;

	head->is_request = true;
	if (buf_len(&h->cookie) > 0)
		r = add(&head->fields, STR("cookie"), buf_str(&h->cookie), ret_why);
	if (r == 0)
		r = host(h, ret_why);
	if (r < 0)
		return r;
	if (head->flags & HTTP_CONNECT)
		head->s_target = h->authority;
	else if (head->s_method.len == 0 || head->s_scheme.len == 0 || head->s_target.len == 0)
		return bad("a pseudo-field is missing", ret_why);
	else if (str_eq(http_head_target(head), STR("*")) &&
		 !str_eq(http_head_method(head), STR("OPTIONS")))
		return bad("malformed :path", ret_why);
	return length(head, end, ret_why);
}

static int finish_response(struct h2 *h, struct h2_stream *st, bool end, const char **ret_why)
{
	struct http_head *head = &h->head;
	int r;

	if (head->status == 0)
		return bad("no :status", ret_why);
	if (head->status < 200 && (end || ++st->interim > HTTP_INTERIM_MAX))
		return bad("interim responses without end", ret_why);
	r = length(head, end, ret_why);
	if (st->to_head)
		head->flags |= HTTP_TO_HEAD;
	if (head->status < 200 || head->status == 204) /* RFC 9110 8.6 */
		http_head_set_body(head, HTTP_BODY_NONE, 0);
	else if (head->status == 304 || st->to_head)
		head->body = HTTP_BODY_NONE;
	return r;
}

int h2_head_finish(struct h2 *h, struct h2_stream *st, bool end, const char **ret_why)
{
	int r = h->c.role == H2_SERVER ? finish_request(h, end, ret_why)
				       : finish_response(h, st, end, ret_why);

	return r < 0 ? r : connection(&h->head, ret_why);
}
