/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory of the host in which a room's changes stay: kept when the room has ended, continued
 * by the next one that names it. In it lie
 *
 *   .cloche-changes  what it is, and the lock
 *   upper/           what was changed, each file at its path in the room (overlayfs' own form)
 *   lower/           what the room had of its own below that (view of the host)
 *   work/            overlayfs'
 *
 * The next room makes lower/ anew only when it is about to be, so that a start that is refused
 * leaves what was kept as it is. */

#include "base/err.h"
#include "base/hostpath.h"
#include <stdbool.h>
#include <stddef.h>

#define KEEP_MARKER ".cloche-changes"

struct keep {
	int dir;            /* the directory; -1: none */
	int lock;           /* its marker, flocked */
	bool fresh;         /* nothing has been kept in it yet */
	bool made;          /* we made the directory */
	struct hostpath at; /* where it lies */
	char *named;        /* where it was opened, for messages; heap */
};

#define KEEP_INIT ((struct keep){.dir = -1, .lock = -1, .at = {.dir = -1}})

/* Makes (if missing) and locks the directory for a room on that root (root_dir NULL: the host's
 * view; an image: any other text than a path, which says what it is), as the parent of the room. It
 * has to be empty or an earlier one of the same root, belong to us, and neither be a link nor lie
 * behind one that a room may have left (hostpath_find with home), nor in what holds credentials; it
 * becomes private (mode 0700), as it may hold set-uid files. Errors: E_BUSY another room uses it;
 * E_EXISTS something else is in it; E_CONFIG it belongs to another root; E_DENIED the others. */
_warn_unused_ int keep_open(const char *path, const char *root_dir, const char *home,
	struct keep *ret, struct cloche_err *err);

/* Refuses (E_DENIED) where the directory and that source lie in one another: what the inside may
 * write to must not be what overlayfs trusts, and no tree can be its own layer. A source that does
 * not exist is fine. */
_warn_unused_ int keep_check_apart(
	const struct keep *k, const char *source, struct cloche_err *err);

/* 1 if neither of the two lies in the other (source may be any file), 0 if one does, or
 * -errno. Judged by where they really are. Both are borrowed. */
_warn_unused_ int keep_is_apart(int dir, int source);

/* Gives the directory free; what overlayfs needed only while it was mounted is removed, and all of
 * it if no room came to be. */
void keep_close(struct keep *k);

/* What an earlier room left, for a look at it: also while another room uses it. */
struct keep_view {
	int upper, lower; /* O_PATH; owned. lower is the root itself if that is a directory */
	bool host; /* the view of the host: what lies below /usr and the like is the host's */
};
/* E_NOT_FOUND where nothing was kept there. */
_warn_unused_ int keep_view_open(const char *path, struct keep_view *ret, struct cloche_err *err);
void keep_view_close(struct keep_view *v);
