/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was changed in a room's root, told from its two layers. Nothing in the upper one is trusted:
 * links are not followed, nothing but regular files is opened, and depth, number of entries and
 * bytes that are compared are bounded. It may change meanwhile. */

#include "provider/provider.h"

enum {
	CHANGES_MAX_DEPTH = 200,
	CHANGES_MAX_ENTRIES = 4 << 20,
};

/* Walks the layers (O_PATH directories, borrowed; see provider.h) and calls fn with each change,
 * sorted, a directory before what is in it. A directory is changed if its mode is or something
 * in it was. A file that was written again as it was, or only touched, is no change. Returns 0;
 * E_LIMIT or E_SYSTEM if something could not be looked into (the rest was reported). */
_warn_unused_ int changes_walk(
	int upper, int lower, room_change_fn fn, void *user, struct cloche_err *err);
