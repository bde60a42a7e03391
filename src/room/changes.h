/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds what was changed in a room's root by comparing its two layers. Nothing in the upper one is
 * trusted: links are not followed, only regular files are opened, and depth, number of entries and
 * compared bytes are limited. It may change meanwhile. */

#include "provider/provider.h"

enum {
	CHANGES_MAX_DEPTH = 200,
	CHANGES_MAX_ENTRIES = 4 << 20,
};

/* Walk the layers (O_PATH directories, borrowed; see provider.h) and call fn with each change,
 * sorted, a directory before what is in it. A directory counts as changed if its mode or something
 * in it was changed. A file that was rewritten with the same contents, or only touched, is no
 * change. Return 0; E_LIMIT or E_SYSTEM if something could not be examined (the rest was reported).
 */
_warn_unused_ int changes_walk(
	int upper, int lower, room_change_fn fn, void *user, struct cloche_err *err);
