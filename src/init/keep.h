/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Keeps the modes of the machine's files in a room that shows them: Landlock does not. */

#include "jail/asked.h"

/* The directories and files whose modes the room may change: their paths, as they were at first. */
struct keep {
	char **own; /* strv */
};

/* Return whether the call changes a mode; then *ret is its answer: 0, done, or -errno. */
_warn_unused_ bool keep_answers(const struct keep *k, const struct asked *a, int *ret);
