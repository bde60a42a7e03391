/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A tree of files as an archive, and an archive as a tree of files. Used inside rooms and on the
 * host, where the other side is a room that may change the tree, or have made the archive, as it
 * likes: neither ever leads out of the directory. */

#include "files/protocol.h"
#include "files/tar.h"

/* Takes the next bytes (1 to FILES_CHUNK): 0, or -errno with e filled, which ends it. */
typedef int (*tree_sink)(void *user, const char *p, size_t n, struct files_error *e);

struct tree_get {
	int dir;          /* borrowed */
	const char *name; /* what in dir; "": dir itself */
	struct str as;    /* its name in the archive; "." for contents only */
	bool own;         /* everything is said to be user 0's */
	/* Where it goes, if that is a directory that might be within: it is not copied into itself.
	 * 0, 0: nowhere of that kind. */
	uint64_t device, inode;
	tree_sink sink;
	void *user;
	struct files_moved moved; /* filled meanwhile */
};

/* Writes the whole archive, in the order of names. What vanishes meanwhile is left out; a file that
 * becomes shorter is filled up with zeroes. Sockets and devices are counted as left out. 0 or
 * -errno with e filled. */
_warn_unused_ int tree_get(struct tree_get *t, struct files_error *e);

struct tree_put_options {
	int dir;            /* borrowed until tree_put_free; everything lands beneath it */
	bool dir_is_new;    /* it gets the attributes that the archive has for "." */
	uint32_t closed;    /* bits that no mode gets, as with a umask */
	bool owners;        /* users and groups are set if that is allowed */
	const char *single; /* borrowed; not NULL: the archive holds one thing that is no directory,
			     * which gets this name whatever it is called there */
};

struct tree_put;

/* NULL on lack of memory. */
struct tree_put *tree_put_new(const struct tree_put_options *o);
/* Removes what is half done. NULL is fine; returns NULL. */
struct tree_put *tree_put_free(struct tree_put *t);
DEFINE_CLEANUP(struct tree_put, tree_put_free)

/* Takes the next bytes of the archive. 0 or -errno with e filled; then only tree_put_free. */
_warn_unused_ int tree_put_feed(struct tree_put *t, const char *p, size_t n, struct files_error *e);
/* The archive is complete: directories get their modes and times. */
_warn_unused_ int tree_put_finish(struct tree_put *t, struct files_error *e);
const struct files_moved *tree_put_moved(const struct tree_put *t);
