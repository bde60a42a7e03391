/* SPDX-License-Identifier: Apache-2.0 */
#include "http/msg.h"

#include "base/utf8.h"
#include "http/valid.h"

#include <errno.h>

/* Theory of operation: all bytes of a head lie in one buffer that only grows until it is cleared.
 * Fields and the parts of the first line are offsets into it, so they survive its growth; a value
 * that is replaced stays behind as garbage, which HTTP_STORE_MAX bounds. */

#define KEEP_BYTES (16 * 1024) /* memory that is worth keeping for the next message */
#define FIRST_BYTES 1024
#define FIRST_FIELDS 32

struct known_name {
	struct str name;
	enum http_field_id id;
};

static const struct known_name known_names[] = {
	{{"authorization", 13}, HTTP_F_AUTHORIZATION},
	{{"connection", 10}, HTTP_F_CONNECTION},
	{{"content-length", 14}, HTTP_F_CONTENT_LENGTH},
	{{"cookie", 6}, HTTP_F_COOKIE},
	{{"date", 4}, HTTP_F_DATE},
	{{"expect", 6}, HTTP_F_EXPECT},
	{{"host", 4}, HTTP_F_HOST},
	{{"http2-settings", 14}, HTTP_F_HTTP2_SETTINGS},
	{{"keep-alive", 10}, HTTP_F_KEEP_ALIVE},
	{{"proxy-authenticate", 18}, HTTP_F_PROXY_AUTH},
	{{"proxy-authorization", 19}, HTTP_F_PROXY_AUTH},
	{{"proxy-connection", 16}, HTTP_F_PROXY_CONNECTION},
	{{"set-cookie", 10}, HTTP_F_COOKIE},
	{{"te", 2}, HTTP_F_TE},
	{{"trailer", 7}, HTTP_F_TRAILER},
	{{"transfer-encoding", 17}, HTTP_F_TRANSFER_ENCODING},
	{{"upgrade", 7}, HTTP_F_UPGRADE},
};

enum http_field_id http_field_id(struct str name)
{
	char first = name.n ? (char)(name.p[0] | 0x20) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(known_names); i++)
		if (known_names[i].name.p[0] == first && str_ieq(name, known_names[i].name))
			return known_names[i].id;
	if (first == 'c' && name.n > 8 && str_ieq(str_prefix(name, 8), STR("content-")))
		return HTTP_F_CONTENT_OTHER;
	if (first == 'x' && name.n > 6 && str_ieq(str_prefix(name, 6), STR("x-amz-")))
		return HTTP_F_X_AMZ;
	return HTTP_F_OTHER;
}

/* Compare names with '-' and '_' as the same. */
static bool is_named(struct str name, struct str want)
{
	if (name.n != want.n)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i] == '_' ? '-' : str_lower_char(name.p[i]);

		if (c != want.p[i])
			return false;
	}
	return true;
}

enum http_override http_field_overrides(struct str name)
{
	static const struct {
		struct str name;
		enum http_override what;
	} overrides[] = {
		{{"x-http-method", 13}, HTTP_OVERRIDES_METHOD},
		{{"x-http-method-override", 22}, HTTP_OVERRIDES_METHOD},
		{{"x-method-override", 17}, HTTP_OVERRIDES_METHOD},
		{{"x-original-url", 14}, HTTP_OVERRIDES_PATH},
		{{"x-rewrite-url", 13}, HTTP_OVERRIDES_PATH},
	};

	if (name.n == 0 || str_lower_char(name.p[0]) != 'x')
		return HTTP_OVERRIDES_NOTHING;
	for (size_t i = 0; i < ARRAY_SIZE(overrides); i++)
		if (is_named(name, overrides[i].name))
			return overrides[i].what;
	return HTTP_OVERRIDES_NOTHING;
}

/* RFC 9110 7.6.1, and other fields that are for one hop only. */
static bool is_hop_id(unsigned id)
{
	return id == HTTP_F_CONNECTION || id == HTTP_F_KEEP_ALIVE ||
	       id == HTTP_F_PROXY_CONNECTION || id == HTTP_F_TE || id == HTTP_F_TRANSFER_ENCODING ||
	       id == HTTP_F_UPGRADE || id == HTTP_F_HTTP2_SETTINGS;
}

bool http_may_nominate(struct str name)
{
	enum http_field_id id = http_field_id(name);

	return id == HTTP_F_OTHER || (is_hop_id(id) && id != HTTP_F_TRANSFER_ENCODING);
}

void http_fields_done(struct http_fields *f)
{
	buf_done(&f->text);
	free(f->v);
	f->v = NULL;
	f->n = f->cap = 0;
}

void http_fields_clear(struct http_fields *f)
{
	f->n = 0;
	if (f->text.cap > KEEP_BYTES)
		buf_done(&f->text);
	else
		buf_clear(&f->text);
}

