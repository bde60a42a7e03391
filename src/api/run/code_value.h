/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parses what an interpreter reports about code, amid the output of the code on the same stream:
 *
 *   mark, "TYPE=SIZE TYPE=SIZE TYPE! ...\n", then so many bytes of each
 *                      results; each begins with its "text"; "!" means that it was too large
 *   mark, "begin\n"    in a context: the output from here on belongs to the call
 *   mark, "end N\n"    in a context: the call has ended, with exit code N
 *
 * The mark is a NUL and a nonce made for the call. All input is hostile: any process inside can
 * learn the nonce and write what it likes. Pure. */

#include "base/buf.h"

enum {
	CODE_NONCE_BYTES = 32,
	CODE_TEXT_MAX = 16 << 20,
	CODE_JSON_MAX = 2 << 20, /* parsed, it takes up to a hundred times as much memory */
	CODE_RICH_MAX = 8 << 20, /* of each other type */
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
	bool cut; /* it was too large; of text and repr the beginning is kept */
};

struct code_value {
	char mark[1 + CODE_NONCE_BYTES];
	size_t matched; /* bytes of the mark matched so far */
	enum { CODE_OUTPUT, CODE_HEAD, CODE_BODY } state;
	char head[2048];
	size_t head_n;
	struct code_part parts[CODE_PARTS_MAX];
	size_t parts_n, part; /* part: the current one */
	size_t room;          /* bytes left for all remaining parts together */
	bool whole;           /* the results are complete; later ones replace them */
	bool quiet;           /* output is dropped until "begin" comes */
	bool began, ended;
	int status; /* exit code from "end" */
};

/* nonce: CODE_NONCE_BYTES letters and digits. */
void code_value_init(struct code_value *v, const char *nonce);
void code_value_done(struct code_value *v);

/* Parse n bytes of a stream and pass those that are output to write. Return 0, a negative value
 * that write returned, or -ENOMEM. */
typedef int (*code_value_fn)(void *user, const char *p, size_t n);
_warn_unused_ int code_value_feed(
	struct code_value *v, const char *p, size_t n, code_value_fn write, void *user);
/* End the output: pass on what could have been the beginning of a mark. */
_warn_unused_ int code_value_end(struct code_value *v, code_value_fn write, void *user);

/* Rewrite JSON results so that they fit into our JSON: ASCII on one line. Empty those that are
 * invalid, and parts that were cut, except text and repr. Empty a repr that follows JSON which is
 * valid. Return 0 or -ENOMEM. */
_warn_unused_ int code_value_settle(struct code_value *v);

/* Return the number of results, and a result's part of this type or NULL. */
size_t code_value_results(const struct code_value *v);
struct code_part *code_value_part(struct code_value *v, size_t result, enum code_type type);

/* "text", "json", ... */
extern const char *const code_types[CODE_TYPES];
