/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the HTTP/1 fuzz targets share. */

#include "http/h1.h"
#include "http/h1_write.h"

static inline void require(bool cond)
{
	if (!cond)
		abort();
}

/* Parse `in` cut into pieces of `step` bytes (0: whole), each from an exact copy. */
static inline enum h1_result parse_cut(
	struct h1_parser *p, const uint8_t *data, size_t size, size_t step, size_t *ret_used)
{
	enum h1_result r = H1_MORE;
	size_t at = 0;

	while (r == H1_MORE && at < size) {
		size_t n = step && step < size - at ? step : size - at, used = SIZE_MAX;
		char *piece = malloc(n);

		require(piece != NULL);
		memcpy(piece, data + at, n);
		r = h1_parse(p, str_make(piece, n), &used);
		free(piece);
		require(used <= n && (r != H1_MORE || used == n));
		at += used;
	}
	*ret_used = at;
	return r;
}

static inline void same_fields(const struct http_fields *a, const struct http_fields *b)
{
	require(a->n == b->n);
	for (unsigned i = 0; i < a->n; i++) {
		require(str_eq(http_fields_name(a, i), http_fields_name(b, i)));
		require(str_eq(http_fields_value(a, i), http_fields_value(b, i)));
		require(a->v[i].id == b->v[i].id && a->v[i].hop == b->v[i].hop);
	}
}

/* Everything but flags and fields. */
static inline void same_message(const struct http_head *a, const struct http_head *b)
{
	require(a->is_request == b->is_request && a->status == b->status && a->port == b->port);
	require(str_eq(http_head_method(a), http_head_method(b)));
	require(str_eq(http_head_host(a), http_head_host(b)));
	require(str_eq(http_head_target(a), http_head_target(b)));
	require(a->body == b->body && a->content_length == b->content_length);
}

static inline void same_head(const struct http_head *a, const struct http_head *b)
{
	same_message(a, b);
	require(a->version == b->version && a->flags == b->flags);
	require(str_eq(http_head_scheme(a), http_head_scheme(b)));
	require(str_eq(http_head_reason(a), http_head_reason(b)));
	same_fields(&a->fields, &b->fields);
}
