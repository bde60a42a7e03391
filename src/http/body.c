/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body.h"

#include <errno.h>
#include <string.h>

void http_body_init(struct http_body *b, const struct http_head *head, struct http_fields *trailers)
{
	*b = (struct http_body){.framing = head->body};
	if (head->body == HTTP_BODY_LENGTH)
		b->left = head->content_length;
	if (trailers)
		http_fields_clear(trailers);
	if (head->body == HTTP_BODY_CHUNKED)
		chunked_init(&b->chunked, trailers, !head->is_request);
	b->ended = head->body == HTTP_BODY_NONE || (head->body == HTTP_BODY_LENGTH && !b->left);
}

void http_body_done(struct http_body *b)
{
	chunked_done(&b->chunked);
}

static enum http_body_result read_chunked(struct http_body *b, struct str *in, struct str *ret_data)
{
	switch (chunked_read(&b->chunked, in, ret_data)) {
	case CHUNKED_MORE:
		return HTTP_BODY_MORE;
	case CHUNKED_DATA:
		return HTTP_BODY_DATA;
	case CHUNKED_DONE:
		b->ended = true;
		return HTTP_BODY_DONE;
	case CHUNKED_ERROR:
		break;
	}
	return HTTP_BODY_BAD;
}

enum http_body_result http_body_read(struct http_body *b, struct str *in, struct str *ret_data)
{
	size_t n = in->n;

	if (b->ended)
		return HTTP_BODY_DONE;
	if (b->truncated)
		return HTTP_BODY_BAD;
	if (b->framing == HTTP_BODY_CHUNKED)
		return read_chunked(b, in, ret_data);
	if (n == 0)
		return HTTP_BODY_MORE;
	if (b->framing == HTTP_BODY_LENGTH) {
		n = (size_t)MIN((uint64_t)n, b->left);
		b->left -= n;
		b->ended = b->left == 0;
	}
	*ret_data = str_prefix(*in, n);
	*in = str_from_index(*in, n);
	return HTTP_BODY_DATA;
}

enum http_body_result http_body_read_all(struct http_body *b, struct str *in, struct str *ret_data)
{
	/* This much is worth passing on by itself, so a large chunk is hardly ever moved. */
	enum { ENOUGH = 16 * 1024 };

	*ret_data = STR_NULL;
	while (ret_data->n < ENOUGH) {
		struct str piece = STR_NULL;
		enum http_body_result r = http_body_read(b, in, &piece);

		if (r != HTTP_BODY_DATA)
			return r;
		if (ret_data->n == 0)
			ret_data->p = piece.p;
		else
			memmove((char *)(uintptr_t)ret_data->p + ret_data->n, piece.p, piece.n);
		ret_data->n += piece.n;
	}
	return HTTP_BODY_DATA;
}

int http_body_eof(struct http_body *b)
{
	if (b->framing == HTTP_BODY_CLOSE && !b->truncated)
		b->ended = true;
	if (b->ended)
		return 0;
	b->truncated = true;
	if (b->framing == HTTP_BODY_CHUNKED && b->chunked.error == CHUNKED_E_OK)
		b->chunked.error = CHUNKED_E_TRUNCATED;
	return -EPROTO;
}

bool http_body_is_done(const struct http_body *b)
{
	return b->ended;
}

const char *http_body_error(const struct http_body *b)
{
	if (b->framing == HTTP_BODY_CHUNKED)
		return chunked_error_text(&b->chunked);
	return b->truncated ? "connection ended within the body" : "no error";
}

bool http_is_grpc(const struct http_fields *f)
{
	struct str type = http_fields_get(f, STR("Content-Type")), grpc = STR("application/grpc");

	return str_ieq(str_prefix(type, grpc.n), grpc) &&
	       (type.n == grpc.n || type.p[grpc.n] != '-');
}

struct http_messages http_messages(const struct http_fields *f)
{
	struct str type = http_fields_get(f, STR("Content-Type"));
	const struct str grpc = STR("application/grpc"), connect = STR("application/connect+");

	return (struct http_messages){.there = str_ieq(str_prefix(type, grpc.n), grpc) ||
					       str_ieq(str_prefix(type, connect.n), connect)};
}

/* The known flags: compressed (gRPC), last message (Connect), trailers (gRPC-Web). */
static bool are_flags(char c)
{
	return ((unsigned char)c & ~0x83U) == 0;
}

bool http_messages_end(struct http_messages *m, struct str bytes)
{
	enum { HEAD = 5 };

	while (m->there && bytes.n > 0) {
		size_t n = 1;

		if (m->have == HEAD) {
			n = (size_t)MIN((uint64_t)bytes.n, m->left);
			m->left -= (uint32_t)n;
		} else if (m->have++ == 0) {
			m->there = are_flags(bytes.p[0]);
		} else {
			m->left = m->left << 8 | (unsigned char)bytes.p[0];
		}
		bytes = str_from_index(bytes, n);
		if (m->have == HEAD && m->left == 0)
			m->have = 0;
	}
	return m->there && m->have == 0;
}
