/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * One tmpfs contains everything that is the room's own: /dev, /run, /tmp, the mount points, and
 * either the root itself (view of the host, with read-only mounts in it) or the layers of an
 * overlay: over a directory, or, if changes go to a layer of their own, over the view of the host
 * (layers.h). Layers that are kept lie in a directory of the host instead (keep.h). The tmpfs is
 * attached on top of the old root, where no path lookup of ours reaches it, and filled through its
 * descriptor while the host can still be seen. Then it, or the overlay, becomes the root by
 * pivot_root, and the host's tree is detached. Only then are the mounts that the user asked for
 * attached, with every path resolved beneath the new root: from then on nothing in the tree is ours
 * alone.
 *
 * The sources of those mounts were opened when they were granted, each once, and are detached
 * copies until then; guards are parts of these. So neither a path of the host nor one of the room
 * is looked up twice (INV-NAMED-ONCE). */
#include "room/rootfs.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "ipc/roomctl.h"
#include "jail/sys.h"
#include "room/attach.h"
#include "room/imageroot.h"
#include "room/mount.h"
#include "room/parts.h"
#include "room/target.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* Made in the tmpfs, and mounted over an overlay if that is the root. */
static const char *const pieces[] = {"run", "dev", "proc", "sys", "tmp"};
enum { PIECE_RUN = 0 };

#define INIT_BENEATH (&ROOMCTL_INIT_PATH[1])

int rootfs_init(struct rootfs *r, const struct room_spec *spec, const struct keep *keep,
	struct cloche_err *err)
{
	*r = (struct rootfs){.spec = spec,
		.dir = spec->root == ROOM_ROOT_HOST ? NULL : spec->root_dir,
		.overlay = spec->overlay || spec->keep_dir,
		.keep = spec->keep_dir ? keep : NULL,
		.shipped = -1,
		.sources = calloc(spec->mounts_n + 1, sizeof(*r->sources)),
		.dir_tree = -1,
		.init_tree = -1,
		.shipped_tree = -1,
		.keep_tree = -1,
		.host_trees = LAYERS_NO_TREES,
		.upper_fd = -1,
		.lower_fd = -1,
		.config_fd = -1};
	if (!r->sources)
		return err_nomem(err);
	for (size_t i = 0; i < spec->mounts_n; i++)
		r->sources[i].tree = -1;
	if (!r->dir && spec->mounts_n == 0)
		return 0;
	r->apart = malloc(sizeof(*r->apart));
	return r->apart ? apart_own_init(r->apart, err) : err_nomem(err);
}

static bool is_image(const struct rootfs *r)
{
	return r->spec->root == ROOM_ROOT_IMAGE;
}

static bool has_gateway(const struct rootfs *r)
{
	return r->spec->net == ROOM_NET_GATEWAY;
}

/* Ids that are a range are written by the parent, in whose mount namespace the sources were opened.
 */
static bool is_apart(const struct rootfs *r)
{
	return !r->ids.range;
}

static int open_source(const struct rootfs *r, int fd, const char *path, uint64_t attrs,
	bool *ret_is_dir, int *ret_tree, struct cloche_err *err)
{
	struct stat st;
	int e = apart_check_source(
		r->apart, fd, path, r->spec->host_home, attrs & MOUNT_ATTR_RDONLY, &st, err);

	if (e < 0)
		return e;
	*ret_is_dir = S_ISDIR(st.st_mode);
	*ret_tree = mount_clone_opened(fd, is_apart(r), attrs, path, err);
	return MIN(*ret_tree, 0);
}

static int open_mount(struct rootfs *r, size_t i, struct cloche_err *err)
{
	const struct room_mount *m = &r->spec->mounts[i];
	uint64_t attrs = PARTS_QUIET | (m->ro ? MOUNT_ATTR_RDONLY : 0);

	int e = m->guard ? 0
			 : open_source(r, m->fd, m->source, attrs, &r->sources[i].is_dir,
				   &r->sources[i].tree, err);

	if (e < 0 && m->closed) {
		err_clear(err);
		return 0;
	}
	return e;
}

