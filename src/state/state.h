/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The variables and the storage of one sandbox, as its operation log says, for one thread. The log
 * is all there is on disk: what is held here is what was read of it. */

#include "base/hash.h"
#include "state/oplog.h"

enum {
	STATE_ENV_TOTAL = 1 << 20,       /* bytes of all variables */
	STATE_STORAGE_TOTAL = 256 << 20, /* bytes of the storage */
};

struct state_pair {
	UT_hash_handle hh;
	char *value; /* both are terminated, and may hold NUL */
	size_t value_n, key_n;
	char key[];
};

/* In the order in which the keys came. */
struct state_table {
	struct state_pair *pairs;
	size_t bytes, max;
};

struct state {
	struct oplog log;
	struct state_table env, storage;
	bool begun;         /* reading: with what a STATE_TABLES said, or with the first entry */
	uint64_t tables_at; /* how far into the log STATE_TABLES was written last */
	oplog_fn also;      /* told of each entry that is read, too; NULL: nobody */
	void *also_user;
};
#define STATE_INIT ((struct state){.log = OPLOG_INIT})

/* As oplog_open(); reads nothing yet. */
_warn_unused_ int state_open(
	struct state *s, int dir, const char *name, bool writable, struct cloche_err *err);
int state_close(struct state *s, struct cloche_err *err);

/* Reads what has come since the last time. */
_warn_unused_ int state_refresh(struct state *s, struct cloche_err *err);

/* For an operation on more than the tables: locks the log, reads what has come, and stays locked
 * until state_end(). state_record() appends in between. */
_warn_unused_ int state_begin(struct state *s, struct cloche_err *err);
_warn_unused_ int state_record(struct state *s, struct state_op *op, struct cloche_err *err);
void state_end(struct state *s);

/* All three. */
_warn_unused_ int state_change(struct state *s, struct state_op *op, struct cloche_err *err);

/* Borrowed until the next function; NULL: there is none. Pairs follow by pair->hh.next. */
const struct state_pair *state_find(const struct state_table *t, struct str key);

/* What an entry does to the tables. E_LIMIT: they hold too much. */
_warn_unused_ int state_apply(struct state *s, const struct state_op *op, struct cloche_err *err);

/* A key that is there keeps its place. */
_warn_unused_ int state_table_set(
	struct state_table *t, struct str key, struct str value, struct cloche_err *err);
void state_table_clear(struct state_table *t);

/* --- both tables as an entry of the log (tables.c) --- */

/* How such a line begins. */
#define STATE_TABLES_BEGIN STR("{\"op\":\"state.tables\"")
/* Under the lock: appends one, if it is long enough since the last. That it cannot be is no harm.
 */
void tables_write(struct state *s);
/* Puts what the arguments of one say in the place of what is there. */
_warn_unused_ int tables_read(struct state *s, const json_t *args, struct cloche_err *err);

static inline void state_closep(struct state *s)
{
	(void)state_close(s, NULL);
}
