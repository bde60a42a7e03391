/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of the recorder: one sandbox, its log, and the state of its files when they
 * were last looked at. One thread. Everything in a tree comes from the room: names, links, types
 * and sizes are hostile, and may change during a look. */

#include "base/hash.h"
#include "record/blobs.h"
#include "record/state.h"
#include "record/tree.h"
#include <sys/stat.h>

enum {
	RECORDER_MAX_TREES = 64,
	RECORDER_MAX_DEPTH = 200,
	RECORDER_MAX_HIDDEN = 512,
	RECORDER_MAX_SEEN = 200 * 1000, /* known files */
	RECORDER_MAX_FILE = 64 << 20,   /* bytes of one file's contents */
};
#define RECORDER_DEFAULT_LIMIT ((uint64_t)1 << 30)

/* What was missed of a file, or among the names in a directory. */
struct sight {
	uint32_t missed; /* last turn in which something was */
	uint32_t blind;  /* the same of names that may have been seen before */
	bool told;       /* that is on record */
};

/* The names in a directory. */
struct dirnames {
	struct seen *first;      /* borrowed */
	uint64_t inode;          /* the directory's */
	uint64_t unchanged_nsec; /* its change time if these are all; 0: they have to be read again
				  */
};

/* A path in the room, as it was last looked at. */
struct seen {
	UT_hash_handle hh;
	struct dirnames names, *of; /* of: in which it is, or NULL */
	struct seen *prev, *next;   /* there */
	uint32_t tree;              /* RECORDER_MAX_TREES: in no tree that is scanned */
	uint32_t turn;              /* last turn in which it was there */
	struct sight sight;
	uint32_t mode; /* st_mode; without a type: that is not known */
	bool any_mode; /* written from outside without a mode: only the type counts */
	uint64_t inode, size, changed_nsec;
	bool unsure; /* it may have changed since without a new time */
	bool opaque; /* a directory in a layer: that it hides what lies below is on record */
	char digest[SHA256_HEX_MAX]; /* of the contents, or of a link's target; "": not known */
	struct appended *appended;   /* owned: what was appended from outside since, or NULL */
	char path[];
};

struct recorder_tree {
	int fd; /* owned, O_PATH */
	bool layer, noted, copied;
	char *path;    /* in the room; "" for the root */
	uint32_t mode; /* the permissions of the directory itself; with S_IFDIR if they are known */
	struct dirnames names;
	struct sight sight;
};

struct recorder {
	int logs, contents;
	struct state state;
	int lock;             /* of the contents, or -1 */
	uint64_t limit, used; /* bytes of contents, and of the entries of files and output */
	bool always;          /* sync entries and contents before they are confirmed */

	struct recorder_tree trees[RECORDER_MAX_TREES];
	unsigned trees_n;
	struct recorder_hidden {
		uint64_t device, inode;
	} hidden[RECORDER_MAX_HIDDEN];
	unsigned hidden_n;
	struct seen *seen;
	struct {
		struct tree_taker taker;
		struct seen *at; /* where contents are added */
		bool adds;
		struct sha256 digest;
	} outside;
	uint32_t turn;
	unsigned visited;      /* files in this turn */
	uint64_t looked_nsec;  /* real time at the start of this turn */
	uint64_t told;         /* number of the last entry that outside_take_entry() can ignore */
	bool told_files;       /* others have recorded changes of files since the last turn */
	uint64_t changed_usec; /* change time of what is looked at; 0: not known */
	uint32_t exec;         /* the command whose changes are found; 0: there from the start */
	bool last;             /* the room is over */
	bool quiet;            /* the tree's first state is only noted, not recorded */
	bool whole;            /* a look was complete */
	bool gap_told;         /* the record says that the first one was not */
	bool overfull;         /* there are too many files to know them all */
	bool overfull_told;
	bool missed; /* something could not be looked at, and an entry says so */
	bool missed_told;
};

