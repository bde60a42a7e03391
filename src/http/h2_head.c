/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the decoded fields become a head of the message model, by the rules of RFC
 * 9113 8.2 and 8.3. The library has checked most of these rules (pseudo-fields, their order, lower
 * case, fields that belong to a connection). What decides where a message goes, where it
 * ends, or what bytes it may hold is checked here again, by the same functions as for HTTP/1. */
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

static int bad(struct h2 *h, const char *why)
{
	h->why = why;
	return -EPROTO;
}

static int too_large(struct h2 *h, int r)
{
	return r == -E2BIG ? bad(h, "the head is too large") : r;
}

static int count(struct h2 *h, struct str name, struct str value, size_t max)
{
	h->head_bytes += name.n + value.n + FIELD_COST;
	return h->head_bytes > max ? bad(h, "the head is too large") : 0;
}

/* Copy s to the head's storage, and set ret to its place there. */
static int keep(struct h2 *h, struct str s, struct http_span *ret)
{
	size_t at = h->head.fields.text.tail;
	int r = buf_add_str(&h->head.fields.text, s);

	if (r < 0)
		return too_large(h, r);
	*ret = (struct http_span){.at = (uint32_t)at, .len = (uint32_t)s.n};
	return 0;
}

static int method(struct h2 *h, struct str value)
{
	if (!http_is_method(value))
		return bad(h, "malformed :method");
	if (str_eq(value, STR("CONNECT")))
		h->head.flags |= HTTP_CONNECT;
	if (str_eq(value, STR("TRACE")))
		h->head.flags |= HTTP_TRACE;
	return keep(h, value, &h->head.s_method);
}

static int status(struct h2 *h, struct str value)
{
	unsigned n;

	if (http_parse_status(value, &n) < 0)
		return bad(h, "malformed :status");
	if (n == 101) /* RFC 9113 8.6 */
		return bad(h, "a :status that may not be");
	h->head.status = (uint16_t)n;
	return keep(h, str_from(http_status_text(n)), &h->head.s_reason);
}

static int path(struct h2 *h, struct str value)
{
	int r = keep(h, value, &h->head.s_target);

	if (r == 0)
		r = http_head_encode_query(&h->head);
	if (r == -EINVAL || (r == 0 && !http_is_target(http_head_target(&h->head))))
		return bad(h, "malformed :path");
	return too_large(h, r);
}

static int pseudo(struct h2 *h, bool request, struct str name, struct str value)
{
	if (!request)
		return str_eq(name, STR(":status")) ? status(h, value)
						    : bad(h, "unknown pseudo-field");
	if (str_eq(name, STR(":method")))
		return method(h, value);
	if (str_eq(name, STR(":scheme")))
		return http_is_token(value) ? keep(h, value, &h->head.s_scheme)
					    : bad(h, "malformed :scheme");
	if (str_eq(name, STR(":path")))
		return path(h, value);
	if (str_eq(name, STR(":authority")))
		return keep(h, value, &h->authority);
	return bad(h, "unknown pseudo-field");
}

/* RFC 9113 8.2.3: join the cookie fields into one. */
static int crumb(struct h2 *h, struct str value)
{
	int r = 0;

	if (++h->crumbs > HTTP_FIELDS_MAX || !http_is_field_value(value))
		return bad(h, "malformed cookie");
	if (buf_len(&h->cookie) > 0)
		r = buf_add_str(&h->cookie, STR("; "));
	if (r == 0)
		r = buf_add_str(&h->cookie, value);
	return too_large(h, r);
}

static int h2_add_field(struct h2 *h, struct http_fields *f, struct str name, struct str value)
{
	int r = http_fields_add(f, name, value);

	return r == -EINVAL ? bad(h, "malformed field") : too_large(h, r);
}

int h2_head_add(struct h2 *h, bool request, struct str name, struct str value)
{
	int r = count(h, name, value, HTTP_HEAD_MAX);

	if (r < 0)
		return r;
	if (name.n > 0 && name.p[0] == ':')
		return pseudo(h, request, name, value);
	if (request && str_eq(name, STR("cookie")))
		return crumb(h, value);
	return h2_add_field(h, &h->head.fields, name, value);
}

int h2_trailer_add(struct h2 *h, struct str name, struct str value)
{
	int r = count(h, name, value, HTTP_TRAILERS_MAX);

	if (r < 0)
		return r;
	if (name.n > 0 && name.p[0] == ':')
		return bad(h, "a pseudo-field in the trailers");
	if (!http_is_trailer_name(name))
		return 0;
	return h2_add_field(h, &h->trailers, name, value);
}

/* The port, or the default port of the scheme if there is none. */
static uint16_t real_port(const struct http_head *h, uint16_t port)
{
	if (port)
		return port;
	return str_ieq(http_head_scheme(h), STR("https")) ? 443 : 80;
}

