/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The layers of a room whose changes lie apart. `base` is a directory with lower/, upper/ and work/
 * in it, either in the room's tmpfs or a kept one (keep.h). Used by rootfs.c alone. */

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* The directories of the host's view that get an overlay of their own if they are no links:
 * "/usr", "/bin", ...; ends with NULL. */
const char *const *layers_host_dirs(void);
/* At most so many. */
enum { LAYERS_HOST_DIRS = 7 };
#define LAYERS_NO_TREES                                                                            \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1, -1                                                         \
	}

/* Mode of an empty directory of lower/ that stands for the host's of the same name. */
#define LAYERS_COVERED 01511

/* Whether overlays can be made here at all; tries in a directory of its own in the tmpfs. */
bool layers_work(int scratch);

/* Makes lower, upper and work in base, if they do not exist. */
_warn_unused_ int layers_make(int base, struct cloche_err *err);

/* Below lower, if that is somebody's directory: the places in which something is mounted, so
 * that they are no change of the room's. */
#define LAYERS_PLACES "work/places"

/* An overlay of base's upper/NAME over lower/NAME (NAME "": of the whole) and, if places, over
 * those; returns the detached mount. */
_warn_unused_ int layers_overlay(int base, const char *name, bool places, struct cloche_err *err);

/* Takes a mount of base away again that an overlay was made over: the overlay keeps what it needs.
 * 0 or -errno; the mount then stays. */
int layers_detach(int base, const char *name);

/* For a room of one single id, to which the host's files belong to nobody: makes the directories of
 * lower/NAME in upper/NAME where they are likely to be written to (the first level, what is below
 * "local", and where packages of Python and Node lie), so that they are the room's own and
 * something can be made in them. Only for a fresh upper. */
_warn_unused_ int layers_own(int base, const char *name, struct cloche_err *err);
