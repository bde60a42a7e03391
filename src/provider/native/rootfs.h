/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file system of a room: made of detached pieces, entered by pivot_root, gone with the room. */

#include "base/err.h"
#include "provider/native/apart.h"
#include "provider/native/idmap.h"
#include "provider/native/keep.h"
#include "provider/native/layers.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOTFS_HOSTNAME "cloche"
/* Nameserver of a room with a gateway. Any address would do; this one is not in use anywhere. */
#define ROOTFS_NAMESERVER "100.64.0.1"

struct rootfs_mount {
	const char *source, *target; /* borrowed */
	bool ro, optional, no_link;
	/* set by rootfs_open_sources: */
	bool is_dir;
	int tree; /* detached copy; -1 if it was left out */
};

struct rootfs {
	const char *dir; /* directory that becomes the root, under an overlay; NULL: view of the
			  * host */
	bool image;      /* dir holds the layers of an image, those in `layers`, the lowest first */
	char *const *layers, *const *places; /* borrowed; see room_spec */
	const char *init_path, *host_home;   /* the last may be NULL */
	int ca_fd; /* borrowed pipe with certificates to trust, see trust_install; -1: none */
	uint64_t tmpfs_bytes; /* 0: the kernel's default, half of the memory */
	bool overlay; /* changes of the root go to a layer of their own; see keep and upper_fd */
	const struct keep *keep; /* borrowed: where that layer is kept; NULL: in the room's tmpfs */
	bool gateway;            /* name resolution leads to the gateway */
	bool nested; /* processes inside may mount a /proc of their own, so nothing covers it */
	struct idmap ids;
	struct rootfs_mount *mounts; /* borrowed array */
	size_t mounts_n;
	int shipped; /* borrowed, see rootfs_open_shipped; -1: none */
	int own_dir; /* borrowed: the directory where sandboxes are controlled; no source may show
		      * it. -1: none */
	int shipped_dir;                             /* the same for the copies of /etc */
	struct apart consents;                       /* no source may show this either */
	int dir_tree, init_tree, shipped_tree;       /* as in rootfs_mount; start at -1 */
	int keep_tree, host_trees[LAYERS_HOST_DIRS]; /* likewise */
	/* Set by rootfs_furnish if overlay is set (else -1): O_PATH, owned by the code that takes
	 * them. See struct room. */
	int upper_fd, lower_fd;
};

/* For a view of the host: open the configuration that its packages brought (shipped.h), kept in
 * base, a private directory that no source may show. Return its descriptor, which has to stay open
 * as long as the room lives, or -1: the room does without it. */
int rootfs_open_shipped(int base);

/* Open and judge (source.h) everything of the host that will be shown. If ids are a range, the
 * parent calls this, because the child could not reach the files; else the child does, because the
 * parent could not make the copies. */
_warn_unused_ int rootfs_open_sources(struct rootfs *r, struct cloche_err *err);

/* For a range: show the sources with their own owners. If a file system cannot do that, refuse a
 * writable mount. Read-only mounts of a nested room are shown as owned by nobody: otherwise root in
 * a namespace inside could, with an overlay, copy set-uid programs of root to where it may write,
 * and change them there. */
_warn_unused_ int rootfs_idmap_sources(struct rootfs *r, int userns_fd, struct cloche_err *err);

/* Close what rootfs_open_sources opened. */
void rootfs_close_sources(struct rootfs *r);

/* In the child, as root of the room: make the tree and move into it. Afterwards nothing of the host
 * except the mounts can be reached. */
_warn_unused_ int rootfs_furnish(struct rootfs *r, struct cloche_err *err);

/* Open (O_PATH) a source that the user has named, if it may be shown. Of r, only host_home and the
 * directories that no source may show are read. Return -ENOENT, with err set too, if it does not
 * exist. */
_warn_unused_ int rootfs_judge_source(const struct rootfs *r, const char *path, bool no_link,
	bool ro, bool *ret_is_dir, struct cloche_err *err);

/* Mount the room's own /etc/hosts, resolv.conf and hostname over those of its root. files: a
 * directory of the room in which they are made. Of r, only gateway is read. */
struct target_root;
_warn_unused_ int rootfs_mount_names(
	const struct rootfs *r, const struct target_root *root, int files, struct cloche_err *err);

/* Return whether there is a writable mount: files that are made there belong to a user of the host.
 */
bool rootfs_writes_as_owner(const struct rootfs *r);
