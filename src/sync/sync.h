/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory of the host and its copy on another machine, which a hostile file worker serves with
 * the copy as its root. A push makes the copy like the directory, a pull brings back what changed
 * there. What both had when they were last alike is in a state (sync/state.h), so that either sends
 * only what differs, and what changed on both sides is seen. Nothing of the person's is lost:
 * sync/decide.h has the table. */

#include "fileclient/session.h"
#include "sync/state.h"

enum {
	SYNC_MAX_ENTRIES = 2000 * 1000, /* on one side, unless an option says less */
	SYNC_MAX_DEPTH = 256,
	SYNC_ID_MAX = 64,
};

/* What is copied. */
enum sync_what {
	SYNC_ALL,
	SYNC_TRACKED, /* but what .gitignore files exclude (sync/ignore.h) */
	SYNC_NONE,    /* nothing, and nothing comes back */
	SYNC_WHAT_END_
};

/* Get it from its word: "all", "tracked", "none". Return false if it is another word. */
bool sync_what_from(struct str word, enum sync_what *ret);

struct sync_options {
	enum sync_what what;
	const char *id; /* borrowed: of the sandbox, for NAME.from-ID */
	/* Paths (borrowed, ends with NULL; or NULL) that a pull does not touch, with all below. */
	char *const *own;
	/* Files that a push does not see (the same; hidden_n of them). */
	char *const *hidden;
	size_t hidden_n;
	/* One file alone: its name in the directory and in the copy (borrowed); NULL: all that is
	 * there. one_fd: what that name has to be when it is sent (borrowed; O_PATH is enough). */
	const char *one, *one_there;
	int one_fd;
	size_t max_entries; /* on each side; 0: SYNC_MAX_ENTRIES */
	uint64_t max_bytes; /* that a pull fetches; 0: any number */
	/* Called when the state has to be on the disk before anything else happens; NULL: never. */
	int (*save)(void *user, struct sync_state *state, struct cloche_err *err);
	void *user;
};

/* What a person has to be told. */
enum sync_event {
	SYNC_KEPT_BOTH,  /* it changed on both sides: the room's is under the other name */
	SYNC_KEPT,       /* it was deleted there and changed here: it stays here */
	SYNC_RESTORED,   /* it was deleted here and changed there: it is here again */
	SYNC_LEFT,       /* it changed on both sides, or cannot be changed there: it was not sent */
	SYNC_UNREADABLE, /* it cannot be read, here or there: nothing was done about it */
	SYNC_UNSTEADY,   /* it changed while it was read: the next time */
	SYNC_SPECIAL,    /* it is neither a file, nor a directory, nor a link */
	SYNC_TOO_DEEP,   /* too many directories, or a path that is too long */
	SYNC_OWN,        /* it is the person's alone: what changed there stays there */
	SYNC_EVENT_END_
};

/* "kept-both", "kept", ... */
const char *sync_event_name(enum sync_event event);

struct sync_report {
	/* Optional: tell one of these. Paths are relative to the directory and may have any bytes.
	 * other: of SYNC_KEPT_BOTH, else NULL. */
	void (*tell)(void *user, enum sync_event event, const char *path, const char *other);
	/* Optional: called often. */
	void (*progress)(void *user);
	void *user;
	uint64_t entries, bytes, removed; /* that were sent or taken */
	uint64_t told[SYNC_EVENT_END_];
};

/* Send what differs, and remove there what was deleted here. dir: the directory (O_PATH is enough),
 * borrowed. With a fresh state the copy has to be empty. */
_warn_unused_ int sync_push(cloche_files *f, int dir, const struct sync_options *o,
	struct sync_state *state, struct sync_report *report, struct cloche_err *err);

/* Send one file (fd: open for reading, borrowed), to have that name in the copy. It is sent whole,
 * without a state. maybe_there: a file that is there already is the same, so none is sent. Of the
 * options, `what` alone counts: SYNC_NONE sends nothing. */
_warn_unused_ int sync_push_file(cloche_files *f, int fd, const struct sync_options *o,
	const char *name, bool maybe_there, struct sync_report *report, struct cloche_err *err);

/* Take what changed there, and delete here what was deleted there. If this fails, every file here
 * is whole, the state is true, and it can be called again. */
_warn_unused_ int sync_pull(cloche_files *f, int dir, const struct sync_options *o,
	struct sync_state *state, struct sync_report *report, struct cloche_err *err);
