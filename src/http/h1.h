/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict, incremental HTTP/1.0 and 1.1 head parser (RFC 9112). Bytes go in as they arrive, cut
 * anywhere; the outcome never depends on where they were cut. It refuses and never repairs; the few
 * things that it tolerates, most of them only from servers, are listed in h1.c.
 *
 *	struct http_head head = HTTP_HEAD_INIT;
 *	struct h1_parser p;
 *
 *	h1_parser_request(&p, &head);
 *	switch (h1_parse(&p, input, &used)) {
 *	case H1_MORE:	used == input.n; come back with what follows
 *	case H1_DONE:	head is filled; the body starts at input.p + used (http/body.h)
 *	case H1_ERROR:	answer h1_error_status(p.error), then close
 *	}
 */

#include "http/msg.h"

enum h1_result { H1_MORE, H1_DONE, H1_ERROR };

enum h1_error {
#define H1_ERROR_DEF(name, status, text) H1_E_##name,
#include "http/h1_errors.def"
#undef H1_ERROR_DEF
};

/* Status to answer a request with (400, 414, 431, 501, 503, 505). If a response does not parse, the
 * client always gets a 502. */
unsigned h1_error_status(enum h1_error e);
/* Fixed English text for the log: "two Host fields". */
const char *h1_error_text(enum h1_error e);

/* For h1_parser_response(). */
enum {
	H1_TO_HEAD = 1 << 0,       /* the request was HEAD: no body follows */
	H1_UPGRADE_ASKED = 1 << 1, /* the request asked for an upgrade: 101 may come */
};

struct h1_parser {
	struct http_head *head; /* borrowed */
	enum h1_error error;    /* after H1_ERROR */
	unsigned opt;
	uint8_t state;
	bool is_request, skipped_line;
	unsigned interim; /* 1xx heads seen */
	size_t line;      /* where the unfinished line starts in the head's storage */
};

/* Make p ready for a request head; clear head, which is borrowed until the parse has ended. */
void h1_parser_request(struct h1_parser *p, struct http_head *head);
/* The same for the response to a request, opt: H1_TO_HEAD, H1_UPGRADE_ASKED. */
void h1_parser_response(struct h1_parser *p, struct http_head *head, unsigned opt);
/* After H1_DONE with a status of 1xx other than 101: clear head and make p ready for the next head.
 * If there were too many, the next h1_parse() fails. */
void h1_parser_next(struct h1_parser *p);

/* Take bytes up to the end of the head. *ret_used: bytes taken, all of in with H1_MORE. After
 * H1_DONE or H1_ERROR the parser must be made ready again. After H1_ERROR the head holds what was
 * understood so far (method, target, perhaps host): use it for a log line, escaped, and for nothing
 * else. */
enum h1_result h1_parse(struct h1_parser *p, struct str in, size_t *ret_used);
