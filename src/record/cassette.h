/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A cassette: the requests of one sandbox and their responses, as the room saw them, in a file of
 * lines that only grows. cloche-state(5) describes the format:
 *
 *	{"t":USEC,"e":N,"request":{"method":"POST","url":"https://h/p","headers":[["A","b"]]}}
 *	{"t":USEC,"e":N,"sent":"BASE64"}      a piece of the request's body
 *	{"t":USEC,"e":N,"sent_end":true}      with "trailers", if there are any
 *	{"t":USEC,"e":N,"refused":{"status":403,"reason":"no-rule"}}
 *	{"t":USEC,"e":N,"response":{"status":200,"headers":[...]}}
 *	{"t":USEC,"e":N,"upgraded":true}      what follows is not HTTP, and is not kept
 *	{"t":USEC,"e":N,"data":"BASE64"}
 *	{"t":USEC,"e":N,"end":true}           with "trailers", or "error" if it broke off
 *	{"t":USEC,"e":N,"cut":true}           the rest of this exchange's bodies is not kept
 *	{"t":USEC,"cut":true}                 nothing more is kept
 *
 * Values of headers are bytes, each written as a character from U+0000 to U+00FF.
 *
 * The functions here read cassettes, which are not trusted; write.h writes them. Loading reads the
 * whole file once and keeps an index; heads and bodies are then read from the file. Nothing is
 * checked for validity as HTTP: the sender has to do that. */

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

/* One line that was read. Everything is borrowed from doc and bytes. */
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
	struct buf bytes, value; /* value: of the last header that was read */
};
#define CASSETTE_LINE_INIT                                                                         \
	((struct cassette_line){.bytes = BUF_INIT((size_t)CASSETTE_PIECE_MAX + 3),                 \
		.value = BUF_INIT((size_t)CASSETTE_LINE_MAX)})
void cassette_line_done(struct cassette_line *l);

/* Read a line without its newline into ret, which is initialised and may have been used. E_CORRUPT
 * with the reason. */
_warn_unused_ int cassette_line_read(
	struct cassette_line *ret, struct str text, struct cloche_err *err);
/* Whether the line begins as in our writer's form; *ret_rest is then the rest, from the next member
 * on. */
bool cassette_line_begins(
	struct str text, struct str *ret_rest, uint64_t *ret_usec, uint64_t *ret_number);
/* Get the i-th header, from 0: name and value as bytes, valid until the next call for this line.
 * Return false after the last, or if memory runs out. */
bool cassette_header(
	struct cassette_line *l, size_t i, struct str *ret_name, struct str *ret_value);

/* A body in the file. */
struct cassette_body {
	uint64_t at, end; /* range of its lines, which lie among those of others */
	uint64_t bytes;   /* that are kept */
	bool whole;       /* nothing is missing */
};

struct cassette_exchange {
	uint64_t number; /* rising */
	uint64_t usec;
	uint64_t ended_usec;                      /* 0: the response did not end */
	uint64_t request_at;                      /* start of the line */
	uint64_t refused_at, response_at, end_at; /* CASSETTE_NONE: there is none */
	struct cassette_body sent, received;
	uint16_t status; /* 0: no response */
	bool refused, upgraded, cut;
	bool broken;                      /* the response ended with an error */
	bool early;                       /* the response came before the whole request was sent */
	char asked[SHA256_HEX_MAX];       /* cassette_digest_request() */
	char sent_digest[SHA256_HEX_MAX]; /* of a whole body */
};
#define CASSETTE_NONE UINT64_MAX

struct cassette {
	int fd;                      /* borrowed */
	struct cassette_exchange *v; /* ordered by number */
	size_t n;
	bool cut; /* everything after the last one was not kept */
};
#define CASSETTE_INIT ((struct cassette){.fd = -1})

/* Read the current contents of the file. A last line without a newline is ignored. E_CORRUPT with
 * the number of the bad line; E_LIMIT. */
_warn_unused_ int cassette_load(struct cassette *c, int fd, struct cloche_err *err);
void cassette_done(struct cassette *c);

/* Compute the digest of the method and URL of a request. */
void cassette_digest_request(struct str method, struct str url, char ret[SHA256_HEX_MAX]);
/* Return the index of the first exchange with a number above `after`, or c->n. */
size_t cassette_first(const struct cassette *c, uint64_t after);
/* Return the exchange of that number, or NULL. */
struct cassette_exchange *cassette_find(const struct cassette *c, uint64_t number);

/* Read the line at this offset into *ret, which is initialised. */
_warn_unused_ int cassette_read_at(
	const struct cassette *c, uint64_t at, struct cassette_line *ret, struct cloche_err *err);

/* The pieces of one body in order. */
struct cassette_reading {
	const struct cassette *cassette;
	uint64_t number;
	enum cassette_kind kind; /* CASSETTE_SENT or CASSETTE_DATA */
	uint64_t at, end;
	struct buf ahead; /* read from the file, from `at` on */
	struct cassette_line line;
};
#define CASSETTE_READING_INIT                                                                      \
	((struct cassette_reading){.ahead = BUF_INIT((size_t)CASSETTE_LINE_MAX + (256 << 10)),     \
		.line = CASSETTE_LINE_INIT})
/* Begin; r is initialised and may have been used. The cassette is borrowed. */
void cassette_reading_begin(struct cassette_reading *r, const struct cassette *c,
	const struct cassette_exchange *e, enum cassette_kind kind);
/* Return 1 and a piece, valid until the next call; 2 if only lines of other exchanges were found so
 * far, then call again; 0 at the end; or a negative code. */
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
