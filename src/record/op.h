/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One operation as a line of a log, and back. The form is SandboX's ({"op": ..., "args": {...}}),
 * whose loader ignores our additions: "n", "t", and in the arguments "mode", "ref" (so an export
 * has texts in place of references) and names that end in "64" (base64 of what a JSON string cannot
 * hold). */

#include "base/err.h"
#include "base/json.h"
#include "base/jsonout.h"

enum state_op_kind {
#define STATE_OP(name, text, first, second, about) STATE_##name,
#include "record/ops.def"
#undef STATE_OP
	STATE_UNKNOWN, /* of another version: kept as it is, but ignored */
};

enum state_about { STATE_FILES, STATE_ENV, STATE_STORAGE, STATE_EVENTS, STATE_NOTHING };

/* How many operations change files, and how many change anything. A table with what to do for each
 * asserts that it lacks none. */
enum {
	STATE_FILES_OPS = 0
#define STATE_OP(name, text, first, second, about) +(STATE_##about == STATE_FILES)
#include "record/ops.def"
#undef STATE_OP
	,
	STATE_CHANGING_OPS = 0
#define STATE_OP(name, text, first, second, about) +(STATE_##about < STATE_EVENTS)
#include "record/ops.def"
#undef STATE_OP
};

enum {
	STATE_LINE_MAX =
		128 << 20,     /* bytes of a line: a value of the largest, all escaped, twice */
	STATE_PATH_MAX = 4095, /* of a path, and of a link's target */
	STATE_KEY_MAX = 4096,  /* of a variable's name or a key of the storage */
	STATE_VALUE_MAX = 16 << 20, /* of a value */
	STATE_ENV_MAX = 131071,     /* of NAME=VALUE: the limit for a command */
	STATE_DATA_MAX = 64 << 10,  /* of contents in the log itself */
	STATE_REF_BYTES = 7 + 64,   /* "sha256-" and the digest */
};

#define STATE_NO_MODE UINT32_MAX

struct state_op {
	enum state_op_kind kind;
	struct str subject;    /* path or key */
	struct str object;     /* data, value, second path, target or reference */
	bool is_ref;           /* object is a blob's reference, not the data */
	bool is_new;           /* fs.unpack: the directory gets the archive's attributes */
	uint32_t mode;         /* of a file or directory; STATE_NO_MODE: not given */
	uint64_t number;       /* from 1, rising; 0: not given */
	uint64_t usec;         /* since 1970; 0: not given */
	uint64_t changed_usec; /* of a file: when a command changed it last; 0: not given */
	uint32_t exec;      /* of a file: the command after which it was found; 0: from outside */
	const json_t *args; /* of an event, or of STATE_TABLES: the line's object, borrowed; of
			     * STATE_UNKNOWN any value, or NULL */
	struct str name;    /* of STATE_UNKNOWN: as the line has it */
};

/* Return the name, such as "fs.write"; "?" for STATE_UNKNOWN. */
const char *state_op_name(enum state_op_kind kind);
enum state_about state_op_about(enum state_op_kind kind);

/* Get the i-th reference in the operation, from 0. Return false after the last. */
bool state_op_ref(const struct state_op *op, unsigned i, struct str *ret);

/* Check whether a log may hold it: limits, a path without NUL, a variable that a command can have.
 * E_USAGE with the reason. */
_warn_unused_ int state_op_check(const struct state_op *op, struct cloche_err *err);

/* Append the line with its newline to out; not for STATE_TABLES. Without args, the object of an
 * event is its arguments as JSON text. Return 0 or buf_add's negative errno. */
_warn_unused_ int state_op_write(struct buf *out, const struct state_op *op);

/* A line that was read. */
struct state_line {
	struct state_op op; /* its texts are borrowed from the line */
	json_t *doc;
	struct buf bytes[2]; /* decoded from base64 */
};
#define STATE_LINE_INIT                                                                            \
	((struct state_line){.bytes = {BUF_INIT(STATE_LINE_MAX), BUF_INIT(STATE_LINE_MAX)}})
void state_line_done(struct state_line *l);

/* Read a line without its newline into ret, which is initialised and may have been used. E_CORRUPT:
 * it is not an operation, or state_op_check() refuses it. */
_warn_unused_ int state_line_read(struct state_line *ret, struct str text, struct cloche_err *err);
/* The same for a JSON value (borrowed). */
_warn_unused_ int state_line_read_value(
	struct state_line *ret, json_t *value, struct cloche_err *err);

bool state_is_ref(struct str s);

/* Write or read a text among the arguments. Text that is not UTF-8 is also written in base64, under
 * a name of its own. Reading decodes it into bytes, which is initialised. */
void state_argument_write(struct jsonout *o, const char *key, struct str value);
_warn_unused_ int state_argument_read(const json_t *args, const char *key, struct buf *bytes,
	struct str *ret, struct cloche_err *err);

static inline void state_line_donep(struct state_line *l)
{
	state_line_done(l);
}
