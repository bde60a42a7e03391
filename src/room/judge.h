/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Judges the sources of mounts for a provider that does not mount them itself, by the same rules as
 * for a native room (apart_check_source). */

#include "provider/spec.h"

struct judged_source {
	dev_t dev;
	ino_t ino;
	char *path; /* its real path, heap; NULL: a guard, or a later mount hides it */
	bool is_dir;
};

/* Judge the source of each mount of the spec, in its order. Call judged_free() also after an error.
 */
_warn_unused_ int judge_sources(
	const struct room_spec *spec, struct judged_source **ret, struct cloche_err *err);
/* Return whether one of the mounts covers that path of the room. */
bool judged_hides(
	const struct room_spec *spec, const struct judged_source *sources, const char *path);
void judged_free(struct judged_source *sources, size_t n);
