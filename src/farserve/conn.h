/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A connection of the service. Shared by conn.c and conn_far.c. */

#include "farserve/serve.h"

enum conn_state {
	CONN_HEAD,
	CONN_BODY,
	CONN_RUNS,    /* the code runs */
	CONN_WRITES,  /* an answer is on its way */
	CONN_LINGERS, /* until the client has read the answer; what it sends is dropped */
	CONN_OVER,    /* will be freed */
};

struct conn {
	struct conn *prev, *next;
	struct serve *serve;
	struct loop_io io;
	struct loop_timer timer;
	struct loop_job end;
	int fd;
	enum conn_state state;
	struct http_head head;
	struct h1_parser parser;
	struct http_body body;
	struct buf in, text, out; /* not yet read; the body; not yet written */
	size_t held;              /* of serve.output, until the answer is written */
	struct run *run;
	bool closes; /* after the answer */
};

/* It is over; it is freed later. */
void conn_end(struct conn *c);
/* Read and write again. */
void conn_on_io(struct loop_io *io, uint32_t events);
void conn_answer(struct conn *c, unsigned status, const char *type, struct str text);
void conn_answer_text(struct conn *c, unsigned status, const char *text);
void conn_answer_error(struct conn *c, unsigned status, const char *why);

/* --- conn_far.c --- */
/* Answer a request for a far room, whose head has come. */
void conn_route_far(struct conn *c, struct str method);
