/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files of a sandbox as its log tells of them.
 *
 * What an operation does to files is said once, in tree_steps.c: each is a few steps, of which one
 * concerns one name. A struct tree takes the steps and so is the one picture of the files that
 * comparing, reports and compaction use; the recorder takes them into what it has seen itself.
 *
 * A log is not trusted: names, depth, number and contents are bounded, and no operation takes
 * longer than what it names and what it removes. */

#include "base/hash.h"
#include "base/sha256.h"
#include "record/op.h"

enum {
	TREE_PATH_MAX = STATE_PATH_MAX + 1, /* bytes of a path in its one form */
	TREE_MAX_NODES = 1000 * 1000,
	TREE_MAX_NAMES = 64 << 20, /* bytes of all names */
};

/* --- names --- */

/* A path in its one form: each name behind a slash, so that "" is the top. "." and doubled slashes
 * are gone, and ".." has taken away the name before it. */
struct tree_path {
	size_t n;
	bool dots;     /* there was a "..": behind a link, it leads elsewhere */
	bool relative; /* it begins in a directory that the log does not name */
	char text[TREE_PATH_MAX + 1];
};

/* Return false if it is too long. */
bool tree_path_make(struct tree_path *ret, struct str path);
/* Add the names of another path. */
bool tree_path_add(struct tree_path *p, struct str path);
/* The first name of *rest, in that form; false after the last. */
bool tree_path_next(struct str *rest, struct str *ret);
static inline struct str tree_path_str(const struct tree_path *p)
{
	return str_make(p->text, p->n);
}

/* --- what an operation does --- */

enum tree_type {
	TREE_UNKNOWN, /* the log does not say what was there before */
	TREE_GONE,
	TREE_DIRECTORY,
	TREE_FILE,
	TREE_LINK,
	TREE_OTHER, /* a FIFO or a device */
};

enum tree_trait {
	TREE_WHOLE = 1 << 0,   /* the object is all that the file has */
	TREE_ADDS = 1 << 1,    /* the object is added to the file */
	TREE_ARCHIVE = 1 << 2, /* the object is unpacked into the directory */
	TREE_PARENTS = 1 << 3, /* directories on the way are made */
	TREE_REMOVES = 1 << 4, /* with everything below */
	TREE_MODE = 1 << 5,    /* only the mode is set */
	TREE_ALIAS = 1 << 6,   /* one thing gets another name, so names before it say less */
	TREE_MOVES = 1 << 7,   /* ... the object; the name that it had is gone */
};

/* The traits of an operation on files; 0 for any other. */
unsigned tree_traits(enum state_op_kind kind);
/* The word for it before a path, such as "delete". is_new: nothing is there yet. */
const char *tree_verb(enum state_op_kind kind, bool is_new);

enum tree_step_flags {
	TREE_KEEP = 1 << 0,    /* TREE_FILE: what it has stays, and contents are added to it */
	TREE_THROUGH = 1 << 1, /* if the name is a link, what it leads to is meant */
	TREE_NEW = 1 << 2,     /* TREE_DIRECTORY: one that is there gets the mode, too */
};

/* Open contents beside the log for reading. */
typedef int (*tree_open_fn)(void *user, struct str ref, struct cloche_err *err);

/* Who takes the steps of operations. Each function returns 0, or a negative code, which ends the
 * operation. mode: STATE_NO_MODE if it is not given. */
struct tree_taker {
	/* Something of this type is at the path. If something of another type was there, it is
	 * gone. The contents of a file, or the target of a link, follow in pieces until end(). */
	int (*make)(struct tree_taker *t, const struct tree_path *path, enum tree_type type,
		uint32_t mode, unsigned flags, struct cloche_err *err);
	/* is_ref: piece is the reference of contents beside the log. */
	int (*add)(struct tree_taker *t, struct str piece, bool is_ref, struct cloche_err *err);
	int (*end)(struct tree_taker *t, struct cloche_err *err);
	/* The path is another name of the file at other. */
	int (*link)(struct tree_taker *t, const struct tree_path *path,
		const struct tree_path *other, uint32_t mode, struct cloche_err *err);
	int (*gone)(struct tree_taker *t, const struct tree_path *path, struct cloche_err *err);
	int (*mode)(struct tree_taker *t, const struct tree_path *path, uint32_t mode,
		struct cloche_err *err);
	/* Never into itself. */
	int (*move)(struct tree_taker *t, const struct tree_path *from, const struct tree_path *to,
		struct cloche_err *err);
	tree_open_fn open;
	void *open_user;
};

/* Let the taker have the steps of an operation. One that is not on files has none. A path that is
 * too long is E_LIMIT. */
_warn_unused_ int tree_take(
	struct tree_taker *t, const struct state_op *op, struct cloche_err *err);

