/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an interpreter says of code beside what the code prints, amid that on the same stream:
 *
 *   mark, "TYPE=SIZE TYPE=SIZE TYPE! ...\n", so many bytes of each
 *                      results, each of which begins with its "text"; "!": it was too large
 *   mark, "begin\n"    of a context: what comes behind it belongs to the call
 *   mark, "end N\n"    ... and here that has ended, with that exit code
 *
 * The mark is a NUL and a nonce made for the call. All of it is hostile: whoever runs inside can
 * learn the nonce and say what he likes. Pure. */

#include "base/buf.h"

enum {
	CODE_NONCE_BYTES = 32,
	CODE_TEXT_MAX = 16 << 20,
	CODE_JSON_MAX = 2 << 20, /* a tree of it takes up to a hundred times as much memory */
	CODE_RICH_MAX = 8 << 20, /* of any other */
	CODE_ALL_MAX = 32 << 20,
	CODE_PARTS_MAX = 64,
};

enum code_type {
	CODE_TEXT,
	CODE_JSON,
	CODE_REPR,
	CODE_HTML,
	CODE_MARKDOWN,
	CODE_LATEX,
	CODE_SVG,
	CODE_PNG,
	CODE_JPEG,
	CODE_TYPES
};

struct code_part {
	enum code_type type;
	uint64_t left; /* bytes that are still to come */
	struct buf data;
	bool cut; /* there was more than the maximum: of a text the beginning is kept */
};

struct code_value {
	char mark[1 + CODE_NONCE_BYTES];
	size_t matched; /* bytes of the mark that came last */
	enum { CODE_OUTPUT, CODE_HEAD, CODE_BODY } state;
	char head[2048];
	size_t head_n;
	struct code_part parts[CODE_PARTS_MAX];
	size_t parts_n, part; /* that comes now */
	size_t room;          /* for the rest of them together */
	bool whole;           /* results came to their end; later ones take their place */
	bool quiet;           /* output is dropped until "begin" comes */
	bool began, ended;
	int status; /* where it ended */
};

/* nonce: CODE_NONCE_BYTES letters and digits. */
void code_value_init(struct code_value *v, const char *nonce);
void code_value_done(struct code_value *v);

/* Takes n bytes of a stream and hands on those that are output. 0, or what write returned below 0,
 * or -ENOMEM. */
typedef int (*code_value_fn)(void *user, const char *p, size_t n);
_warn_unused_ int code_value_feed(
	struct code_value *v, const char *p, size_t n, code_value_fn write, void *user);
/* The output is over: hands on what could have been the beginning of a mark. */
_warn_unused_ int code_value_end(struct code_value *v, code_value_fn write, void *user);

/* Makes of JSON what JSON of ours can hold: ASCII on one line; empties it if it is none. 0 or
 * -ENOMEM. */
_warn_unused_ int code_value_settle(struct code_value *v);

/* How many results there are, and one's part of a type; NULL: it has none. */
size_t code_value_results(const struct code_value *v);
struct code_part *code_value_part(struct code_value *v, size_t result, enum code_type type);

/* "text", "json", ... */
extern const char *const code_types[CODE_TYPES];
