/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers that the gateway gives by itself: a JSON object that says what went wrong and what to do.
 * (What policy refuses is answered by the broker.) */

#include "base/str.h"
#include <stdint.h>

struct conn;

struct answer {
	uint16_t status;
	const char *code;    /* "error" in the object, constant */
	const char *message; /* constant: what, and what to do */
	struct str detail;   /* raw bytes, shown escaped; may be empty */
	bool close;          /* Connection: close */
	bool http10;         /* the client has to be told that the connection goes on */
	bool to_head;        /* the request was HEAD: no body */
};

/* Adds it to the connection's output; on lack of memory the connection is closed. */
void answer_write(struct conn *c, const struct answer *a);
