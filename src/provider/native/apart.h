/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The directories of cloche that no source may show: the one where sandboxes are controlled
 * (ipc/rundir.h), and the one where the user's consents are kept (ipc/statedir.h). */

#include "base/err.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { APART_DEEPEST = 128 };

struct apart {
	char path[PATH_MAX]; /* its real path; "": there is none */
	bool is_there;       /* if not, this is the nearest existing directory above it */
	size_t n;
	struct apart_id {
		dev_t dev;
		ino_t ino;
	} ids[APART_DEEPEST]; /* the directory and all above it */
};

/* Check that a source (a descriptor; path is for messages) lies apart from the directory where
 * sandboxes are controlled (-1: there is none). Return 0 or -E_DENIED. */
_warn_unused_ int apart_check_control(
	int control, int source, const char *path, struct cloche_err *err);

/* Read the directory of consents (borrowed; -1: there is none) with the current rights: the child
 * that makes the room may not be able to. */
_warn_unused_ int apart_init(struct apart *a, int dir, bool is_there, struct cloche_err *err);
/* Check that a source lies apart from it. A read-only source is fine if the directory does not
 * exist yet. Return 0 or -E_DENIED. */
_warn_unused_ int apart_check(
	const struct apart *a, int source, const char *path, bool ro, struct cloche_err *err);
