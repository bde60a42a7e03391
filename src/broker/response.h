/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pass an answer of any protocol to the gateway. h, fields and bytes are changed in place. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>

struct http_fields;
struct http_head;
struct stream;

/* Return how many body bytes may be passed now. If 0, resume() is called when there are more. */
size_t response_room(const struct stream *s);
/* Return false if the exchange is over (it was refused instead). */
_warn_unused_ bool response_interim(struct stream *s, struct http_head *h);
_warn_unused_ bool response_head(struct stream *s, struct http_head *h);
_warn_unused_ bool response_data(struct stream *s, struct str bytes);
/* Call this before stream_finish(). The connection may be released in between. */
_warn_unused_ bool response_end(struct stream *s, struct http_fields *trailers);
/* Go on with s after the gateway takes more again. */
void response_resume(struct stream *s);
/* For filters: return how many bytes the gateway takes now; count n bytes against its window. */
size_t response_takes(const struct stream *s);
void response_count(struct stream *s, size_t n);
/* Called after the last filter: send a piece, or the end. */
_warn_unused_ bool response_send(struct stream *s, struct str bytes);
_warn_unused_ bool response_close(struct stream *s, struct http_fields *trailers);
/* End the exchange: the response is malformed. */
void response_malformed(struct stream *s, const char *why);
/* End the exchange: the connection ended before the response did. */
void response_lost(struct stream *s, const char *why);
