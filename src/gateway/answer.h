/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers that the gateway gives by itself: a JSON object that says what went wrong and what to do.
 * (What policy refuses is answered by the broker.) */

#include "base/buf.h"
#include "base/str.h"
#include <stdint.h>

struct conn;
struct http_head;

struct answer {
	uint16_t status;
	const char *code;    /* "error" in the object, constant */
	const char *message; /* constant: what, and what to do */
	struct str detail;   /* raw bytes, shown escaped; may be empty */
	bool close;          /* Connection: close */
	bool http10;         /* the client has to be told that the connection goes on */
	bool to_head;        /* the request was HEAD: no body */
};

/* All of them close. */
extern const struct answer answer_too_slow, answer_no_response, answer_full, answer_bad_response,
	answer_failed, answer_limit;

#define ANSWER_BODY_MAX 8192 /* what the body's buffer has to take */

/* For whoever frames it by itself: begins head, with the length of the body, and appends that to
 * body. Returns 0 or -errno. */
_warn_unused_ int answer_make(struct http_head *head, struct buf *body, const struct answer *a);
/* HTTP/1: adds it to the connection's output; on lack of memory the connection is closed. */
void answer_write(struct conn *c, const struct answer *a);
