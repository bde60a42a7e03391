/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A tree of files as an archive, and an archive as a tree of files. Used inside rooms and on the
 * host. The other side may be a room that changes the tree, or has made the archive, as it likes;
 * neither leads out of the directory. */

#include "files/protocol.h"
#include "files/tar.h"

/* Take the next bytes (1 to FILES_CHUNK). Return 0, or -errno with e filled, which ends the
 * archive. */
typedef int (*tree_sink)(void *user, const char *p, size_t n, struct files_error *e);

struct tree_get {
	int dir;          /* borrowed */
	const char *name; /* name in dir; "": dir itself */
	struct str as;    /* its name in the archive; "." for contents only */
	bool own;         /* everything belongs to user 0 */
	/* The directory to which the tree is copied, if it could be inside the tree: it is not
	 * copied into itself. 0, 0: none. */
	uint64_t device, inode;
	tree_sink sink;
	void *user;
	struct files_moved moved; /* filled meanwhile */
};

/* Write the whole archive, in the order of names. Files that vanish meanwhile are left out; a file
 * that becomes shorter is filled up with zeroes. Sockets and devices are counted as left out.
 * Return 0 or -errno with e filled. */
_warn_unused_ int tree_get(struct tree_get *t, struct files_error *e);

struct tree_put_options {
	int dir;            /* borrowed until tree_put_free; everything lands beneath it */
	bool dir_is_new;    /* the directory gets the attributes that the archive has for "." */
	uint32_t closed;    /* bits removed from every mode, as with a umask */
	bool owners;        /* set users and groups if that is allowed */
	const char *single; /* borrowed; not NULL: the archive holds one thing that is not a
			     * directory, which gets this name whatever its name in the archive */
};

struct tree_put;

/* Return NULL if memory runs out. */
struct tree_put *tree_put_new(const struct tree_put_options *o);
/* Remove an unfinished file. t may be NULL. Return NULL. */
struct tree_put *tree_put_free(struct tree_put *t);
DEFINE_CLEANUP(struct tree_put, tree_put_free)

/* Read the next bytes of the archive. Return 0, or -errno with e filled; after that only
 * tree_put_free() may be called. */
_warn_unused_ int tree_put_feed(struct tree_put *t, const char *p, size_t n, struct files_error *e);
/* End the archive: directories get their modes and times. */
_warn_unused_ int tree_put_finish(struct tree_put *t, struct files_error *e);
const struct files_moved *tree_put_moved(const struct tree_put *t);
