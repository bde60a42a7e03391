/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All sandboxes of this user, as whoever comes later sees them. Each has a directory (ipc/rundir.h)
 * with a lock that its supervisor holds as long as it lives, so "live" is decided by the lock
 * alone: what a record says about processes may be older than the last boot.
 *
 * base is everywhere the directory of all sandboxes (rundir_open), borrowed. */

#include "base/buf.h"
#include "base/err.h"
#include "ipc/rundir.h"

enum sandbox_life {
	SANDBOX_LIVE,    /* its supervisor runs */
	SANDBOX_ENDED,   /* in order, and kept: record and logs are there */
	SANDBOX_CRASHED, /* its supervisor died: sandboxes_sweep removes what is left */
};

struct sandbox_entry {
	char id[RUNDIR_ID_BYTES + 1];
	enum sandbox_life life; /* when it was opened */
	int dir;                /* owned; O_RDONLY on the directory */
};
#define SANDBOX_ENTRY_INIT ((struct sandbox_entry){.dir = -1})
void sandbox_entry_done(struct sandbox_entry *e);

/* The ids of all directories, sorted, as a heap array of heap strings (strv_free; NULL is none). */
_warn_unused_ int sandboxes_list(int base, char ***ret, struct cloche_err *err);

/* Opens one by its whole id. E_NOT_FOUND if there is none (any more). */
_warn_unused_ int sandbox_open(
	int base, const char *id, struct sandbox_entry *ret, struct cloche_err *err);

/* Turns what a person wrote (an id, a name, or the beginning of an id: with or without "sandbox-",
 * at least one character of what follows) into an id. A name wins over a beginning. E_NOT_FOUND; or
 * E_USAGE with the candidates in the message if several fit. Does not say that it lives. */
_warn_unused_ int sandbox_resolve(
	int base, const char *text, char ret_id[RUNDIR_ID_BYTES + 1], struct cloche_err *err);

/* The record's text (one JSON object, docs/design/formats.md) into ret, which the caller
 * initialised. E_NOT_FOUND if there is none yet. */
_warn_unused_ int sandbox_read_record(
	const struct sandbox_entry *e, struct buf *ret, struct cloche_err *err);

/* Removes one that does not run, with its logs and its name. E_BUSY if it runs; a missing one is
 * fine. */
_warn_unused_ int sandbox_remove(int base, const char *id, struct cloche_err *err);

/* Looks through what crashed sandboxes could write in (manager/looks.h), and leaves the rest of
 * them to sandboxes_sweep. */
void sandboxes_look(int base);

/* Removes whole what crashed supervisors left: kills what runs, removes what they owned. What has
 * ended in order stays; one whose lock is held is never touched. removed (may be NULL) is told of
 * each. */
void sandboxes_sweep(int base, void (*removed)(void *user, const char *id), void *user);