int http_fields_find(const struct http_fields *f, struct str name, unsigned from)
{
	for (unsigned i = from; i < f->n; i++)
		if (str_ieq(http_fields_name(f, i), name))
			return (int)i;
	return -1;
}

int http_fields_find_id(const struct http_fields *f, enum http_field_id id, unsigned from)
{
	for (unsigned i = from; i < f->n; i++)
		if (f->v[i].id == id)
			return (int)i;
	return -1;
}

struct str http_fields_get(const struct http_fields *f, struct str name)
{
	int i = http_fields_find(f, name, 0);

	return i < 0 ? STR_NULL : http_fields_value(f, (unsigned)i);
}

unsigned http_fields_count(const struct http_fields *f, struct str name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < f->n; i++)
		count += str_ieq(http_fields_name(f, i), name);
	return count;
}

int http_fields_push(struct http_fields *f, struct http_field field)
{
	if (f->n == f->cap) {
		unsigned cap = f->cap ? f->cap * 2 : FIRST_FIELDS;
		struct http_field *v;

		if (f->n >= HTTP_FIELDS_MAX)
			return -E2BIG;
		v = reallocarray(f->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		f->v = v;
		f->cap = cap;
	}
	field.id = (uint8_t)http_field_id(str_make(f->text.mem + field.name, field.name_len));
	field.hop = is_hop_id(field.id);
	f->v[f->n++] = field;
	return 0;
}

/* Copies s, which may lie in b itself, to the end of b. */
static int store(struct buf *b, struct str s, uint32_t *ret_at)
{
	bool inside = s.n && b->mem && s.p >= b->mem && s.p < b->mem + b->tail;
	size_t offset = inside ? (size_t)(s.p - b->mem) : 0;
	char *at;
	int r;

	if (s.n > buf_room(b))
		return -E2BIG;
	r = buf_reserve(b, b->cap ? s.n : MAX(s.n, (size_t)FIRST_BYTES), &at);
	if (r < 0)
		return r;
	if (s.n)
		memcpy(at, inside ? b->mem + offset : s.p, s.n);
	*ret_at = (uint32_t)b->tail;
	buf_commit(b, s.n);
	return 0;
}

int http_fields_add(struct http_fields *f, struct str name, struct str value)
{
	struct http_field field = {.name_len = (uint16_t)name.n, .value_len = (uint32_t)value.n};
	size_t before = f->text.tail, value_offset = 0;
	bool inside = value.n && f->text.mem && value.p >= f->text.mem &&
		      value.p < f->text.mem + f->text.tail;
	int r;

	if (!http_is_field_name(name) || !http_is_field_value(value))
		return -EINVAL;
	if (inside)
		value_offset = (size_t)(value.p - f->text.mem);
	r = store(&f->text, name, &field.name);
	if (r < 0)
		return r;
	if (inside)
		value.p = f->text.mem + value_offset;
	r = store(&f->text, value, &field.value);
	if (r >= 0)
		r = http_fields_push(f, field);
	if (r < 0)
		f->text.tail = before;
	return r;
}

int http_fields_set_at(struct http_fields *f, unsigned i, struct str value)
{
	int r;

	if (!http_is_field_value(value))
		return -EINVAL;
	r = store(&f->text, value, &f->v[i].value);
	if (r < 0)
		return r;
	f->v[i].value_len = (uint32_t)value.n;
	return 0;
}

int http_fields_set(struct http_fields *f, struct str name, struct str value)
{
	int first = http_fields_find(f, name, 0), other, r;

	if (first < 0)
		return http_fields_add(f, name, value);
	/* name may be a view into the storage, which may move: use the field's own name below. */
	r = http_fields_set_at(f, (unsigned)first, value);
	if (r < 0)
		return r;
	name = http_fields_name(f, (unsigned)first);
	while ((other = http_fields_find(f, name, (unsigned)first + 1)) >= 0)
		http_fields_remove_at(f, (unsigned)other);
	return 0;
}

int http_fields_copy(struct http_fields *f, const struct http_fields *from)
{
	unsigned before_n = f->n;
	size_t before = f->text.tail;

	for (unsigned i = 0; i < from->n; i++) {
		int r;

		if (from->v[i].hop)
			continue;
		r = http_fields_add(f, http_fields_name(from, i), http_fields_value(from, i));
		if (r < 0) {
			f->n = before_n;
			f->text.tail = before;
			return r;
		}
	}
	return 0;
}

bool http_fields_fit(const struct http_fields *f, size_t max)
{
	size_t total = 0;

	for (unsigned i = 0; i < f->n; i++) {
		size_t line = (size_t)f->v[i].name_len + strlen(": ") + f->v[i].value_len;

		if (line > HTTP_LINE_MAX)
			return false;
		total += line + strlen("\r\n");
	}
	return total <= max;
}

unsigned http_fields_remove(struct http_fields *f, struct str name)
{
	unsigned kept = 0, removed;

	for (unsigned i = 0; i < f->n; i++)
		if (!str_ieq(http_fields_name(f, i), name))
			f->v[kept++] = f->v[i];
	removed = f->n - kept;
	f->n = kept;
	return removed;
}

void http_fields_remove_at(struct http_fields *f, unsigned i)
{
	f->n--;
	memmove(f->v + i, f->v + i + 1, (f->n - i) * sizeof(*f->v));
}

/* Reset everything but the fields and their memory. */
static void reset(struct http_head *h)
{
	struct http_fields fields = h->fields;

	*h = (struct http_head){.fields = fields};
}

void http_head_done(struct http_head *h)
{
	http_fields_done(&h->fields);
	reset(h);
}

void http_head_clear(struct http_head *h)
{
	http_fields_clear(&h->fields);
	reset(h);
}

static int store_span(struct http_head *h, struct str s, struct http_span *ret)
{
	uint32_t at;
	int r = store(&h->fields.text, s, &at);

	if (r < 0)
		return r;
	*ret = (struct http_span){.at = at, .len = (uint32_t)s.n};
	return 0;
}

int http_head_set_request(struct http_head *h, struct str method, struct str scheme,
	struct str host, uint16_t port, struct str target)
{
	int r;

	if (!http_is_method(method) || (scheme.n && !http_is_token(scheme)) || !http_is_host(host))
		return -EINVAL;
	http_head_clear(h);
	h->is_request = true;
	h->version = HTTP_11;
	h->flags = HTTP_KEEP_ALIVE;
	h->port = port;
	if (str_eq(method, STR("CONNECT")))
		h->flags |= HTTP_CONNECT;
	if (str_eq(method, STR("TRACE")))
		h->flags |= HTTP_TRACE;
	r = store_span(h, method, &h->s_method);
	if (r >= 0)
		r = store_span(h, scheme, &h->s_scheme);
	if (r >= 0)
		r = store_span(h, host, &h->s_host);
	if (r >= 0)
		r = http_head_set_target(h, target);
	return r;
}

int http_head_set_response(struct http_head *h, unsigned status, struct str reason)
{
	if (!http_is_status(status) || !http_is_reason(reason))
		return -EINVAL;
	http_head_clear(h);
	h->version = HTTP_11;
	h->flags = HTTP_KEEP_ALIVE;
	h->status = (uint16_t)status;
	return store_span(h, reason.n ? reason : str_from(http_status_text(status)), &h->s_reason);
}

void http_head_set_body(struct http_head *h, enum http_framing body, uint64_t length)
{
	h->flags &= ~(unsigned)HTTP_HAS_LENGTH;
	h->body = body;
	h->content_length = 0;
	if (body == HTTP_BODY_LENGTH) {
		h->flags |= HTTP_HAS_LENGTH;
		h->content_length = length;
		if (length == 0)
			h->body = HTTP_BODY_NONE;
	}
}

int http_head_set_target(struct http_head *h, struct str target)
{
	return http_is_target(target) ? store_span(h, target, &h->s_target) : -EINVAL;
}

int http_head_encode_query(struct http_head *h)
{
	struct buf *text = &h->fields.text;
	struct str target = http_head_target(h), query;
	size_t from = (size_t)(target.p - text->mem), path = str_chr(target, '?'), at = text->tail;
	unsigned beyond = 0;
	char *to;
	int r;

	query = str_from_index(target, path);
	for (size_t i = 0; i < query.n; i++)
		beyond += (unsigned char)query.p[i] >= 0x80;
	if (beyond == 0)
		return 0;
	if (!utf8_is_valid(query))
		return -EINVAL;
	r = buf_reserve(text, target.n + 2UL * beyond, &to);
	if (r < 0)
		return r;
	for (size_t i = 0; i < target.n; i++) {
		unsigned char c = (unsigned char)text->mem[from + i];

		if (i < path || c < 0x80) {
			*to++ = (char)c;
			continue;
		}
		*to++ = '%';
		*to++ = "0123456789ABCDEF"[c >> 4];
		*to++ = "0123456789ABCDEF"[c & 15];
	}
	buf_commit(text, target.n + 2UL * beyond);
	h->s_target =
		(struct http_span){.at = (uint32_t)at, .len = (uint32_t)(target.n + 2UL * beyond)};
	return 0;
}

void http_head_strip(struct http_head *h)
{
	struct http_fields *f = &h->fields;
	unsigned kept = 0;

	for (unsigned i = 0; i < f->n; i++)
		if (http_fields_is_end_to_end(f, i))
			f->v[kept++] = f->v[i];
	f->n = kept;
}
