/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Get images into the store: checked by their digests, each layer unpacked once. */

#include "image/source.h"

struct image_load {
	const char *name; /* instead of the source's name; NULL: keep that. For a single image */
	/* Reports progress: the current step ("layer 3 of 40") and its bytes so far. Return false
	 * to cancel (E_CANCELLED). May be NULL. */
	bool (*step)(const char *step, uint64_t bytes, void *user);
	void *user;
	/* filled */
	uint64_t owners, skipped;  /* files whose owner was only noted; files left out */
	struct image_index stored; /* the images; the caller frees it */
};

/* Report progress. Return false if the load is to be cancelled. */
bool image_load_tell(const struct image_load *job, const char *step, uint64_t bytes);

/* Load the images of source: all of them or none. Takes the lock and releases it. */
_warn_unused_ int image_load(struct image_store *s, const struct image_source *source,
	struct image_load *job, struct cloche_err *err);

/* Say what helps with E_NO_SPACE. */
void image_hint_space(struct cloche_err *err);

/* Get an image with the programs that the user has for that, and load it. */
_warn_unused_ int image_pull(
	struct image_store *s, const char *name, struct image_load *job, struct cloche_err *err);
