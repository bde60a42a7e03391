/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body.h"

#include <errno.h>

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
		b->taken += ret_data->n;
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
	b->taken += n;
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
