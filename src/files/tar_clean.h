/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An archive that a room has made, written anew for whoever unpacks it with what they like. */

#include "files/tree.h"

struct tar_clean;

/* root: the name that the archive's only tree or file has to have, "." for contents; copied. sink
 * takes what is clean. NULL on lack of memory. */
struct tar_clean *tar_clean_new(struct str root, tree_sink sink, void *user);
/* NULL is fine; returns NULL. */
struct tar_clean *tar_clean_free(struct tar_clean *c);
DEFINE_CLEANUP(struct tar_clean, tar_clean_free)

/* Takes the next bytes of the archive. 0, or -errno with e filled; then only tar_clean_free. */
_warn_unused_ int tar_clean_feed(
	struct tar_clean *c, const char *p, size_t n, struct files_error *e);
/* The archive is complete. */
_warn_unused_ int tar_clean_finish(struct tar_clean *c, struct files_error *e);
