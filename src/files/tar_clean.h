/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rewrite an archive that a room has made, so that it is safe to unpack with any tool. */

#include "files/tree.h"

struct tar_clean;

/* root: the name that the archive's only tree or file must have, "." for contents; copied. sink
 * receives the clean archive. Return NULL if memory runs out. */
struct tar_clean *tar_clean_new(struct str root, tree_sink sink, void *user);
/* c may be NULL. Return NULL. */
struct tar_clean *tar_clean_free(struct tar_clean *c);
DEFINE_CLEANUP(struct tar_clean, tar_clean_free)

/* Read the next bytes of the archive. Return 0, or -errno with e filled; after that only
 * tar_clean_free() may be called. */
_warn_unused_ int tar_clean_feed(
	struct tar_clean *c, const char *p, size_t n, struct files_error *e);
/* End the archive. */
_warn_unused_ int tar_clean_finish(struct tar_clean *c, struct files_error *e);
