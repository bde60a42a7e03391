/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Contents by their digest: a file blobs/sha256-HEX for each, whichever logs name it. Whoever puts
 * one and then appends the operation that names it holds the shared lock meanwhile, so that what
 * looks for contents that nobody names (the exclusive lock) never takes one in between. */

#include "base/err.h"
#include "base/sha256.h"
#include "state/op.h"

struct blob_writer {
	int dir; /* borrowed */
	int fd;
	uint64_t size;
	char name[32]; /* the temporary one */
	struct sha256 digest;
};
#define BLOB_WRITER_INIT ((struct blob_writer){.dir = -1, .fd = -1})

/* dir is the directory of blobs, borrowed until blob_finish() or blob_done(). */
_warn_unused_ int blob_begin(struct blob_writer *w, int dir, struct cloche_err *err);
_warn_unused_ int blob_add(struct blob_writer *w, struct str data, struct cloche_err *err);
/* Gives it its name; durable: it is on the disk then. ret is terminated. */
_warn_unused_ int blob_finish(
	struct blob_writer *w, bool durable, char ret[STATE_REF_BYTES + 1], struct cloche_err *err);
/* Removes what was begun and not finished. */
void blob_done(struct blob_writer *w);

/* Opens one for reading. E_NOT_FOUND. What is read may be something else than what was put, if
 * somebody changed the file: blob_check(). */
_warn_unused_ int blob_open(int dir, struct str ref, struct cloche_err *err);
/* Whether an open one is what its name says; its offset is 0 afterwards. E_CORRUPT. */
_warn_unused_ int blob_check(int fd, struct str ref, struct cloche_err *err);

/* Waits for the lock of the directory; it ends when the descriptor (to be closed) is closed. */
_warn_unused_ int blobs_lock(int dir, bool exclusive, struct cloche_err *err);

/* Under the exclusive lock: removes each for which is_used says no, and what a crash left. Returns
 * how many, *ret_bytes in all; negative on failure. */
typedef bool (*blob_used_fn)(struct str ref, void *user);
_warn_unused_ int blobs_collect(
	int dir, blob_used_fn is_used, void *user, uint64_t *ret_bytes, struct cloche_err *err);

static inline void blob_donep(struct blob_writer *w)
{
	blob_done(w);
}
