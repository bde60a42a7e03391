/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_internal.h"
#include "http/valid.h"

#include <errno.h>

/* Theory of operation: the first line is split at its first two spaces, and each part is then
 * checked alone. Of the four forms of a request target (RFC 9112 3.2) the model keeps the path:
 * absolute form leaves scheme, host and port in the head, to be compared with Host later. */

static struct http_span span_of(const struct http_head *h, struct str s)
{
	return (struct http_span){.at = (uint32_t)(s.p - h->fields.text.mem), .len = (uint32_t)s.n};
}

/* Store an absolute-form target's path after the line, with slash in front of it. */
static enum h1_error add_target(struct http_head *h, struct str slash, struct str query)
{
	struct buf *text = &h->fields.text;
	size_t query_at = query.n ? (size_t)(query.p - text->mem) : 0, at = text->tail;
	char *room;

	if (buf_reserve(text, slash.n + query.n, &room) < 0)
		return H1_E_NO_MEMORY;
	memcpy(room, slash.p, slash.n);
	if (query.n)
		memcpy(room + slash.n, text->mem + query_at, query.n);
	buf_commit(text, slash.n + query.n);
	h->s_target = (struct http_span){.at = (uint32_t)at, .len = (uint32_t)(slash.n + query.n)};
	return H1_E_OK;
}

/* RFC 9112 3.2.2. */
static enum h1_error absolute_form(struct http_head *h, struct str target)
{
	struct str scheme, authority, host, path;
	size_t colon = str_chr(target, ':'), n;

	scheme = str_prefix(target, colon);
	if (!str_ieq(scheme, STR("http")) && !str_ieq(scheme, STR("https")))
		return H1_E_TARGET_FORM;
	authority = str_from_index(target, colon);
	if (!str_starts(authority, STR("://")))
		return H1_E_TARGET_FORM;
	authority = str_from_index(authority, 3);
	n = MIN(str_chr(authority, '/'), str_chr(authority, '?'));
	path = str_from_index(authority, n);
	if (http_parse_authority(str_prefix(authority, n), &host, &h->port) < 0)
		return H1_E_TARGET;
	h->flags |= HTTP_ABSOLUTE;
	h->s_scheme = span_of(h, scheme);
	h->s_host = span_of(h, host);
	h->s_target = span_of(h, path);
	if (path.n && path.p[0] == '/')
		return H1_E_OK;
	/* 3.2.4: OPTIONS without a path is about the server as a whole. */
	if (path.n == 0 && str_eq(http_head_method(h), STR("OPTIONS")))
		return add_target(h, STR("*"), path);
	return add_target(h, STR("/"), path);
}

/* RFC 9112 3.2.3. */
static enum h1_error authority_form(struct http_head *h, struct str target)
{
	struct str host;

	if (http_parse_authority(target, &host, &h->port) < 0 || h->port == 0)
		return H1_E_TARGET_FORM;
	h->s_host = span_of(h, host);
	return H1_E_OK;
}

static enum h1_error request_target(struct http_head *h, struct str target)
{
	int r;

	h->s_target = span_of(h, target);
	r = http_head_encode_query(h);
	if (r < 0)
		return r == -ENOMEM ? H1_E_NO_MEMORY : H1_E_TARGET;
	target = http_head_target(h);
	if (target.n > HTTP_TARGET_MAX)
		return H1_E_TARGET_TOO_LONG;
	if (http_span_class(target, HTTP_C_TARGET) < target.n)
		return H1_E_TARGET;
	if (h->flags & HTTP_CONNECT)
		return authority_form(h, target);
	if (target.p[0] == '/')
		return H1_E_OK;
	if (str_eq(target, STR("*")))
		return str_eq(http_head_method(h), STR("OPTIONS")) ? H1_E_OK : H1_E_TARGET_FORM;
	return absolute_form(h, target);
}

/* RFC 9112 2.3. */
static enum h1_error http_version(struct http_head *h, struct str s)
{
	if (s.n != 8 || !str_starts(s, STR("HTTP/")) || !str_is_digit(s.p[5]) || s.p[6] != '.' ||
		!str_is_digit(s.p[7]))
		return H1_E_REQUEST_LINE;
	if (s.p[5] != '1' || s.p[7] > '1')
		return H1_E_VERSION;
	h->version = s.p[7] == '1' ? HTTP_11 : HTTP_10;
	return H1_E_OK;
}

/* RFC 9112 3: request-line = method SP request-target SP HTTP-version */
enum h1_error h1_request_line(struct h1_parser *p, struct str line)
{
	struct http_head *h = p->head;
	struct str rest = line, method = str_next(&rest, ' '), target = str_next(&rest, ' ');
	enum h1_error e;

	if (!http_is_method(method))
		return H1_E_METHOD;
	h->s_method = span_of(h, method);
	if (str_eq(method, STR("PRI")) && str_eq(target, STR("*")) && str_eq(rest, STR("HTTP/2.0")))
		return H1_E_H2_PREFACE;
	if (str_eq(method, STR("CONNECT")))
		h->flags |= HTTP_CONNECT;
	if (str_eq(method, STR("TRACE")))
		h->flags |= HTTP_TRACE;
	if (target.n == 0)
		return H1_E_REQUEST_LINE;
	e = http_version(h, rest);
	return e == H1_E_OK ? request_target(h, target) : e;
}

/* RFC 9112 4: status-line = HTTP-version SP status-code SP [ reason-phrase ] */
enum h1_error h1_status_line(struct h1_parser *p, struct str line)
{
	struct http_head *h = p->head;
	struct str reason;
	unsigned status;

	if (line.n < 12 || line.p[8] != ' ' || http_version(h, str_prefix(line, 8)) != H1_E_OK ||
		http_parse_status(str_make(line.p + 9, 3), &status) < 0 ||
		(line.n > 12 && line.p[12] != ' '))
		return H1_E_STATUS_LINE;
	reason = str_from_index(line, 13);
	if (!http_is_reason(reason))
		return H1_E_STATUS_LINE;
	h->status = (uint16_t)status;
	h->s_reason = span_of(h, reason);
	return H1_E_OK;
}
