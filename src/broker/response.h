/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From whatever protocol to the gateway. h, fields and bytes are changed in place. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>

struct http_fields;
struct http_head;
struct stream;

/* How many body bytes may be given now; 0: resume() tells when there are more. */
size_t response_room(const struct stream *s);
/* False if the exchange is over (it was refused instead). */
_warn_unused_ bool response_interim(struct stream *s, struct http_head *h);
_warn_unused_ bool response_head(struct stream *s, struct http_head *h);
_warn_unused_ bool response_data(struct stream *s, struct str bytes);
/* Before the stream is finished: its connection may be let go in between. */
_warn_unused_ bool response_end(struct stream *s, struct http_fields *trailers);
/* The gateway takes more of s again. */
void response_resume(struct stream *s);
/* For filters: what the gateway takes now; that n bytes count against its window from now on. */
size_t response_takes(const struct stream *s);
void response_count(struct stream *s, size_t n);
/* Behind the last filter: a piece, and the end. */
_warn_unused_ bool response_send(struct stream *s, struct str bytes);
_warn_unused_ bool response_close(struct stream *s, struct http_fields *trailers);
/* What came is not HTTP. */
void response_malformed(struct stream *s, const char *why);
/* The connection ended before the response did. */
void response_lost(struct stream *s, const char *why);
