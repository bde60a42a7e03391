/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sources of mounts, for a provider that does not mount them itself: judged as those of a
 * native room (rootfs_judge_source). */

#include "provider/spec.h"

struct judged_source {
	dev_t dev;
	ino_t ino;
	char *path; /* where it really is, heap; NULL: it is optional and not there, or a later one
		     * hides it */
	bool is_dir;
};

/* One for each mount of the spec, in its order; judged_free() also after an error. */
_warn_unused_ int judge_sources(
	const struct room_spec *spec, struct judged_source **ret, struct cloche_err *err);
/* Whether one of the mounts lies over that place of the room. */
bool judged_hides(
	const struct room_spec *spec, const struct judged_source *sources, const char *path);
void judged_free(struct judged_source *sources, size_t n);
