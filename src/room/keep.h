/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory of the host that keeps a room's changes after the room has ended. The next room that
 * names it continues from them. It contains
 *
 *   .cloche-changes  the marker, which is also the lock
 *   upper/           what was changed, each file at its path in the room (overlayfs' own form)
 *   lower/           the room's own files below that (view of the host)
 *   work/            for overlayfs
 *
 * The next room makes lower/ anew as late as possible, so that a start that is refused leaves the
 * kept changes as they are. */

#include "base/err.h"
#include "fs/hostpath.h"
#include <stdbool.h>

#define KEEP_MARKER ".cloche-changes"

struct keep {
	int dir;            /* the directory; -1: none */
	int lock;           /* its marker, locked by flock() */
	bool fresh;         /* nothing has been kept in it yet */
	bool made;          /* we made the directory */
	struct hostpath at; /* where it lies */
	char *named;        /* the path by which it was opened, for messages; heap */
};

#define KEEP_INIT ((struct keep){.dir = -1, .lock = -1, .at = {.dir = -1}})

/* Make (if missing) and lock the directory for a room on that root (root_dir NULL: the host's view;
 * for an image: a text that names it and is not a path). Called by the parent of the room. The
 * directory has to be empty or an earlier one of the same root, and belong to us. It must not be a
 * link, lie behind a link that a room may have left (hostpath_find with home), or lie in a place
 * with credentials. It becomes private (mode 0700), as it may hold set-uid files. Errors: E_BUSY
 * another room uses it; E_EXISTS something else is in it; E_CONFIG it belongs to another root;
 * E_DENIED the others. */
_warn_unused_ int keep_open(const char *path, const char *root_dir, const char *home,
	struct keep *ret, struct cloche_err *err);

/* Refuse (E_DENIED) if the directory lies in that source (fd, borrowed) or the source in the
 * directory: the room must not write to what overlayfs trusts, and no tree can be its own layer. */
_warn_unused_ int keep_check_apart(
	const struct keep *k, int fd, const char *source, struct cloche_err *err);

/* Release the directory. Remove what overlayfs needed only while it was mounted, and everything if
 * no room was started. */
void keep_close(struct keep *k);

/* What an earlier room left, for examination, even while another room uses it. */
struct keep_view {
	int upper, lower; /* O_PATH; owned. lower is the root itself if that is a directory */
};
/* E_NOT_FOUND if nothing was kept there. */
_warn_unused_ int keep_view_open(const char *path, struct keep_view *ret, struct cloche_err *err);
void keep_view_close(struct keep_view *v);
