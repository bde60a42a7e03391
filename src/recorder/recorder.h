/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of the recorder share: one sandbox, its log, and what its files were when they
 * were last looked at. One thread. What lies in a tree is the inside's doing: names, links, types
 * and sizes are hostile, and may change while they are looked at. */

#include "base/hash.h"
#include "state/blobs.h"
#include "state/state.h"
#include <sys/stat.h>

enum {
	RECORDER_MAX_TREES = 64,
	RECORDER_MAX_DEPTH = 200,
	RECORDER_MAX_SEEN = 200 * 1000, /* files that are known */
	RECORDER_MAX_FILE = 64 << 20,   /* bytes of one file's contents */
};
#define RECORDER_DEFAULT_LIMIT ((uint64_t)1 << 30)

/* A path inside, as it was last looked at. */
struct seen {
	UT_hash_handle hh;
	uint32_t tree;  /* RECORDER_MAX_TREES: none that is looked at */
	uint32_t turn;  /* when it was there last */
	uint32_t blind; /* when it was a directory that could not be looked into last */
	uint32_t mode;  /* st_mode; 0: not known */
	bool any_mode;  /* whoever wrote it from outside said none: the type alone counts */
	uint64_t inode, size, changed_nsec;
	bool unsure;                 /* it may have changed since in a way that no time tells */
	char digest[SHA256_HEX_MAX]; /* of the contents, or of a link's target; "": not known */
	char path[];
};

struct tree {
	int fd; /* owned, O_PATH */
	bool layer, noted;
	char *path; /* inside; "" for the root */
};

struct recorder {
	int logs, contents;
	struct state state;
	int lock;             /* of the contents, or -1 */
	uint64_t limit, used; /* bytes of contents */
	bool always;          /* entries and contents are durable before anybody hears of them */

	struct tree trees[RECORDER_MAX_TREES];
	unsigned trees_n;
	struct seen *seen;
	uint32_t turn;
	unsigned visited;     /* files in this turn */
	uint64_t looked_nsec; /* real time, when this turn began */
	uint64_t told;        /* number of the last entry that seen_take_entry() need not take */
	uint32_t exec;        /* whose changes are found; 0: what was there from the start */
	bool quiet;           /* a tree whose beginning is only noted */
	bool overfull;        /* there are more files than are known */
};

/* --- seen.c --- */
struct seen *seen_find(const struct recorder *r, const char *path);
/* NULL: there are too many, or no memory. */
struct seen *seen_add(struct recorder *r, const char *path);
void seen_remove(struct recorder *r, struct seen *s);
void seen_set_digest(struct seen *s, struct str data);
/* What others put on record since the last look, so that it is not put there again: as oplog_fn,
 * with the recorder. */
int seen_take_entry(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err);

/* --- entries.c: under the log's lock; nothing is written while quiet --- */
_warn_unused_ int entry_of_name(struct recorder *r, enum state_op_kind kind, const char *path,
	struct str target, uint32_t mode, struct cloche_err *err);
/* The contents of a regular file, from fd, unless the digest in s is theirs. Keeps the digest. */
_warn_unused_ int entry_of_file(
	struct recorder *r, struct seen *s, int fd, const struct stat *st, struct cloche_err *err);
/* args: a JSON object. */
_warn_unused_ int entry_of_event(
	struct recorder *r, enum state_op_kind kind, struct str args, struct cloche_err *err);
/* Makes a reference of what the writer has. */
_warn_unused_ int contents_begin(struct recorder *r, struct blob_writer *w, struct cloche_err *err);
_warn_unused_ int contents_finish(struct recorder *r, struct blob_writer *w,
	char ret[STATE_REF_BYTES + 1], struct cloche_err *err);

/* --- scan.c --- */
/* Puts on record what is different from the last turn in all trees. Under the log's lock. */
_warn_unused_ int scan_trees(struct recorder *r, struct cloche_err *err);

/* --- printed.c --- */
/* Adds what the command printed, from the log in dir, to the members of a JSON object. */
_warn_unused_ int printed_add(
	struct recorder *r, int dir, struct jsonout *o, struct cloche_err *err);

/* --- recorder.c --- */
_warn_unused_ int recorder_open(struct recorder *r, const char *id, struct cloche_err *err);
/* Looks at the trees, if look says so, and adds the event (kind STATE_UNKNOWN: none). args: a JSON
 * object; of STATE_EXEC_END its members alone, to which is added what the log in dir has (-1:
 * none). */
_warn_unused_ int recorder_take(struct recorder *r, enum state_op_kind kind, struct str args,
	int dir, bool look, struct cloche_err *err);
void recorder_done(struct recorder *r);
