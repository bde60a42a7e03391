/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the mounts are attached in their order, each where the room's tree leads at
 * that moment, and beneath its root (target.h). In another mount no link is followed: a sandbox
 * that runs may have made it, or make it now (INV-NAMED-ONCE). Directories of hooks and
 * configurations of git are covered when all guards are in their places, as a guard is not found
 * where something else is mounted. A second name comes later: it is a copy of the first one with
 * all that was mounted in it, so both show the same. Directories are closed last, when nothing has
 * to be made in them any more. */
#include "room/attach.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"
#include "room/mount.h"
#include "room/parts.h"
#include "room/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

int attach_beneath(const struct target_root *root, int tree, const char *path, bool dir,
	struct cloche_err *err)
{
	_cleanup_fd_ int at = target_open(root, path, dir, err);
	struct stat st;

	if (at < 0)
		return at;
	if (fstat(at, &st) == 0 && S_ISDIR(st.st_mode) != dir) {
		err_set(err, E_CONFIG, "/%s is %s in the sandbox's root, and a %s is mounted there",
			path + strspn(path, "/"), dir ? "no directory" : "a directory",
			dir ? "directory" : "file");
		err_hint(err, "use a root where it is a %s, or mount somewhere else",
			dir ? "directory" : "file");
		return -E_CONFIG;
	}
	return mount_attach(tree, at, "", path, err);
}

/* Find the last of the n first mounts that path lies in: what it shows is what is there. Return its
 * number, or -1. */
static int attach_find_around(
	const struct attach *a, size_t n, const char *path, const char **ret_below)
{
	while (n-- > 0) {
		*ret_below = a->trees[n] < 0 ? NULL : fs_below(path, a->spec->mounts[n].target);
		if (*ret_below && (*ret_below)[0])
			return (int)n;
	}
	return -1;
}

static int attach_refuse(int e, const char *path, struct cloche_err *err)
{
	if (e == -ENOENT) {
		err_set(err, E_DENIED,
			"%s does not exist in what is mounted above it, and nothing is made there",
			path);
		err_hint(err, "make it on the host first, or mount it somewhere else");
	} else if (e == -ELOOP || e == -ENOTDIR) {
		err_set(err, E_DENIED,
			"%s lies behind a symbolic link in what is mounted above it, which a "
			"sandbox may have left there",
			path);
		err_hint(err, "name what it leads to, if that is meant");
	} else {
		return err_sys(err, -e, "find %s in the room", path);
	}
	return -E_DENIED;
}

int attach_tree(const struct attach *a, size_t n, int tree, const char *path, bool dir,
	struct cloche_err *err)
{
	const char *below;
	int k = attach_find_around(a, n, path, &below);
	_cleanup_fd_ int at = -1;
	struct stat st;

	if (k < 0)
		return attach_beneath(a->root, tree, path, dir, err);
	at = fs_open_beneath(a->trees[k], below, O_PATH);
	if (at < 0 || fstat(at, &st) < 0 || S_ISLNK(st.st_mode))
		return attach_refuse(at < 0 ? at : -ELOOP, path, err);
	return mount_attach(tree, at, "", path, err);
}

static char *attach_dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, MAX((size_t)(slash - path), (size_t)1));
}

bool attach_has_to_make(const struct target_root *root, const struct room_mount *m)
{
	_cleanup_(freep) char *dir = attach_dir_of(m->target);
	_cleanup_fd_ int fd = dir ? target_find(root, dir, NULL) : -1;

	return fd == -ENOENT;
}

void rootfs_make_places(struct rootfs *r, const struct target_root *root)
{
	for (size_t i = 0; i < r->spec->mounts_n; i++) {
		const struct room_mount *m = &r->spec->mounts[i];
		struct rootfs_source *source = &r->sources[i];

		if (source->tree < 0)
			continue;
		/* What another system's root has there is not known here. */
		source->made = m->closed && !r->dir && attach_has_to_make(root, m);
		fd_close(target_open(root, m->target, source->is_dir, NULL));
		if (m->also)
			fd_close(target_open(root, m->also, source->is_dir, NULL));
	}
}

