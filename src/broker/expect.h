/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Expect: 100-continue (RFC 9110 10.1.1), from the room to the origin and back. */

#include "loop/loop.h"

#include <stdbool.h>

struct http_head;
struct stream;

/* What a stream knows of it. */
struct expectation {
	bool asked;     /* the room waits for 100 before it sends its body */
	bool settled;   /* it has got its 100, or sends the body without */
	bool passed_on; /* the origin was asked as well */
	bool said_here; /* the broker has said 100, as the origin did not */
	bool heard;     /* the origin has said 100 */
	struct loop_timer patience;
};

/* Tell the room that its body will be taken, if it waits for that. */
void expect_continue(struct stream *s);
/* The request is about to be sent. If the origin is asked (passed_on), the room is told to go on
 * when the origin says so, or after a while; else at once. */
void expect_begin(struct stream *s);
/* Bytes of the body have come, or its end. */
void expect_body(struct stream *s);
/* The origin has said 100. */
void expect_interim(struct stream *s);
/* The head of its answer has come. */
void expect_answered(struct stream *s, const struct http_head *h);
void expect_done(struct stream *s);
