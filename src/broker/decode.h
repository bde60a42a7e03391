/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Content codings of answers. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>

struct decoding;
struct http_fields;
struct http_head;
struct stream;

/* Sets s->decoding where h has any that can be taken off, and changes h. False: it was refused. */
_warn_unused_ bool decoding_begin(struct stream *s, struct http_head *h);
_warn_unused_ bool decoding_data(struct stream *s, struct str in);
/* Like response_end(); the rest, and the end, may come later (decoding_waits). */
_warn_unused_ bool decoding_end(struct stream *s, struct http_fields *trailers);
bool decoding_waits(const struct stream *s);
void decoding_free(struct decoding *d);
/* The gateway takes more of s again. */
void response_resume(struct stream *s);
