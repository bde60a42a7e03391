/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Managers: the processes that make sandboxes and are responsible for them (cloche/manager.h). Each
 * has a file in the directory of all sandboxes (base, borrowed), which it keeps locked as long as
 * it lives, so the lock alone decides whether a manager is live. The file contains how much memory
 * the manager has promised to sandboxes. */

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { OWNER_ID_BYTES = 21 };
#define OWNER_LABEL "cloche.manager" /* of a sandbox: the id of the manager that has made it */

struct owner {
	int fd;                      /* its file, locked; -1: none */
	char id[OWNER_ID_BYTES + 1]; /* [a-z0-9], never used again */
};
#define OWNER_INIT ((struct owner){.fd = -1})

_warn_unused_ int owner_make(int base, struct owner *ret, struct cloche_err *err);
/* Fine if nothing was made. */
void owner_done(int base, struct owner *o);

/* Return whether the owner is live; true also if that cannot be found out. */
bool owner_is_live(int base, const char *id);

/* Lock the promises of all owners. Return a descriptor; closing it unlocks them. Nobody who has
 * this lock waits for anything else. */
_warn_unused_ int owner_lock(int base, struct cloche_err *err);
/* Record that o promises this many bytes in total; promises is from owner_lock(). A promise that is
 * not larger than the last one is always accepted. If a larger one, those of all other live owners,
 * and the memory limits of running sandboxes whose owner is dead (*ret_others is the sum of both)
 * are together more than `most`, return -E_BUSY and change nothing. */
_warn_unused_ int owner_promise(int base, int promises, struct owner *o, uint64_t bytes,
	uint64_t most, uint64_t *ret_others, struct cloche_err *err);

/* Watch the promises of all owners. Return a descriptor that becomes readable when one changes or
 * goes, or a negative code (fs_notify()). */
_warn_unused_ int owner_watch(int base, struct cloche_err *err);
/* Take what the watch has reported: an owner that has ended is dead to owner_is_live() from now on,
 * and to owner_promise(). */
void owner_watch_take(int base, int watch);

/* Call fn with the id of each running sandbox with a memory limit whose owner is dead. */
typedef void (*owner_orphan_fn)(const char *id, uint64_t limit, void *user);
_warn_unused_ int owner_each_orphan(
	int base, owner_orphan_fn fn, void *user, struct cloche_err *err);