/* Open the directory that keeps changes, and the host's directories, which are changed. */
static int open_layers(struct rootfs *r, struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	struct stat st;
	size_t i;

	if (r->keep) {
		r->keep_tree = mount_clone_opened(
			r->keep->dir, is_apart(r), PARTS_QUIET, r->keep->named, err);
		if (r->keep_tree < 0)
			return r->keep_tree;
	}
	for (i = 0; dirs[i] && !r->dir; i++) {
		if (lstat(dirs[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		r->host_trees[i] =
			mount_clone(AT_FDCWD, dirs[i], MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
		if (r->host_trees[i] < 0)
			return r->host_trees[i];
	}
	return 0;
}

int rootfs_open_sources(struct rootfs *r, struct cloche_err *err)
{
	const uint64_t attrs = MOUNT_ATTR_RDONLY | PARTS_QUIET;
	bool is_dir;
	int e = 0;

	if (r->overlay) {
		e = open_layers(r, err);
		if (e < 0)
			return e;
	}
	/* Our own helper and store were not named by the user, so they are not judged. */
	r->init_tree = mount_clone(AT_FDCWD, r->spec->init_path, attrs, err);
	if (r->init_tree < 0)
		return r->init_tree;
	if (is_image(r)) {
		r->dir_tree = mount_clone(AT_FDCWD, r->dir, attrs, err);
		e = MIN(r->dir_tree, 0);
	} else if (r->dir) {
		e = open_source(
			r, r->spec->root_fd, r->dir, PARTS_QUIET, &is_dir, &r->dir_tree, err);
		if (e == 0 && !is_dir)
			e = err_sys(err, ENOTDIR, "%s as the root", r->dir);
	}
	if (r->shipped >= 0)
		r->shipped_tree = etc_clone_shipped(r->shipped, is_apart(r));
	for (size_t i = 0; i < r->spec->mounts_n && e == 0; i++)
		e = open_mount(r, i, err);
	return e;
}

void rootfs_done(struct rootfs *r)
{
	size_t i;

	r->dir_tree = fd_close(r->dir_tree);
	r->keep_tree = fd_close(r->keep_tree);
	for (i = 0; i < LAYERS_HOST_DIRS; i++)
		r->host_trees[i] = fd_close(r->host_trees[i]);
	r->init_tree = fd_close(r->init_tree);
	r->shipped_tree = fd_close(r->shipped_tree);
	for (i = 0; r->sources && i < r->spec->mounts_n; i++)
		fd_close(r->sources[i].tree);
	free(r->sources);
	free(r->apart);
	r->sources = NULL;
	r->apart = NULL;
}

int rootfs_idmap_sources(struct rootfs *r, int userns_fd, struct cloche_err *err)
{
	size_t i;
	int e;

	if (r->keep_tree >= 0) {
		e = mount_idmap(r->keep_tree, userns_fd);
		if (e < 0) {
			err_sys(err, -e,
				"keep changes in %s: its file system cannot show files "
				"with their owners",
				r->keep->named);
			err_hint(err, "use a directory on ext4, xfs, btrfs or tmpfs, or run cloche "
				      "as an ordinary user");
			return err ? -err->code : -E_SYSTEM;
		}
	}
	/* A directory that cannot be shown with its owners cannot be changed: it stays read-only.
	 */
	for (i = 0; i < LAYERS_HOST_DIRS; i++)
		if (r->host_trees[i] >= 0 && mount_idmap(r->host_trees[i], userns_fd) < 0)
			r->host_trees[i] = fd_close(r->host_trees[i]);
	if (r->shipped_tree >= 0 && mount_idmap(r->shipped_tree, userns_fd) < 0)
		r->shipped_tree = fd_close(r->shipped_tree);
	if (r->dir_tree >= 0) {
		e = mount_idmap(r->dir_tree, userns_fd);
		if (e < 0)
			return err_sys(err, -e, "show %s with its own owners", r->dir);
	}
	for (i = 0; i < r->spec->mounts_n; i++) {
		const struct room_mount *m = &r->spec->mounts[i];

		if (r->sources[i].tree < 0 || (m->ro && r->spec->nested))
			continue;
		e = mount_idmap(r->sources[i].tree, userns_fd);
		/* Without the map it is still readable, as far as every user may read it. */
		if (e == 0 || m->ro)
			continue;
		err_sys(err, -e, "mount %s: its file system cannot show files with their owners",
			m->source);
		err_hint(err, "use a directory on ext4, xfs, btrfs or tmpfs (in a container: a "
			      "volume), mount it read-only (:ro), or run cloche as an ordinary "
			      "user");
		return err ? -err->code : -E_SYSTEM;
	}
	return 0;
}

enum { BYTES_A_FILE = 2048, FILES_MIN = 4096 };

/* Make the tmpfs, attached on top of the old root. */
static int rootfs_make_scratch(const struct rootfs *r, int *ret_fd, struct cloche_err *err)
{
	uint64_t bytes = room_limits_tmpfs(&r->spec->limits);
	char size[32], files[32];
	struct mount_option options[] = {
		{"mode", "0755"}, {NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
	_cleanup_fd_ int tree = -1;
	int e;

	if (bytes) {
		snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
		options[1] = (struct mount_option){"size", size};
		/* An empty file also takes about a kilobyte of memory, which no size counts. */
		snprintf(files, sizeof(files), "%llu",
			(unsigned long long)MAX(bytes / BYTES_A_FILE, (uint64_t)FILES_MIN));
		options[2] = (struct mount_option){"nr_inodes", files};
	}
	tree = mount_new("tmpfs", options, PARTS_QUIET, err);
	if (tree < 0)
		return tree;
	e = mount_attach(tree, AT_FDCWD, "/", "the room's tmpfs", err);
	if (e < 0)
		return e;
	*ret_fd = TAKE_FD(tree);
	return 0;
}

static int fill_scratch(struct rootfs *r, int root, struct cloche_err *err)
{
	static const struct {
		const char *path;
		unsigned mode;
	} dirs[] = {{"run", 0755}, {"run/lock", 01777}, {"run/cloche", 0755},
		{"run/cloche/empty", 0555}, {"tmp", 01777}};
	size_t i;
	int e = 0;

	for (i = 0; i < ARRAY_SIZE(dirs) && e == 0; i++)
		e = parts_mkdir(root, dirs[i].path, dirs[i].mode, err);
	if (e == 0)
		e = devices_make(root, &r->ids, err);
	if (e == 0)
		e = procfs_make(root, r->spec->nested, err);
	if (e == 0)
		e = sysfs_make(root, r->cgroup, err);
	if (e == 0)
		e = parts_file(root, INIT_BENEATH, STR_NULL, err);
	return e < 0 ? e : mount_attach(r->init_tree, root, INIT_BENEATH, r->spec->init_path, err);
}

/* After pivot_root, over an overlay: attach the pieces, each a copy of what is in the tmpfs. */
static int attach_pieces(const struct rootfs *r, const struct target_root *root,
	const int trees[ARRAY_SIZE(pieces)], int files, struct cloche_err *err)
{
	size_t i;
	int e = 0;

	for (i = 0; i < ARRAY_SIZE(pieces) && e == 0; i++) {
		/* Remove a link that leads nowhere, in the overlay. */
		if (target_find(root, pieces[i], NULL) == -ENOENT)
			(void)unlinkat(root->fd, pieces[i], 0);
		e = attach_beneath(root, trees[i], pieces[i], true, err);
	}
	return e < 0 ? e : rootfs_mount_names(has_gateway(r), root, files, err);
}

static dev_t device_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_dev;
}

/* Make the places in the room where something will be mounted, so that they are no change of its
 * own. Places that cannot be made here (below a later mount) are made or refused when that is
 * mounted. */
static void make_places(struct rootfs *r, int lower)
{
	static const char *const names[] = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"};
	struct target_root root = {.fd = lower, .scratch = {device_of(lower)}, .scratch_n = 1};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		fd_close(target_open(&root, names[i], false, NULL));

	for (i = 0; i < ARRAY_SIZE(pieces); i++)
		(void)mkdirat(lower, pieces[i], 0755);
	rootfs_make_places(r, &root);
	for (char *const *place = r->spec->places; place && *place; place++)
		fd_close(target_open(&root, *place, true, NULL));
}

/* Make what lies below the layer of changes: the directory, or the room's own files. */
static int make_lower(struct rootfs *r, int base, struct parts_view *v, struct cloche_err *err)
{
	int e = layers_make(base, err);

	if (e < 0)
		return e;
	if (r->dir) {
		e = parts_mkdir(base, LAYERS_PLACES, 0755, err);
		if (e < 0)
			return e;
		v->root = openat(base, LAYERS_PLACES, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (v->root < 0)
			return err_sys(err, errno, "open %s", LAYERS_PLACES);
		make_places(r, v->root);
		e = has_gateway(r) ? trust_link_policies(v->root, err) : 0;
		return e < 0 ? e : mount_attach(r->dir_tree, base, "lower", r->dir, err);
	}
	v->root = openat(base, "lower", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (v->root < 0)
		return err_sys(err, errno, "open the room's own files");
	e = hostview_make(v, r, err);
	if (e == 0)
		e = etc_make(v, r, err);
	if (e == 0)
		make_places(r, v->root);
	if (e == 0 && has_gateway(r))
		e = trust_link_policies(v->root, err);
	return e;
}

/* Make the overlays over the host's directories, into trees. */
static int make_host_overlays(
	struct rootfs *r, int base, int trees[LAYERS_HOST_DIRS], struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	bool fresh = !r->keep || r->keep->fresh;
	char lower[64];
	size_t i;
	int e = 0;

	for (i = 0; dirs[i] && e == 0; i++) {
		const char *name = dirs[i] + 1;

		if (r->host_trees[i] < 0)
			continue;
		snprintf(lower, sizeof(lower), "lower/%s", name);
		e = mount_attach(r->host_trees[i], base, lower, dirs[i], err);
		if (e < 0)
			break;
		trees[i] = e = layers_overlay(base, name, false, err);
		if (e >= 0) {
			e = fresh && !r->ids.range ? layers_own(base, name, err) : 0;
		} else if (!r->keep) {
			/* A file system that cannot lie below an overlay stays read-only. */
			err_clear(err);
			trees[i] = e = mount_clone(base, lower, 0, err);
		}
	}
	return e < 0 ? err_wrap(err, e, "make the layers of the host's directories") : 0;
}

static int open_result(struct rootfs *r, int base, struct cloche_err *err)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

	if (!r->overlay)
		return 0;
	r->upper_fd = openat(base, "upper", flags);
	r->lower_fd = is_image(r) ? imageroot_overlay(base, r->spec->layers, false, err)
				  : openat(base, "lower", flags);
	if (is_image(r) && r->lower_fd < 0)
		return r->lower_fd;
	if (r->upper_fd < 0 || r->lower_fd < 0)
		return err_sys(err, errno, "open the room's layers");
	return 0;
}

/* Make the root's overlay, with what packages brought to /etc below the room's own files. */
static int overlay_shipped(const struct rootfs *r, int base)
{
	int e = parts_mkdir(base, "work/root", 0700, NULL);

	if (e == 0)
		e = mount_attach(r->shipped_tree, AT_FDCWD, LAYERS_ASIDE, "/etc of packages", NULL);
	return e < 0 ? e : layers_mount(base, "lower:" LAYERS_ASIDE, "upper", "work/root", NULL);
}

static int make_root_overlay(const struct rootfs *r, int base, struct cloche_err *err)
{
	int tree;

	if (is_image(r))
		return imageroot_overlay(base, r->spec->layers, true, err);
	if (r->dir)
		return layers_overlay(base, "", true, err);
	tree = r->shipped_tree >= 0 ? overlay_shipped(r, base) : -1;
	/* The files of packages may be on a file system that cannot lie below an overlay. */
	return tree >= 0 ? tree : layers_overlay(base, "", false, err);
}

/* Make the overlay that will be the root, attached on top of everything, with the host's
 * directories in it. */
static int make_root(
	struct rootfs *r, int scratch, struct target_root *root, struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	struct parts_view v = {.root = -1, .defer = true};
	int trees[LAYERS_HOST_DIRS] = LAYERS_NO_TREES, base = scratch, e = 0;
	_cleanup_fd_ int tree = -1;
	size_t i;

	if (r->keep_tree >= 0) {
		e = parts_mkdir(scratch, "kept", 0700, err);
		if (e == 0)
			e = mount_attach(r->keep_tree, scratch, "kept", r->keep->named, err);
		base = r->keep_tree;
		/* What the last room had. Without it no changes could be determined, so it is
		 * removed only now. */
		if (e == 0 && (e = fs_remove_tree(base, "lower")) < 0)
			e = err_sys(err, -e, "clear %s/lower", r->keep->named);
	}
	if (e == 0)
		e = make_lower(r, base, &v, err);
	if (e == 0)
		e = make_host_overlays(r, base, trees, err);
	if (e == 0) {
		tree = make_root_overlay(r, base, err);
		e = tree < 0 ? err_wrap(err, tree, "make the root over %s",
				       r->dir ? r->dir : "the host's")
			     : mount_attach(tree, AT_FDCWD, "/", "the room's root", err);
	}
	if (e == 0) {
		root->fd = TAKE_FD(tree);
		root->scratch[root->scratch_n++] = device_of(root->fd);
	}
	for (i = 0; i < LAYERS_HOST_DIRS; i++) {
		if (e == 0 && trees[i] >= 0)
			e = attach_beneath(root, trees[i], dirs[i], true, err);
		if (e == 0 && trees[i] >= 0)
			e = hostview_submounts(&v, dirs[i], err);
		fd_close(trees[i]);
	}
	if (e == 0)
		e = parts_attach(&v, root, err);
	parts_view_done(&v);
	fd_close(v.root);
	return e < 0 ? e : open_result(r, base, err);
}

static int furnish_layers(
	struct rootfs *r, int scratch, struct target_root *root, struct cloche_err *err)
{
	_cleanup_fd_ int files = -1;
	int trees[ARRAY_SIZE(pieces)];
	size_t i, n;
	int e = parts_mkdir(scratch, "run/cloche/etc", 0755, err);

	if (e == 0)
		e = make_root(r, scratch, root, err);
	if (e < 0)
		return e;
	for (n = 0; n < ARRAY_SIZE(pieces) && e == 0; n++) {
		trees[n] = mount_clone(scratch, pieces[n], 0, err);
		if (trees[n] < 0)
			e = err_wrap(err, trees[n], "copy /%s", pieces[n]);
	}
	if (e == 0)
		e = mount_pivot(root->fd, err);
	if (e == 0) {
		files = openat(trees[PIECE_RUN], "cloche/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		e = files < 0 ? err_sys(err, errno, "open /run/cloche/etc") : 0;
	}
	if (e == 0)
		e = attach_pieces(r, root, trees, files, err);
	for (i = 0; i < n; i++)
		fd_close(trees[i]);
	return e;
}

/* The tmpfs itself is the root. */
static int furnish_flat(struct rootfs *r, int scratch, struct cloche_err *err)
{
	struct parts_view v = {.root = scratch};
	int e = hostview_make(&v, r, err);

	if (e == 0)
		e = etc_make(&v, r, err);
	if (e == 0 && has_gateway(r))
		e = trust_link_policies(scratch, err);
	return e < 0 ? e : mount_pivot(scratch, err);
}

/* Make the image's volumes and working directory where the room's own file systems (/tmp, /run) or
 * the image's own layers hide what make_places() has made. */
static void make_hidden_places(const struct rootfs *r, const struct target_root *root)
{
	for (char *const *place = r->spec->places; place && *place; place++)
		fd_close(target_open(root, *place, true, NULL));
}

static void give_up_layers(struct rootfs *r)
{
	r->overlay = false;
	for (size_t i = 0; i < LAYERS_HOST_DIRS; i++)
		r->host_trees[i] = fd_close(r->host_trees[i]);
}

int rootfs_furnish(struct rootfs *r, struct cloche_err *err)
{
	_cleanup_fd_ int scratch = -1, root_fd = -1;
	struct target_root root = {.fd = -1};
	struct stat etc;
	mode_t mask = umask(0);
	int e;

	e = mount_make_private(err);
	if (e == 0 && r->init_tree < 0)
		e = rootfs_open_sources(r, err);
	if (e == 0)
		e = rootfs_make_scratch(r, &scratch, err);
	if (e == 0)
		e = fill_scratch(r, scratch, err);
	if (e < 0)
		return e;
	root.scratch[root.scratch_n++] = device_of(scratch);
	/* The kernel has no overlays for ordinary users: continue like a room that does not ask for
	 * one. */
	if (r->overlay && !r->dir && !r->keep && layers_try(scratch, NULL) < 0)
		give_up_layers(r);
	if (r->dir || r->overlay) {
		e = furnish_layers(r, scratch, &root, err);
		root_fd = root.fd;
	} else {
		root.fd = scratch;
		e = furnish_flat(r, scratch, err);
		if (fstatat(scratch, "etc", &etc, 0) == 0)
			root.scratch[root.scratch_n++] = etc.st_dev;
	}
	if (e == 0)
		e = rootfs_attach_mounts(r, &root, err);
	if (e == 0 && r->spec->ca_fd >= 0)
		e = trust_install(&root, r->spec->ca_fd, err);
	if (e == 0)
		make_hidden_places(r, &root);
	umask(mask);
	return e;
}

bool rootfs_writes_as_owner(const struct rootfs *r)
{
	/* Kept files are there for every user when the room has ended. */
	if (r->keep)
		return true;
	for (size_t i = 0; i < r->spec->mounts_n; i++)
		if (r->sources[i].tree >= 0 && !r->spec->mounts[i].ro)
			return true;
	return false;
}
