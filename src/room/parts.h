/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of a room's tree, each made below `root`, the room's own tmpfs, which holds no link
 * that we did not make. */

#include "base/err.h"
#include "base/str.h"
#include "room/rootfs.h"

/* Mount attributes of everything that is not the room's own. */
#define PARTS_QUIET (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* Make a directory, several (ends with NULL), or a whole file. An existing directory is fine. */
_warn_unused_ int parts_mkdir(int root, const char *path, unsigned mode, struct cloche_err *err);
_warn_unused_ int parts_mkdirs(
	int root, const char *const *paths, unsigned mode, struct cloche_err *err);
_warn_unused_ int parts_file(int root, const char *path, struct str text, struct cloche_err *err);

/* Mount the host's `source` at `path`, a directory or file that is made for it. Do nothing if the
 * source does not exist. */
_warn_unused_ int parts_bind(int root, const char *source, const char *path, bool dir,
	uint64_t attrs, struct cloche_err *err);

/* Make /dev: null, zero, full, random, urandom, tty, pts, shm and the usual links. */
_warn_unused_ int devices_make(int root, const struct idmap *ids, struct cloche_err *err);

/* Make /proc of the room's pid namespace, with the paths masked that container engines mask (unless
 * bare), and /sys with nothing but the processors and the room's control group, read-only. */
_warn_unused_ int procfs_make(int root, bool bare, struct cloche_err *err);
_warn_unused_ int sysfs_make(int root, const struct cgroup *group, struct cloche_err *err);
/* Mask an existing /proc (by_root: root of the room may be root of the machine) and, if there is
 * one, lay the /sys of a room over an existing one; root also has run/cloche/empty. */
_warn_unused_ int procfs_cover(int root, bool by_root, struct cloche_err *err);
_warn_unused_ int sysfs_cover(int root, struct cloche_err *err);
/* Make the nodes of an existing /dev read-only: they may be the host's, and root of the room may be
 * root of the host. */
_warn_unused_ int devices_cover(int root, struct cloche_err *err);

/* githooks.c: lay a directory of the room's own over a guard of hooks of git, in which a checkout
 * that is incomplete fails. Without a shell or git inside nothing changes. number: of this mount,
 * in this room. */
struct target_root;
_warn_unused_ int githooks_cover(const struct target_root *root, const struct room_mount *m,
	size_t number, struct cloche_err *err);

/* Make such a directory for hooks that a configuration names elsewhere: own, as it names them. */
_warn_unused_ int githooks_view(
	const struct target_root *root, size_t number, const char *own, struct cloche_err *err);

/* gitcopy.c: lay a link over a guard of a configuration of git; it leads to a copy, which commands
 * can change. If this is not possible, the configuration stays read-only. Store in *copies (-1: no
 * copy yet) the directory of them all. */
_warn_unused_ int gitcopy_cover(const struct target_root *root, const struct room_mount *m,
	size_t number, int *copies, struct cloche_err *err);

enum { PARTS_PENDING = 96 };

/* A view of the host under construction. */
struct parts_view {
	int root;   /* directory in which it is made: the room's root, or a layer below it */
	bool defer; /* mounts are not made in root, but collected for parts_attach */
	struct {
		int tree;
		bool dir;
		char path[192];
	} * pending; /* NULL, or space for PARTS_PENDING */
	size_t pending_n;
};

/* As parts_bind, in a view. */
_warn_unused_ int parts_show(struct parts_view *v, const char *source, const char *path, bool dir,
	uint64_t attrs, struct cloche_err *err);
/* Collect a mount (taken, also on failure). Return false if there are too many. */
_warn_unused_ bool parts_collect(struct parts_view *v, int tree, const char *path, bool dir);
/* Attach the collected mounts beneath a root, where every link in their paths is resolved. */
struct target_root;
_warn_unused_ int parts_attach(
	struct parts_view *v, const struct target_root *to, struct cloche_err *err);
void parts_view_done(struct parts_view *v);

/* Show the host's programs and libraries, read-only. If r has a tree of its own for one of the
 * directories, only make the place for it. */
_warn_unused_ int hostview_make(
	struct parts_view *v, const struct rootfs *r, struct cloche_err *err);

/* For a room that an engine makes, with an empty root. The *_each functions call fn with the name
 * of each path of the host that is to be mounted there read-only. The others then make the links
 * between the system's directories, and the room's own files of /etc (except its names) and of
 * /var. host: the host's root, as the caller's root already is the room's. */
typedef void (*hostview_fn)(void *user, const char *path, bool is_dir);
void hostview_each(hostview_fn fn, void *user);
void etc_each(hostview_fn fn, void *user);
_warn_unused_ int hostview_make_links(int host, int root, struct cloche_err *err);
_warn_unused_ int etc_make_plain(int host, int root, bool gateway, struct cloche_err *err);

/* Show what is mounted on the host below one of those directories, read-only, as far as there is
 * space; for a view that defers, since an overlay shows what lies beneath such mounts. */
_warn_unused_ int hostview_submounts(struct parts_view *v, const char *dir, struct cloche_err *err);

/* Make /etc: what the host's programs need of the host's, and our own accounts and names. */
_warn_unused_ int etc_make(struct parts_view *v, const struct rootfs *r, struct cloche_err *err);
/* Return a copy of the mount of rootfs.h's `shipped`; -1 if there can be none. apart: as in
 * mount_clone_opened. */
int etc_clone_shipped(int shipped, bool apart);

/* Parts of it, in root's etc/, and the user's home. s: whose user gets an account; NULL: nobody
 * does. */
_warn_unused_ int accounts_make(int root, const struct room_spec *s, struct cloche_err *err);
_warn_unused_ int accounts_make_home(int root, const struct room_spec *s, struct cloche_err *err);

/* Make links to the policies of trust.h where browsers look for them. */
_warn_unused_ int trust_link_policies(int root, struct cloche_err *err);
/* Read certificates (PEM) to their end: the process that makes them started together with the room.
 * E_NETWORK if there is none, or the end does not come within ten seconds. */
_warn_unused_ int trust_read(int fd, struct buf *ret, struct cloche_err *err);
/* After pivot_root: mount the files of trust.h over the usual paths. The certificates are
 * read from ca_fd by trust_read(). */
_warn_unused_ int trust_install(const struct target_root *root, int ca_fd, struct cloche_err *err);
/* For a room without a root of its own: write the files of trust.h to an empty directory, and mount
 * nothing. */
_warn_unused_ int trust_write_here(int dir, int ca_fd, struct cloche_err *err);
