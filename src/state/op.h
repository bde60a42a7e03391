/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One operation as a line of a log, and back. The form is SandboX's ({"op": ..., "args": {...}}),
 * whose loader passes over what is ours: "n", "t", and in the arguments "mode", "ref" and the names
 * that end in "64" (what a JSON string cannot hold, in base64). */

#include "base/err.h"
#include "base/json.h"
#include "base/jsonout.h"

enum state_op_kind {
#define STATE_OP(name, text, first, second, about) STATE_##name,
#include "state/ops.def"
#undef STATE_OP
	STATE_UNKNOWN, /* of another version: kept, and passed over */
};

enum state_about { STATE_FILES, STATE_ENV, STATE_STORAGE, STATE_EVENTS, STATE_NOTHING };

enum {
	STATE_LINE_MAX =
		128 << 20,     /* bytes of a line: a value of the largest, all escaped, twice */
	STATE_PATH_MAX = 4095, /* of a path, and of a link's target */
	STATE_KEY_MAX = 4096,  /* of a variable's name and of a key of the storage */
	STATE_VALUE_MAX = 16 << 20, /* of a value */
	STATE_ENV_MAX = 131071,     /* of NAME=VALUE: what a command can be given */
	STATE_DATA_MAX = 64 << 10,  /* of contents that stand in a log themselves */
	STATE_REF_BYTES = 7 + 64,   /* "sha256-" and the digest */
};

#define STATE_NO_MODE UINT32_MAX

struct state_op {
	enum state_op_kind kind;
	struct str subject; /* path or key */
	struct str object;  /* data, value, second path, target or reference */
	bool is_ref;        /* object is a blob's, instead of the data */
	bool is_new;        /* fs.unpack: the directory becomes what the archive says of it */
	uint32_t mode;      /* of a file or directory; STATE_NO_MODE: not said */
	uint64_t number;    /* from 1 on, rising; 0: not said */
	uint64_t usec;      /* since 1970; 0: not said */
	uint32_t exec;      /* of a file: the command at whose end it was seen; 0: from outside */
	const json_t *args; /* of an event, and of STATE_TABLES: the line's object, borrowed */
};

/* "fs.write"; "?" for STATE_UNKNOWN. */
const char *state_op_name(enum state_op_kind kind);
enum state_about state_op_about(enum state_op_kind kind);

/* The i-th contents that it names by reference, from 0 on; false behind the last. */
bool state_op_ref(const struct state_op *op, unsigned i, struct str *ret);

/* Whether a log may hold it: bounds, a path without NUL, a name that a command can be given.
 * E_USAGE says what is wrong. */
_warn_unused_ int state_op_check(const struct state_op *op, struct cloche_err *err);

/* Adds the line with its end to out; not of STATE_TABLES. The object of an event is
 * its arguments as JSON text, if it has no args. 0 or a negative errno of buf_add. */
_warn_unused_ int state_op_write(struct buf *out, const struct state_op *op);

/* A line that was read. */
struct state_line {
	struct state_op op; /* its texts are the line's */
	json_t *doc;
	struct buf bytes[2]; /* what came in base64 */
};
#define STATE_LINE_INIT                                                                            \
	((struct state_line){.bytes = {BUF_INIT(STATE_LINE_MAX), BUF_INIT(STATE_LINE_MAX)}})
void state_line_done(struct state_line *l);

/* Reads a line without its end into ret, which was initialised and may have been used. E_CORRUPT:
 * it is no operation, or one that state_op_check() refuses. */
_warn_unused_ int state_line_read(struct state_line *ret, struct str text, struct cloche_err *err);
/* The same of a JSON value (borrowed). */
_warn_unused_ int state_line_read_value(
	struct state_line *ret, json_t *value, struct cloche_err *err);

bool state_is_ref(struct str s);

/* A text among the arguments: what is no UTF-8 also stands there in base64, under a name of its
 * own. Reading: bytes, which was initialised, holds what came so. */
void state_argument_write(struct jsonout *o, const char *key, struct str value);
_warn_unused_ int state_argument_read(const json_t *args, const char *key, struct buf *bytes,
	struct str *ret, struct cloche_err *err);

static inline void state_line_donep(struct state_line *l)
{
	state_line_done(l);
}
