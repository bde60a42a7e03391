/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A request's body on its way to the origin. */

#include "base/buf.h"

struct stream;

/* Take bytes, or the end, from the gateway. s is refused or reset if they cannot be taken. */
void request_body_add(struct stream *s, struct str bytes);
void request_body_end(struct stream *s);
/* Return the bytes that wait for the origin; valid until the next call. */
struct str request_body(const struct stream *s);
/* Return whether nothing follows these bytes. */
bool request_body_complete(const struct stream *s);
/* The origin has taken n of these bytes. */
void request_body_taken(struct stream *s, size_t n);
/* The request is not sent again, as its answer has begun: drop the bytes that were taken. */
void request_body_commit(struct stream *s);
/* Start again at the first byte, for another try. */
void request_body_rewind(struct stream *s);
/* The whole answer has come: note if the origin has not got the whole body, of which no more is
 * sent. sent: what was taken has left. */
void request_body_answered(struct stream *s, bool sent);
/* Drop the body and what still comes of it. */
void request_body_drop(struct stream *s);
/* Collect the body, at most max bytes, see stream.whole. Call this before the first byte comes. */
void request_body_collect(struct stream *s, size_t max);
/* Replace a collected body by another one, which is taken. Return 0, or -ENOMEM with nothing
 * changed if all collected bodies together would get too large. */
_warn_unused_ int request_body_replace(struct stream *s, struct buf *body);
