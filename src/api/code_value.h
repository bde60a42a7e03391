/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The value of an expression, which comes on the standard output of the code amid what that prints:
 *
 *   mark, "TEXT JSON REPR\n" (how many bytes each has, in decimal; 0: there is none), those bytes
 *
 * The mark is a NUL and a nonce made for the call. All of it is hostile: whoever runs inside can
 * learn the nonce and say what he likes. Pure. */

#include "base/buf.h"

enum {
	CODE_NONCE_BYTES = 32,
	CODE_TEXT_MAX = 16 << 20,
	CODE_JSON_MAX = 2 << 20, /* a tree of it takes up to a hundred times as much memory */
};

enum code_part { CODE_TEXT, CODE_JSON, CODE_REPR, CODE_PARTS };

struct code_value {
	char mark[1 + CODE_NONCE_BYTES];
	size_t matched; /* bytes of the mark that came last */
	enum { CODE_OUTPUT, CODE_HEAD, CODE_BODY } state;
	char head[64];
	size_t head_n;
	uint64_t left[CODE_PARTS]; /* bytes that are still to come */
	struct buf part[CODE_PARTS];
	bool cut[CODE_PARTS]; /* there was more than the maximum */
	bool whole;           /* one came to its end; a later one takes its place */
};

/* nonce: CODE_NONCE_BYTES letters and digits. */
void code_value_init(struct code_value *v, const char *nonce);
void code_value_done(struct code_value *v);

/* Takes n bytes of standard output and hands on those that are none of a value's. 0, or what write
 * returned below 0, or -ENOMEM. */
typedef int (*code_value_fn)(void *user, const char *p, size_t n);
_warn_unused_ int code_value_feed(
	struct code_value *v, const char *p, size_t n, code_value_fn write, void *user);
/* The output is over: hands on what could have been the beginning of a mark. */
_warn_unused_ int code_value_end(struct code_value *v, code_value_fn write, void *user);

/* Makes of the JSON part what JSON of ours can hold: ASCII on one line; empties it if it is none.
 * 0 or -ENOMEM. */
_warn_unused_ int code_value_settle(struct code_value *v);
