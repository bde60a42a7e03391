/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers that the gateway makes itself: a JSON object that says what went wrong and what to do.
 * (The broker answers requests that the policy refuses.) */

#include "base/buf.h"
#include "base/str.h"
#include <stdint.h>

struct conn;
struct http_head;

struct answer {
	uint16_t status;
	const char *code;    /* "error" in the object, constant */
	const char *message; /* constant: what went wrong, and what to do */
	struct str detail;   /* raw bytes, shown escaped; may be empty */
	struct str connect;  /* CONNECT: the host that was asked for, raw bytes; else empty */
	uint16_t port;       /* CONNECT: its port, 0 if it named none */
	bool close;          /* Connection: close */
	bool http10;         /* an HTTP/1.0 client: say so if the connection is kept */
	bool to_head;        /* the request was HEAD: no body */
};

/* All of them have close set. */
extern const struct answer answer_too_slow, answer_no_response, answer_full, answer_bad_response,
	answer_failed, answer_limit;

#define ANSWER_BODY_MAX 8192 /* size that the buffer for the body must allow */

/* For callers that frame the message themselves: fill head, including the length of the body, and
 * append the body to body. Return 0 or -errno. */
_warn_unused_ int answer_make(struct http_head *head, struct buf *body, const struct answer *a);
/* HTTP/1: append the answer to the connection's output. Close the connection if memory is out. */
void answer_write(struct conn *c, const struct answer *a);
/* To a client of SSH: the end of the session, with the reason that it shows. At most
 * ANSWER_SSH_MAX bytes of printable ASCII. Return 0 or -errno. */
#define ANSWER_SSH_MAX 2048
_warn_unused_ int answer_ssh(struct buf *out, struct str why);
