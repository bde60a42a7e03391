/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file system of a room: made of detached pieces, entered by pivot_root, gone with the room. */

#include "base/err.h"
#include "provider/spec.h"
#include "room/apart.h"
#include "room/cgroup.h"
#include "room/idmap.h"
#include "room/keep.h"
#include "room/layers.h"
#include <stdbool.h>

#define ROOTFS_HOSTNAME "cloche"
/* Nameserver of a room with a gateway. Any address would do; this one is not in use anywhere. */
#define ROOTFS_NAMESERVER "100.64.0.1"

/* What a mount of the spec will show. */
struct rootfs_source {
	bool is_dir;
	int tree;  /* detached copy; -1 for a guard, or if it was left out */
	bool made; /* the directory around its target was made for it */
};

struct rootfs {
	const struct room_spec *spec; /* borrowed */
	const char *dir;              /* the spec's root_dir, if the root comes from there (under an
				       * overlay); NULL: view of the host */
	bool overlay; /* changes of the root go to a layer of their own; see keep and upper_fd */
	const struct keep *keep; /* borrowed: where that layer is kept; NULL: in the room's tmpfs */
	const struct cgroup *cgroup; /* borrowed: is shown */
	struct idmap ids;
	struct apart_own *apart;       /* no source may show these; NULL: there are no sources */
	int shipped;                   /* borrowed, see rootfs_open_shipped */
	struct rootfs_source *sources; /* of the spec's mounts, in their order */
	int dir_tree, init_tree, shipped_tree;       /* as in rootfs_source */
	int keep_tree, host_trees[LAYERS_HOST_DIRS]; /* likewise */
	/* Set by rootfs_furnish if overlay is set (else -1): O_PATH, owned by the code that takes
	 * them. See struct room. */
	int upper_fd, lower_fd;
	int config_fd; /* set by rootfs_furnish if commands get copies of configurations (struct
			* room), else -1 */
};

/* Prepare to make a root for that spec; keep is used if the spec has a keep_dir. Call rootfs_done()
 * also after an error. */
_warn_unused_ int rootfs_init(struct rootfs *r, const struct room_spec *spec,
	const struct keep *keep, struct cloche_err *err);

/* For a view of the host: open the configuration that its packages brought (shipped.h). Return its
 * descriptor, which has to stay open as long as the room lives, or -1: the room does without it. */
int rootfs_open_shipped(void);

/* Open and judge (source.h) everything of the host that will be shown. If ids are a range, the
 * parent calls this, because the child could not reach the files; else the child does, because the
 * parent could not make the copies. */
_warn_unused_ int rootfs_open_sources(struct rootfs *r, struct cloche_err *err);

/* For a range: show the sources with their own owners. If a file system cannot do that, refuse a
 * writable mount. Read-only mounts of a nested room are shown as owned by nobody: otherwise root in
 * a namespace inside could, with an overlay, copy set-uid programs of root to where it may write,
 * and change them there. */
_warn_unused_ int rootfs_idmap_sources(struct rootfs *r, int userns_fd, struct cloche_err *err);

/* Close what rootfs_open_sources opened, and free the rest. */
void rootfs_done(struct rootfs *r);

/* In the child, as root of the room: make the tree and move into it. Afterwards nothing of the host
 * except the mounts can be reached. */
_warn_unused_ int rootfs_furnish(struct rootfs *r, struct cloche_err *err);

/* attach.c. Make the places of the mounts in a layer where they are no change of the room's own, as
 * far as possible; attach the mounts. */
struct target_root;
void rootfs_make_places(struct rootfs *r, const struct target_root *root);
_warn_unused_ int rootfs_attach_mounts(
	struct rootfs *r, const struct target_root *root, struct cloche_err *err);

/* Mount the room's own /etc/hosts, resolv.conf and hostname over those of its root. files: a
 * directory of the room in which they are made. gateway: name resolution leads there. */
_warn_unused_ int rootfs_mount_names(
	bool gateway, const struct target_root *root, int files, struct cloche_err *err);

/* nested.c: in the child, with the sources open, before anything is started: refuse (E_DENIED)
 * set-uid and set-gid programs that are shown with their owner, in a nested room that may write to
 * something of the host. With an overlay of its own it could copy them there, keep their bits, and
 * change their contents. They are searched for only if ids are single: with a range, read-only
 * mounts are shown without their owners. The host's own directories are not searched. */
_warn_unused_ int rootfs_check_programs(const struct rootfs *r, struct cloche_err *err);

/* Return whether there is a writable mount: files that are made there belong to a user of the host.
 */
bool rootfs_writes_as_owner(const struct rootfs *r);
