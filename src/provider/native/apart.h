/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What of cloche's own no source may show: where sandboxes are controlled (ipc/rundir.h), and where
 * consents of the person are kept (ipc/statedir.h). */

#include "base/err.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { APART_DEEPEST = 128 };

struct apart {
	char path[PATH_MAX]; /* where it really lies; "": there is none */
	bool is_there;       /* else it is the nearest directory above that is */
	size_t n;
	struct apart_id {
		dev_t dev;
		ino_t ino;
	} ids[APART_DEEPEST]; /* it, and all above it */
};

/* Whether a source (a descriptor; path is for messages) lies apart from where sandboxes are
 * controlled (-1: nowhere). 0 or -E_DENIED. */
_warn_unused_ int apart_check_control(
	int control, int source, const char *path, struct cloche_err *err);

/* Looks at the directory of consents (borrowed; -1: there is none), with the rights of now: the
 * child that makes the room may not be able to. */
_warn_unused_ int apart_init(struct apart *a, int dir, bool is_there, struct cloche_err *err);
/* Whether a source lies apart from it. If it is not there yet, what is shown read-only does. 0
 * or -E_DENIED. */
_warn_unused_ int apart_check(
	const struct apart *a, int source, const char *path, bool ro, struct cloche_err *err);