/* Attaches a mount that is left out if this is not possible. */
static void attach_closed(struct rootfs *r, size_t i, const struct target_root *root)
{
	const struct room_mount *m = &r->spec->mounts[i];
	struct rootfs_source *source = &r->sources[i];

	source->made |= attach_has_to_make(root, m);
	if (attach_beneath(root, source->tree, m->target, source->is_dir, NULL) < 0)
		source->made = false;
}

int attach_close(const struct target_root *root, const struct room_mount *m, struct cloche_err *err)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	_cleanup_(freep) char *dir = attach_dir_of(m->target);
	_cleanup_fd_ int at = dir ? target_find(root, dir, err) : err_nomem(err), tree = -1;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	tree = mount_clone(at, "", 0, err);
	if (tree >= 0 && sys_mount_setattr(tree, "", AT_EMPTY_PATH, &read_only) < 0)
		return err_sys(err, errno, "make %s read-only", dir);
	return tree < 0 ? tree : mount_attach(tree, at, "", dir, err);
}

int attach_again(const struct attach *a, size_t i, bool dir, struct cloche_err *err)
{
	_cleanup_fd_ int copy = mount_clone(a->trees[i], "", 0, err);

	return copy < 0
		       ? copy
		       : attach_tree(a, a->spec->mounts_n, copy, a->spec->mounts[i].also, dir, err);
}

int attach_guard(const struct target_root *root, int tree, const struct room_spec *spec,
	const struct room_mount *m, uint64_t attrs, struct cloche_err *err)
{
	_cleanup_fd_ int empty = -1;

	if (m->hidden) {
		empty = target_open(root, ROOM_HIDDEN, false, err);
		if (empty < 0)
			return empty;
		if (!target_is_scratch(root, empty))
			return err_set(
				err, E_DENIED, "the room has something else at " ROOM_HIDDEN);
	}
	return mount_guard(tree, room_spec_guarded(spec, m), m, empty, attrs, err);
}

static int attach_mount(struct rootfs *r, size_t i, const struct attach *a, struct cloche_err *err)
{
	const struct room_mount *m = &r->spec->mounts[i];

	if (m->guard)
		return attach_guard(
			a->root, r->sources[m->guard - 1].tree, r->spec, m, PARTS_QUIET, err);
	if (m->closed && r->sources[i].tree >= 0)
		attach_closed(r, i, a->root);
	else if (!m->closed)
		return attach_tree(a, i, a->trees[i], m->target, r->sources[i].is_dir, err);
	return 0;
}

int attach_covers(const struct room_spec *spec, const struct target_root *root, int *copies,
	struct cloche_err *err)
{
	size_t n = spec->mounts_n, i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		r = spec->mounts[i].hooks ? githooks_cover(root, &spec->mounts[i], i, err) : 0;
		if (r < 0)
			err_wrap(err, r, "mount %s", spec->mounts[i].source);
	}
	for (i = 0; i < n && r == 0; i++)
		if (spec->mounts[i].text)
			r = gitcopy_cover(root, &spec->mounts[i], i, copies, err);
	return r;
}

int rootfs_attach_mounts(struct rootfs *r, const struct target_root *root, struct cloche_err *err)
{
	size_t n = r->spec->mounts_n, i;
	_cleanup_(freep) int *trees = calloc(n + 1, sizeof(*trees));
	const struct attach a = {.root = root, .spec = r->spec, .trees = trees};
	int e = trees ? 0 : err_nomem(err);

	for (i = 0; i < n && e == 0; i++)
		trees[i] = r->sources[i].tree;
	for (i = 0; i < n && e == 0; i++) {
		e = attach_mount(r, i, &a, err);
		if (e < 0)
			err_wrap(err, e, "mount %s", r->spec->mounts[i].source);
	}
	if (e == 0)
		e = attach_covers(r->spec, root, &r->config_fd, err);
	for (i = 0; i < n && e == 0; i++)
		if (r->sources[i].tree >= 0 && r->spec->mounts[i].also)
			e = attach_again(&a, i, r->sources[i].is_dir, err);
	for (i = 0; i < n && e == 0; i++)
		if (r->sources[i].made)
			e = attach_close(root, &r->spec->mounts[i], err);
	return e;
}
