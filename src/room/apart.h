/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Directories that must not lie in one another, whatever names lead to them; above all those of
 * cloche that no source may show. */

#include "base/err.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { APART_DEEPEST = 512 };

struct apart {
	char path[PATH_MAX]; /* its real path; "": there is none */
	bool is_there;       /* if not, this is the nearest existing directory above it */
	size_t n;
	struct apart_id {
		dev_t dev;
		ino_t ino;
	} ids[APART_DEEPEST]; /* the directory and all above it */
};

/* Read a directory (borrowed) that exists, with the current rights. Return 0 or -errno. */
_warn_unused_ int apart_init(struct apart *a, int dir);
/* Return 1 if neither of the two lies in the other (source may be any file), 0 if one does, or
 * -errno if that cannot be found out. A directory that does not exist yet lies nowhere. */
_warn_unused_ int apart_is(const struct apart *a, int source);

/* Those of cloche. */
struct apart_own {
	struct apart control, usual; /* where sandboxes are controlled (ipc/rundir.h) */
	/* of the user (ipc/statedir.h): the consents, and what is obeyed without one */
	struct apart consents, settings;
};

/* Find them, in the parent: the child that makes the room may not be able to read them. */
_warn_unused_ int apart_own_init(struct apart_own *a, struct cloche_err *err);

/* Judge a source (source_check): it also has to lie apart from these directories. It may show the
 * place of consents, or of settings, if there are none yet and it is read-only. */
_warn_unused_ int apart_check_source(const struct apart_own *a, int fd, const char *path,
	const char *home, bool ro, struct stat *ret, struct cloche_err *err);
