/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The variables and the storage of one sandbox, as in its operation log, for one thread. The log is
 * all there is on disk; the tables here are only what was read from it. */

#include "base/hash.h"
#include "record/oplog.h"

enum {
	STATE_ENV_TOTAL = 1 << 20,       /* bytes of all variables */
	STATE_UNSET_TOTAL = 64 << 10,    /* bytes of the names of variables that are unset */
	STATE_STORAGE_TOTAL = 256 << 20, /* bytes of the storage */
};

struct state_pair {
	UT_hash_handle hh;
	char *value; /* key and value are terminated, and may hold NUL */
	size_t value_n, key_n;
	char key[];
};

/* In the order in which the keys were added. */
struct state_table {
	struct state_pair *pairs;
	size_t bytes, max;
};

struct state {
	struct oplog log;
	struct state_table env, storage;
	/* Variables that were deleted and not set since: the sandbox may have been made with them.
	 * Their values are empty. */
	struct state_table unset;
	bool begun;         /* reading has begun, at a STATE_TABLES or the first entry */
	uint64_t tables_at; /* offset in the log of the last STATE_TABLES */
	oplog_fn also;      /* also called with each entry that is read; NULL: none */
	void *also_user;
};
#define STATE_INIT ((struct state){.log = OPLOG_INIT})

/* Make empty tables without a log, for state_apply(). */
void state_init(struct state *s);
/* As oplog_open(); reads nothing yet. */
_warn_unused_ int state_open(
	struct state *s, int dir, const char *name, bool writable, struct cloche_err *err);
int state_close(struct state *s, struct cloche_err *err);

/* Read what was appended since the last time. */
_warn_unused_ int state_refresh(struct state *s, struct cloche_err *err);

/* For operations on more than the tables: lock the log and read what was appended. It stays locked
 * until state_end(). state_record() appends in between. */
_warn_unused_ int state_begin(struct state *s, struct cloche_err *err);
_warn_unused_ int state_record(struct state *s, struct state_op *op, struct cloche_err *err);
/* The same for n operations on files: all or none of them. */
_warn_unused_ int state_record_files(
	struct state *s, struct state_op *ops, size_t n, struct cloche_err *err);
void state_end(struct state *s);

/* Do all three. */
_warn_unused_ int state_change(struct state *s, struct state_op *op, struct cloche_err *err);

/* Borrowed until the next function; NULL: not found. Pairs are linked by pair->hh.next. */
struct state_pair *state_find(const struct state_table *t, struct str key);

/* Apply an entry to the tables. E_LIMIT: they would be too large. */
_warn_unused_ int state_apply(struct state *s, const struct state_op *op, struct cloche_err *err);

/* Set a value. An existing key keeps its place. */
_warn_unused_ int state_table_set(
	struct state_table *t, struct str key, struct str value, struct cloche_err *err);
void state_table_clear(struct state_table *t);

/* --- both tables as an entry of the log (tables.c) --- */

/* The beginning of such a line. */
#define STATE_TABLES_BEGIN STR("{\"op\":\"state.tables\"")
/* Append one, if the last is far enough back. Under the lock. A failure does no harm. */
void tables_write(struct state *s);
/* Replace the tables with those in the arguments of such an entry. */
_warn_unused_ int tables_read(struct state *s, const json_t *args, struct cloche_err *err);

static inline void state_closep(struct state *s)
{
	(void)state_close(s, NULL);
}
