/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Takes images into the store: checked by their digests, each layer unpacked once. */

#include "image/source.h"

/* What is done at the moment, for somebody who waits: "layer 3 of 40", and bytes so far; false ends
 * it (E_CANCELLED). */
typedef bool (*image_step_fn)(void *user, const char *step, uint64_t bytes);
/* An image is stored. */
typedef void (*image_stored_fn)(void *user, const struct image_entry *entry);

struct image_load {
	const char *name; /* instead of what the source calls it; NULL: none. For one image alone */
	image_step_fn step;     /* may be NULL */
	image_stored_fn stored; /* may be NULL; called when all of them are */
	void *user;
	uint64_t owners, skipped; /* filled: files whose owner was only written down; left out */
};

/* Loads what source has; the lock is taken and given back. All of its images or none. */
_warn_unused_ int image_load(struct image_store *s, const struct image_source *source,
	struct image_load *job, struct cloche_err *err);