/* --- seen.c --- */
struct seen *seen_find(const struct recorder *r, const char *path);
/* Return NULL if there are too many, or memory runs out. */
struct seen *seen_add(struct recorder *r, const char *path);
void seen_remove(struct recorder *r, struct seen *s);
/* Note that s is in a directory. */
void seen_list(struct dirnames *in, struct seen *s);

/* --- outside.c --- */
void outside_init(struct recorder *r);
/* Note what others have recorded since the last look, so that it is not recorded again. An
 * oplog_fn, with the recorder as user. */
int outside_take_entry(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err);
/* Whether the file (size: its bytes) was appended to from outside and has just these contents.
 * Updates the digest. */
bool outside_is_appended(struct seen *s, int fd, uint64_t size);
void outside_forget_appended(struct seen *s);

/* --- entries.c: under the log's lock; nothing is written if quiet --- */
_warn_unused_ int entry_of_name(struct recorder *r, enum state_op_kind kind, const char *path,
	struct str target, uint32_t mode, struct cloche_err *err);
/* Record the mode of a file or directory, unless s has it already. */
_warn_unused_ int entry_of_mode(
	struct recorder *r, struct seen *s, uint32_t mode, struct cloche_err *err);
/* Record the contents of a regular file, from fd, unless s has their digest already. Updates the
 * digest. */
_warn_unused_ int entry_of_file(
	struct recorder *r, struct seen *s, int fd, const struct stat *st, struct cloche_err *err);
/* Record that something exists, and why its contents are not recorded. size: of a file, else 0. */
_warn_unused_ int entry_of_skip(struct recorder *r, const char *path, uint64_t size,
	const char *why, struct cloche_err *err);
/* The same if s says that it is not on record; note that something of s cannot be looked at. */
_warn_unused_ int entry_of_missed(struct recorder *r, struct sight *s, const char *path,
	uint64_t size, const char *why, struct cloche_err *err);
/* args: a JSON object. */
_warn_unused_ int entry_of_event(
	struct recorder *r, enum state_op_kind kind, struct str args, struct cloche_err *err);
/* Begin and finish a blob, and get its reference. */
_warn_unused_ int contents_begin(struct recorder *r, struct blob_writer *w, struct cloche_err *err);
_warn_unused_ int contents_finish(struct recorder *r, struct blob_writer *w,
	char ret[STATE_REF_BYTES + 1], struct cloche_err *err);

/* --- scan.c --- */
/* Record all differences from the last turn in all trees. Under the log's lock. */
_warn_unused_ int scan_trees(struct recorder *r, struct cloche_err *err);
/* If the first look was not complete, record that once, in front of all that follows. */
_warn_unused_ int scan_note_gap(struct recorder *r, struct cloche_err *err);

/* --- gone.c --- */
/* After a complete walk: record that what was not met is gone, unless it could not be. */
_warn_unused_ int gone_put(struct recorder *r, struct cloche_err *err);

/* --- printed.c --- */
/* Add the output of a command, from the log in dir, to the members of a JSON object. */
_warn_unused_ int printed_add(
	struct recorder *r, int dir, struct jsonout *o, struct cloche_err *err);

/* --- recorder.c --- */
_warn_unused_ int recorder_open(struct recorder *r, const char *id, struct cloche_err *err);
enum recorder_look {
	RECORDER_NO_LOOK,
	RECORDER_LOOK,
	RECORDER_LOOK_IF_TOLD, /* the first time, or if others have recorded changes of files */
};
/* Scan the trees, if look says so, and add the event (kind STATE_UNKNOWN: none). args: a JSON
 * object; for STATE_EXEC_END only its members, to which the output in dir is added (-1: none).
 * If there are too many files, or something could not be looked at, E_LIMIT says so once; the event
 * is recorded all the same. */
_warn_unused_ int recorder_take(struct recorder *r, enum state_op_kind kind, struct str args,
	int dir, enum recorder_look look, struct cloche_err *err);
void recorder_done(struct recorder *r);
