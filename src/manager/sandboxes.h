/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All sandboxes of this user, from the view of other processes. Each has a directory (ipc/rundir.h)
 * with a lock that its supervisor holds as long as it lives, so the lock alone decides whether it
 * is live: a record's data about processes may be older than the last boot.
 *
 * base is always the directory of all sandboxes (rundir_open), borrowed. */

#include "base/buf.h"
#include "base/err.h"
#include "ipc/rundir.h"

enum sandbox_life {
	SANDBOX_LIVE,    /* its supervisor runs */
	SANDBOX_ENDED,   /* ended in order and kept: record and logs exist */
	SANDBOX_CRASHED, /* its supervisor died: sandboxes_sweep removes the rest */
};

struct sandbox_entry {
	char id[RUNDIR_ID_BYTES + 1];
	enum sandbox_life life; /* at the time of opening */
	int dir;                /* owned; O_RDONLY on the directory */
};
#define SANDBOX_ENTRY_INIT ((struct sandbox_entry){.dir = -1})
void sandbox_entry_done(struct sandbox_entry *e);
static inline void sandbox_entry_donep(struct sandbox_entry *e)
{
	sandbox_entry_done(e);
}

/* Store the ids of all directories, sorted, as a heap array of heap strings (strv_free; NULL is
 * none). */
_warn_unused_ int sandboxes_list(int base, char ***ret, struct cloche_err *err);

/* Whether an id begins with what a person wrote, with or without "sandbox-". */
bool sandbox_id_begins(const char *id, const char *text);

/* Open a sandbox by its whole id. E_NOT_FOUND if it does not exist (any more). */
_warn_unused_ int sandbox_open(
	int base, const char *id, struct sandbox_entry *ret, struct cloche_err *err);

/* Resolve the user's text to an id: an id, a name, or the beginning of an id, with or without
 * "sandbox-", and with at least one character after that. A name wins over a beginning. Return
 * E_NOT_FOUND, or E_USAGE with the candidates in the message if several match. The sandbox need not
 * be live. */
_warn_unused_ int sandbox_resolve(
	int base, const char *text, char ret_id[RUNDIR_ID_BYTES + 1], struct cloche_err *err);

/* Read the record's text (one JSON object, docs/design/formats.md) into ret, which the caller
 * initialised. E_NOT_FOUND if there is none yet. */
_warn_unused_ int sandbox_read_record(
	const struct sandbox_entry *e, struct buf *ret, struct cloche_err *err);

/* Return a pidfd of the supervisor of a running sandbox, which becomes readable when that has ended
 * and its locks are free, or -errno if it cannot be watched. */
int sandbox_watch(int base, const char *id);

/* Wait until no supervisor has this sandbox any more (0), and at most timeout_ms (-EWOULDBLOCK), or
 * until the descriptor watch (-1: none) is readable (1). Whoever has seen the end of a sandbox may
 * remove it, and has it meanwhile, so look again what it is. Return -errno on failure. */
_warn_unused_ int sandbox_await_end(int base, const char *id, int watch, int timeout_ms);

/* Remove a sandbox that does not run, with its logs and its name. E_BUSY if it runs; a missing one
 * is fine. */
_warn_unused_ int sandbox_remove(int base, const char *id, struct cloche_err *err);

/* Inspect the directories that crashed sandboxes could write to (manager/looks.h). Their removal is
 * left to sandboxes_sweep. failed is called for each sandbox whose findings are not all kept, with
 * the reason. */
typedef void (*sandboxes_failed_fn)(void *user, const char *id, const char *why);
void sandboxes_look(int base, sandboxes_failed_fn failed, void *user);

/* Remove everything that crashed supervisors left: kill what runs, remove what they owned.
 * Sandboxes that ended in order stay; one whose lock is held is never touched. removed (may be
 * NULL) is called for each. The last failure is noted for cloche status (manager/cleanup.h). */
void sandboxes_sweep(int base, void (*removed)(void *user, const char *id), void *user);
