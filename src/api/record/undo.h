/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of an undo: what the log says of a run (undo.c), what of it is to be put back
 * (undo_plan.c, undo_judge.c), and how that is shown and done (undo_show.c, undo_put.c). */

#include "api/record/oplog.h"
#include "record/tree.h"
#include "workspace/obeyed.h"
#include <sys/stat.h>

/* A directory of the host that the room had. */
struct undo_top {
	char *source, *target;
	int fd;                  /* O_PATH; -1: the room could not write to it, or error */
	int error;               /* why it cannot be opened; 0: there is no reason to */
	enum obeyed_place place; /* what it counts as by itself */
	char *hooks;             /* in which git looks for hooks besides; NULL: nowhere else */
	bool asked_names, needs_names; /* replace_needs_name() */
};

/* A name that the run changed. */
struct undo_item {
	struct tree_node *was, *is; /* before the first command, and at the end of the record */
	struct undo_top *top;
	char *path;              /* below it; "" only if the directory as a whole is meant */
	enum tree_type old, now; /* of what comes back, and of what is there */
	bool contents, mode;     /* what has to be put back */
	uint32_t old_mode;
	enum cloche_change_kind kind; /* what putting it back does */
	bool done;
	const char *why; /* it stays as it is, for this reason (borrowed for good) */
};

struct cloche_undo {
	cloche_oplog *log; /* borrowed */
	struct tree was, is;
	struct tree contents; /* of what is put back, if `was` has only its digest */
	bool has_contents;
	uint64_t start, last; /* the entry before the first command, and the last one */
	bool is_full, is_gapped, has_end, has_begun;
	struct undo_top *tops;
	size_t tops_n;
	struct undo_item *items; /* a directory before what is in it */
	size_t n, room;
};

/* Marks of nodes: the entry that says that their contents are not on record (0: they are); in `is`,
 * which directory of the host it is (from 1), and which item (from 1); in `was`, whether its
 * contents are wanted. */
enum { UNDO_SKIPPED, UNDO_TOP, UNDO_ITEM };

/* Reasons. */
extern const char UNDO_CHANGED[], UNDO_NO_CONTENTS[], UNDO_NOT_EMPTY[];

/* A name as it is now. */
struct undo_look {
	int dir; /* owned; -1: it is not there */
	const char *name;
	struct stat st; /* st_mode 0: nothing has the name */
};
#define UNDO_LOOK_NULL ((struct undo_look){.dir = -1})
_warn_unused_ int undo_look(const struct undo_item *it, struct undo_look *ret);
void undo_look_done(struct undo_look *l);
static inline void undo_look_donep(struct undo_look *l)
{
	undo_look_done(l);
}
/* Whether the name is still what the look found. */
bool undo_is_still(const struct undo_look *l);

/* Why not all of a name will be as it was, whatever is put back; NULL: it will. l: for a file. */
const char *undo_remainder(const struct undo_item *it, const struct undo_look *l);

/* Find all that the run changed and that is not as it was. */
_warn_unused_ int undo_plan(struct cloche_undo *u, struct cloche_err *err);
/* Compare the name with what was and what the run left: set contents and mode, or why. */
_warn_unused_ int undo_judge(
	struct cloche_undo *u, struct undo_item *it, struct undo_look *ret, struct cloche_err *err);
/* What was at the name: TREE_UNKNOWN if the record does not say so. */
enum tree_type undo_type(const struct tree_node *n);
/* Whether the run changed what the name has. Return 1 or 0, or a negative code. */
_warn_unused_ int undo_is_changed(
	const struct cloche_undo *u, const struct undo_item *it, struct cloche_err *err);
/* Whether the directory is one of git's, by the names that were in it. */
bool undo_is_git(const struct cloche_undo *u, const struct tree_node *n);
/* Whether two texts are indexes of git that say the same. */
bool undo_index_is_same(struct str a, struct str b);
/* Whether the file is such an index, and says the same as the contents of the node. */
bool undo_is_index_of(
	const struct cloche_undo *u, const struct undo_look *l, const struct tree_node *n);
/* A row of the table if the host would run or obey what is put back, else NULL. */
const struct obeyed *undo_obeyed(const struct cloche_undo *u, const struct undo_item *it);
static inline bool undo_is_due(const struct undo_item *it)
{
	return !it->why && (it->contents || it->mode);
}

/* Have the contents of all items within reach. */
_warn_unused_ int undo_load(struct cloche_undo *u, struct cloche_err *err);
/* Put back all items that are due. */
_warn_unused_ int undo_put_all(struct cloche_undo *u, struct cloche_err *err);
/* The node that has the former contents of an item; NULL: they did not fit into memory. */
const struct tree_node *undo_contents(const struct cloche_undo *u, const struct undo_item *it);
