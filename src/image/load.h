/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Load images into the store: checked by their digests, each layer unpacked once. */

#include "image/source.h"

/* Reports progress: the current step ("layer 3 of 40") and its bytes so far. Return false to cancel
 * (E_CANCELLED). */
typedef bool (*image_step_fn)(void *user, const char *step, uint64_t bytes);
/* Reports an image that was stored. */
typedef void (*image_stored_fn)(void *user, const struct image_entry *entry);

struct image_load {
	const char *name;   /* instead of the source's name; NULL: keep that. For a single image */
	image_step_fn step; /* may be NULL */
	image_stored_fn stored; /* may be NULL; called after all are stored */
	void *user;
	uint64_t owners, skipped; /* filled: files whose owner was only noted; files left out */
};

/* Load the images of source: all of them or none. Takes the lock and releases it. */
_warn_unused_ int image_load(struct image_store *s, const struct image_source *source,
	struct image_load *job, struct cloche_err *err);
