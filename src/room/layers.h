/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The layers of a room whose changes are kept apart from its root. `base` is a directory with
 * lower/, upper/ and work/ in it, either in the room's tmpfs or a kept one (keep.h). */

#include "base/err.h"
#include <stdbool.h>

/* Return the directories of the host's view that get an overlay of their own if they are not links:
 * "/usr", "/bin", ...; ends with NULL. */
const char *const *layers_host_dirs(void);
/* The most of them. */
enum { LAYERS_HOST_DIRS = 7 };
#define LAYERS_NO_TREES                                                                            \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1, -1                                                         \
	}

/* Mode of an empty directory of lower/ that stands for the host's directory of the same name. */
#define LAYERS_COVERED 01511

/* Find out whether overlays can be made here at all: try it in a directory of its own in the tmpfs.
 */
_warn_unused_ int layers_try(int scratch, struct cloche_err *err);

/* Make lower, upper and work in base, if they do not exist. */
_warn_unused_ int layers_make(int base, struct cloche_err *err);

/* A layer below lower, if lower is a directory that the user named: it has the places where
 * something is mounted, so that they do not count as changes of the room. */
#define LAYERS_PLACES "work/places"

/* Make an overlay of base's upper/NAME over lower/NAME (NAME "": the whole tree) and, if places is
 * set, over LAYERS_PLACES. Return the detached mount. */
_warn_unused_ int layers_overlay(int base, const char *name, bool places, struct cloche_err *err);

/* Make an overlay of the layers upper over lower; work: an empty directory beside upper. All are
 * paths from base. Return the detached mount. */
_warn_unused_ int layers_mount(
	int base, const char *lower, const char *upper, const char *work, struct cloche_err *err);

/* Where the copy of what packages brought to /etc is attached as a layer: in the host's tree, over
 * a directory that is not needed any more. It goes with that tree. In the room's tree it would have
 * to be detached by itself, since the list of mounts would reveal where the user's copy lies, and
 * each detaching waits for the kernel (a grace period of RCU: 0.05 to 5 ms). */
#define LAYERS_ASIDE "/dev"

/* For a room with a single id, in which the host's files belong to nobody: make the directories of
 * lower/NAME in upper/NAME if programs are likely to write there (the first level, what is below
 * "local", and the package directories of Python and Node), so that they belong to the room and
 * files can be made in them. Only for a fresh upper. */
_warn_unused_ int layers_own(int base, const char *name, struct cloche_err *err);
