/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A cassette: the requests of one sandbox and their answers, as the room saw them, in a file of
 * lines that only grows. cloche-state(5) has the format:
 *
 *	{"t":USEC,"e":N,"request":{"method":"POST","url":"https://h/p","headers":[["A","b"]]}}
 *	{"t":USEC,"e":N,"sent":"BASE64"}      a piece of the request's body
 *	{"t":USEC,"e":N,"sent_end":true}      with "trailers", if there were
 *	{"t":USEC,"e":N,"refused":{"status":403,"reason":"no-rule"}}
 *	{"t":USEC,"e":N,"response":{"status":200,"headers":[...]}}
 *	{"t":USEC,"e":N,"upgraded":true}      what follows is no HTTP, and is not kept
 *	{"t":USEC,"e":N,"data":"BASE64"}
 *	{"t":USEC,"e":N,"end":true}           with "trailers", or "error" if it broke off
 *	{"t":USEC,"e":N,"cut":true}           the rest of this exchange's bodies is not kept
 *	{"t":USEC,"cut":true}                 nothing more is kept
 *
 * Values of headers are bytes: a character from U+0000 to U+00FF stands for each.
 *
 * This file reads one that anybody may have written; write.h writes them. Loading goes through the
 * whole file once and keeps an index, heads and bodies are then read from the file. Nothing of what
 * is read has been checked for HTTP: whoever sends it does that. */

#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"

#define CASSETTE_SUFFIX ".net"

enum {
	CASSETTE_LINE_MAX = 2 << 20,   /* bytes of a line */
	CASSETTE_PIECE_MAX = 48 << 10, /* of a piece of a body */
	CASSETTE_METHOD_MAX = 16,
	CASSETTE_URL_MAX = 17 << 10,
	CASSETTE_HEADERS_MAX = 256,       /* of a head */
	CASSETTE_EXCHANGES_MAX = 1 << 18, /* of a file */
};

enum cassette_kind {
	CASSETTE_REQUEST,
	CASSETTE_SENT,
	CASSETTE_SENT_END,
	CASSETTE_REFUSED,
	CASSETTE_RESPONSE,
	CASSETTE_UPGRADED,
	CASSETTE_DATA,
	CASSETTE_END,
	CASSETTE_CUT,
};

/* One line, read. Everything is borrowed from doc and bytes. */
struct cassette_line {
	enum cassette_kind kind;
	uint64_t usec, number;  /* number 0: a cut of everything */
	struct str method, url; /* request */
	unsigned status;        /* refused, response */
	struct str reason;      /* refused */
	struct str error;       /* end; null: none */
	const json_t *headers;  /* request, response, trailers; NULL: none */
	struct str piece;       /* sent, data: decoded */
	json_t *doc;
	struct buf bytes, value; /* value: of the header read last */
};
#define CASSETTE_LINE_INIT                                                                         \
	((struct cassette_line){.bytes = BUF_INIT((size_t)CASSETTE_PIECE_MAX + 3),                 \
		.value = BUF_INIT((size_t)CASSETTE_LINE_MAX)})
void cassette_line_done(struct cassette_line *l);

/* Reads a line without its end into ret, which was initialised and may have been used. E_CORRUPT
 * says what is wrong. */
_warn_unused_ int cassette_line_read(
	struct cassette_line *ret, struct str text, struct cloche_err *err);
/* Whether it begins as our writer has it; *ret_rest is then what follows, from the next member on.
 */
bool cassette_line_begins(
	struct str text, struct str *ret_rest, uint64_t *ret_usec, uint64_t *ret_number);
/* The i-th header, from 0 on: name and value as bytes, valid until the next call for this line.
 * False behind the last, and without memory. */
bool cassette_header(
	struct cassette_line *l, size_t i, struct str *ret_name, struct str *ret_value);

/* A body in the file. */
struct cassette_body {
	uint64_t at, end; /* the lines that hold it lie between these, among others */
	uint64_t bytes;   /* that are kept */
	bool whole;       /* all of it is */
};

struct cassette_exchange {
	uint64_t number; /* rising */
	uint64_t usec;
	uint64_t ended_usec;                      /* 0: its answer has no end */
	uint64_t request_at;                      /* where the line begins */
	uint64_t refused_at, response_at, end_at; /* CASSETTE_NONE: there is none */
	struct cassette_body sent, received;
	uint16_t status; /* 0: no answer */
	bool refused, upgraded, cut;
	bool broken;                      /* the answer ended with an error */
	bool early;                       /* it was answered before all was sent */
	char asked[SHA256_HEX_MAX];       /* cassette_digest_request() */
	char sent_digest[SHA256_HEX_MAX]; /* of a body that is whole */
};
#define CASSETTE_NONE UINT64_MAX

struct cassette {
	int fd;                      /* borrowed */
	struct cassette_exchange *v; /* by number */
	size_t n;
	bool cut; /* what came after the last one was not kept */
};
#define CASSETTE_INIT ((struct cassette){.fd = -1})

/* Reads what is in the file now. A last line without its end is passed over. E_CORRUPT with the
 * number of the line if one is none, E_LIMIT. */
_warn_unused_ int cassette_load(struct cassette *c, int fd, struct cloche_err *err);
void cassette_done(struct cassette *c);

/* The digest of what is asked, but for headers and body. */
void cassette_digest_request(struct str method, struct str url, char ret[SHA256_HEX_MAX]);
/* Index of the first exchange whose number is above `after`; c->n if there is none. */
size_t cassette_first(const struct cassette *c, uint64_t after);
/* NULL: there is no exchange of that number. */
struct cassette_exchange *cassette_find(const struct cassette *c, uint64_t number);

/* Reads the line at this place into *ret, which was initialised. */
_warn_unused_ int cassette_read_at(
	const struct cassette *c, uint64_t at, struct cassette_line *ret, struct cloche_err *err);

/* The pieces of one body, one after the other. */
struct cassette_reading {
	const struct cassette *cassette;
	uint64_t number;
	enum cassette_kind kind; /* CASSETTE_SENT or CASSETTE_DATA */
	uint64_t at, end;
	struct buf ahead; /* what was read of the file from `at` on */
	struct cassette_line line;
};
#define CASSETTE_READING_INIT                                                                      \
	((struct cassette_reading){.ahead = BUF_INIT((size_t)CASSETTE_LINE_MAX + (256 << 10)),     \
		.line = CASSETTE_LINE_INIT})
/* Begins; r was initialised and may have been used. The cassette is borrowed. */
void cassette_reading_begin(struct cassette_reading *r, const struct cassette *c,
	const struct cassette_exchange *e, enum cassette_kind kind);
/* 1 and a piece, valid until the next call; 2 if lines of others were passed over for a while
 * and it is to be called again; 0 at the end; or negative. */
_warn_unused_ int cassette_reading_next(
	struct cassette_reading *r, struct str *ret, struct cloche_err *err);
void cassette_reading_done(struct cassette_reading *r);

static inline void cassette_donep(struct cassette *c)
{
	cassette_done(c);
}
static inline void cassette_line_donep(struct cassette_line *l)
{
	cassette_line_done(l);
}
static inline void cassette_reading_donep(struct cassette_reading *r)
{
	cassette_reading_done(r);
}