/* Pass contents beside the log to fn in pieces. */
_warn_unused_ int tree_stream(const struct tree_taker *t, struct str ref,
	int (*fn)(void *user, struct str piece, struct cloche_err *err), void *user,
	struct cloche_err *err);

/* --- the picture --- */

/* A part of a file's contents. */
struct tree_piece {
	struct tree_piece *next;
	bool is_ref;
	size_t n;
	char text[];
};

struct tree_key {
	struct tree_node *parent; /* NULL for a top */
	char name[];
};

/* A name. */
struct tree_node {
	UT_hash_handle hh;
	struct tree_key *key;
	struct tree_node *children, *prev, *next;
	enum tree_type type;
	bool replaced; /* what the log does not name below it is not there */
	bool partial;  /* the beginning of its contents is older than the log */
	bool lost;     /* not all of its contents are kept */
	uint32_t mode; /* STATE_NO_MODE: not known */
	struct tree_piece *first, *last;
	size_t kept;        /* bytes of the pieces */
	struct sha256 *sum; /* of contents that are not kept, in place of pieces; else NULL */
	uint64_t sum_size;
	unsigned mark[3]; /* for whoever reads the tree */
	struct tree_node *other;
};

struct tree {
	struct tree_taker taker; /* its functions are set by tree_init() */
	struct tree_node *nodes, *tops[2];
	size_t n, names, kept; /* bytes of names, and of contents that are kept */
	/* To be set before the first operation: */
	size_t max_nodes, max_names;
	size_t max_kept;
	size_t max_file; /* of one file's contents that are kept */
	bool sums;       /* of other contents at least the digest is kept */
	/* Whether contents of the file are wanted; NULL: all are. */
	bool (*is_wanted)(const struct tree_path *path, void *user);
	void *is_wanted_user;
	struct tree_node *at; /* where contents are added */
};

/* open: may be NULL if no operation is taken. */
void tree_init(struct tree *t, tree_open_fn open, void *user);
void tree_done(struct tree *t);

/* Find a name; NULL if the log does not name it. */
struct tree_node *tree_find(const struct tree *t, const struct tree_path *path);
struct tree_node *tree_child(const struct tree *t, const struct tree_node *parent, struct str name);
/* ... and add it with all above it. A new one has the type that tree_type_of() tells. E_LIMIT. */
_warn_unused_ int tree_add(struct tree *t, const struct tree_path *path, struct tree_node **ret,
	struct cloche_err *err);
/* The same for one name in a directory, or for a top if that is NULL. */
_warn_unused_ int tree_add_name(struct tree *t, struct tree_node *parent, struct str name,
	struct tree_node **ret, struct cloche_err *err);
/* What is at the path. Below something that is gone everything is gone. */
enum tree_type tree_type_of(const struct tree *t, const struct tree_path *path);

/* The next node in the order of a tree, after all above it; NULL after the last one below top. */
struct tree_node *tree_next(const struct tree_node *n, const struct tree_node *top);
static inline struct str tree_name(const struct tree_node *n)
{
	return str_make(n->key->name, n->hh.keylen - sizeof(struct tree_key));
}
/* Make sure that each name of t is in the other tree, too, and that each of its nodes knows its
 * other there. */
_warn_unused_ int tree_pair(struct tree *t, struct tree *with, struct cloche_err *err);
/* Append the path as a person writes it. -E2BIG if it does not fit. */
_warn_unused_ int tree_path_of(const struct tree_node *n, struct buf *ret);
/* Note what a STATE_FS_SKIP says: if it has a size, the path is a file whose contents are not on
 * record, and each such entry counts as other contents. Get the node. E_LIMIT. */
_warn_unused_ int tree_take_skip(
	struct tree *t, const struct state_op *op, struct tree_node **ret, struct cloche_err *err);
/* Note of all that is known at the directory and below it that what the log does not name there is
 * not there, except in what is_unknown names. E_LIMIT. */
_warn_unused_ int tree_close(struct tree *t, const struct tree_path *top,
	bool (*is_unknown)(const struct tree_node *n), struct cloche_err *err);
/* How many things exist below it. */
size_t tree_count(const struct tree_node *n);

/* Append the contents of a file or the target of a link. Return 1 if not all are known, or if they
 * do not fit. */
_warn_unused_ int tree_contents(
	const struct tree *t, const struct tree_node *n, struct buf *ret, struct cloche_err *err);
/* The digest of what is known of its contents, and their size. */
_warn_unused_ int tree_digest(const struct tree *t, const struct tree_node *n,
	char ret[SHA256_HEX_MAX], uint64_t *ret_size, struct cloche_err *err);
/* Whether two nodes, also of two trees, have the same contents. Negative: an error. */
_warn_unused_ int tree_is_same(const struct tree *t, const struct tree_node *a,
	const struct tree_node *b, struct cloche_err *err);

static inline void tree_donep(struct tree *t)
{
	tree_done(t);
}
