/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A request's body on its way to the origin. */

#include "base/buf.h"
#include "base/err.h"
#include "http/msg.h"

struct stream;

/* What comes from the gateway. Refuses, or resets, if it cannot be taken. */
void request_body_add(struct stream *s, struct str bytes);
void request_body_end(struct stream *s);
/* What waits for the origin now; valid until the next call. */
struct str request_body(const struct stream *s);
/* Whether nothing comes behind that. */
bool request_body_complete(const struct stream *s);
/* n bytes of it were taken. */
void request_body_taken(struct stream *s, size_t n);
/* An answer has begun: the request is never sent again, so nothing of it is kept. */
void request_body_commit(struct stream *s);
/* A second try: from the start. */
void request_body_rewind(struct stream *s);
/* The rest of it is nobody's. */
void request_body_drop(struct stream *s);
/* From before the first byte on: collects at most max bytes, see stream.whole. */
void request_body_collect(struct stream *s, size_t max);
/* All of a collected body becomes another one, which is taken. 0; -ENOMEM if there is too much
 * of such bodies, with everything as it was. */
_warn_unused_ int request_body_replace(struct stream *s, struct buf *body);
