/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Contents by their digest: one file blobs/sha256-HEX each, shared by all logs. A writer holds the
 * shared lock from storing a blob until the operation that names it is appended. So the removal of
 * unused blobs, under the exclusive lock, never removes one in between. */

#include "base/err.h"
#include "base/sha256.h"
#include "record/op.h"

struct blob_writer {
	int dir; /* borrowed */
	int fd;
	uint64_t size;
	char name[32]; /* the temporary name */
	struct sha256 digest;
};
#define BLOB_WRITER_INIT ((struct blob_writer){.dir = -1, .fd = -1})

/* Begin a blob. dir is the directory of blobs, borrowed until blob_finish() or blob_done(). */
_warn_unused_ int blob_begin(struct blob_writer *w, int dir, struct cloche_err *err);
_warn_unused_ int blob_add(struct blob_writer *w, struct str data, struct cloche_err *err);
/* Give the blob its name. durable: sync it to the disk first. ret is terminated. */
_warn_unused_ int blob_finish(
	struct blob_writer *w, bool durable, char ret[STATE_REF_BYTES + 1], struct cloche_err *err);
/* Remove an unfinished blob. */
void blob_done(struct blob_writer *w);

/* Open a blob for reading. E_NOT_FOUND. The file may have been changed: blob_check(). */
_warn_unused_ int blob_open(int dir, struct str ref, struct cloche_err *err);
/* Check that an open blob matches its name; its offset is 0 afterwards. E_CORRUPT. */
_warn_unused_ int blob_check(int fd, struct str ref, struct cloche_err *err);

/* Wait for the lock of the directory, which is released when the returned descriptor is closed. */
_warn_unused_ int blobs_lock(int dir, bool exclusive, struct cloche_err *err);

/* Remove all blobs for which is_used() returns false, and what a crash left. Under the exclusive
 * lock. Return how many, with *ret_bytes in all; negative on failure. */
typedef bool (*blob_used_fn)(struct str ref, void *user);
_warn_unused_ int blobs_collect(
	int dir, blob_used_fn is_used, void *user, uint64_t *ret_bytes, struct cloche_err *err);

static inline void blob_donep(struct blob_writer *w)
{
	blob_done(w);
}