static int set_host(struct h2 *h, struct str authority)
{
	struct str name;

	if (http_parse_authority(authority, &name, &h->head.port) < 0)
		return bad(h, "malformed :authority or Host");
	h->head.s_host = (struct http_span){
		.at = (uint32_t)(name.p - h->head.fields.text.mem), .len = (uint32_t)name.n};
	return 0;
}

/* RFC 9113 8.3.1: Host and :authority must name the same host. */
static int h2_head_host(struct h2 *h)
{
	struct http_head *head = &h->head;
	const struct http_fields *f = &head->fields;
	struct str name;
	uint16_t port;
	int i = http_fields_find_id(f, HTTP_F_HOST, 0), r;

	if (h->authority.len == 0 && i < 0)
		return bad(h, "neither :authority nor Host");
	r = set_host(h, h->authority.len > 0 ? http_head_span(head, h->authority)
					     : http_fields_value(f, (unsigned)i));
	for (; r == 0 && i >= 0; i = http_fields_find_id(f, HTTP_F_HOST, (unsigned)i + 1)) {
		if (http_parse_authority(http_fields_value(f, (unsigned)i), &name, &port) < 0 ||
			!str_ieq(name, http_head_host(head)) ||
			real_port(head, port) != real_port(head, head->port))
			r = bad(h, "Host is not :authority");
	}
	return r;
}

static int h2_head_length(struct h2 *h, bool end)
{
	int i = http_fields_find_id(&h->head.fields, HTTP_F_CONTENT_LENGTH, 0);
	uint64_t n;

	http_head_set_body(&h->head, end ? HTTP_BODY_NONE : HTTP_BODY_CHUNKED, 0);
	if (i < 0)
		return 0;
	if (http_parse_length(http_fields_value(&h->head.fields, (unsigned)i), &n) < 0 ||
		http_fields_find_id(&h->head.fields, HTTP_F_CONTENT_LENGTH, (unsigned)i + 1) >= 0)
		return bad(h, "malformed Content-Length");
	http_head_set_body(&h->head, HTTP_BODY_LENGTH, n);
	if (end)
		h->head.body = HTTP_BODY_NONE;
	return 0;
}

/* Check the fields for one hop only; none but "te: trailers" is allowed (RFC 9113 8.2.2). */
static int h2_head_connection(struct h2 *h)
{
	for (unsigned i = 0; i < h->head.fields.n; i++) {
		const struct http_field *f = &h->head.fields.v[i];
		struct str value = http_fields_value(&h->head.fields, i);

		if (f->id == HTTP_F_EXPECT) {
			if (!str_ieq(value, STR("100-continue")))
				h->head.flags |= HTTP_EXPECT_OTHER;
			else if (h->head.body != HTTP_BODY_NONE)
				h->head.flags |= HTTP_EXPECT_CONTINUE;
		}
		if (!f->hop || f->id == HTTP_F_HTTP2_SETTINGS)
			continue;
		if (!h->head.is_request || f->id != HTTP_F_TE || !str_ieq(value, STR("trailers")))
			return bad(h, "a field of a connection");
		h->head.flags |= HTTP_TE_TRAILERS;
	}
	return 0;
}

static int h2_head_finish_request(struct h2 *h, bool end)
{
	struct http_head *head = &h->head;
	int r = 0;

	head->is_request = true;
	if (buf_len(&h->cookie) > 0)
		r = h2_add_field(h, &head->fields, STR("cookie"), buf_str(&h->cookie));
	if (r == 0)
		r = h2_head_host(h);
	if (r < 0)
		return r;
	if (head->flags & HTTP_CONNECT)
		head->s_target = h->authority;
	else if (head->s_method.len == 0 || head->s_scheme.len == 0 || head->s_target.len == 0)
		return bad(h, "a pseudo-field is missing");
	else if (str_eq(http_head_target(head), STR("*")) &&
		 !str_eq(http_head_method(head), STR("OPTIONS")))
		return bad(h, "malformed :path");
	return h2_head_length(h, end);
}

static int h2_head_finish_response(struct h2 *h, struct h2_stream *st, bool end)
{
	struct http_head *head = &h->head;
	int r;

	if (head->status == 0)
		return bad(h, "no :status");
	if (head->status < 200 && (end || ++st->interim > HTTP_INTERIM_MAX))
		return bad(h, "interim responses without end");
	r = h2_head_length(h, end);
	if (st->to_head)
		head->flags |= HTTP_TO_HEAD;
	if (head->status < 200 || head->status == 204) /* RFC 9110 8.6 */
		http_head_set_body(head, HTTP_BODY_NONE, 0);
	else if (head->status == 304 || st->to_head)
		head->body = HTTP_BODY_NONE;
	return r;
}

int h2_head_finish(struct h2 *h, struct h2_stream *st, bool end)
{
	int r = h->c.role == H2_SERVER ? h2_head_finish_request(h, end)
				       : h2_head_finish_response(h, st, end);

	return r < 0 ? r : h2_head_connection(h);
}
