/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A program has made a room whose process 1 is our own init, which waits. The parts that every room
 * has are then added from outside, by a process that enters its namespaces (ns_run): the names in
 * /etc, the gateway's certificate in every trust store, the captured network. So engines need not
 * know about them. Nothing hostile runs in the room yet, but its files may be hostile: every path
 * is resolved beneath its root.
 *
 * The program finds the sources of mounts by their paths, which a room may exchange meanwhile
 * (INV-NAMED-ONCE). So it mounts each of them at a place of ours, which nobody else reaches. What
 * is there is compared with what was judged; if it differs, the room is given up. Only then is it
 * put where it belongs, as in a native room.
 *
 * An image's links may lead anywhere. So whatever makes files in the room, the engine or we, does
 * it while nothing of the host is mounted where a link could lead (INV-HOST-UNCHANGED): the name of
 * the places is the room's own, and they are empty before we begin. */
#include "base/fd.h"
#include "fs/fs.h"
#include "ipc/roomctl.h"
#include "jail/sys.h"
#include "provider/program/operations.h"
#include "room/attach.h"
#include "room/mount.h"
#include "room/ns.h"
#include "room/parts.h"
#include "room/target.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct inside {
	struct program_room *room;
	const struct room_spec *spec;
	const struct judged_source *sources;
	int user, mount, net; /* namespaces; user: -1 if it is ours */
	int host;             /* the host's root */
	int *trees;           /* of the mounts, in the process inside; -1: not mounted */
	bool *made;           /* of closed mounts: the directory around it was made */
	int copies;           /* of configurations: a tree that the room may write to; -1: none */
};

static int open_ns(pid_t pid, const char *name, bool *ret_is_ours, struct cloche_err *err)
{
	char path[64], own[64];
	struct stat st, ours;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	snprintf(own, sizeof(own), "/proc/self/ns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || stat(own, &ours) < 0) {
		int e = errno;

		fd_close(fd);
		return err_sys(err, e, "find the %s namespace of the room", name);
	}
	*ret_is_ours = st.st_dev == ours.st_dev && st.st_ino == ours.st_ino;
	return fd;
}

/* Refuse to furnish anything that is not a room. */
static int open_all(struct inside *in, struct cloche_err *err)
{
	static const char *const apart[] = {"mnt", "net", "pid", "ipc", "uts"};
	bool is_ours;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(apart); i++) {
		_cleanup_fd_ int fd = open_ns(in->room->ns.base.pid, apart[i], &is_ours, err);

		if (fd < 0)
			return fd;
		if (is_ours)
			return err_set(err, E_PROTOCOL,
				"provider %s made no room: it has no %s namespace of its own",
				in->room->ns.base.provider->name, apart[i]);
		if (i == 0)
			in->mount = TAKE_FD(fd);
		else if (i == 1)
			in->net = TAKE_FD(fd);
	}
	r = open_ns(in->room->ns.base.pid, "user", &is_ours, err);
	if (r < 0)
		return r;
	in->user = is_ours ? fd_close(r) : r;
	return 0;
}

void inside_place(const struct room_spec *spec, size_t i, char ret[INSIDE_PLACE_MAX])
{
	snprintf(ret, INSIDE_PLACE_MAX, ROOMCTL_DIR "/mounts-%.64s/%zu", spec->id, i);
}

/* Take what the program has mounted for mount i, and return the tree. */
static int take_mount(const struct inside *in, int root, size_t i, struct cloche_err *err)
{
	const struct room_mount *m = &in->spec->mounts[i];
	const struct judged_source *s = &in->sources[i];
	char place[INSIDE_PLACE_MAX];
	_cleanup_fd_ int fd = -1, tree = -1;
	struct statvfs vfs;
	struct stat st;

	inside_place(in->spec, i, place);
	fd = fs_open_beneath(root, place + 1, O_PATH);
	if (fd < 0)
		return err_set(
			err, E_PROTOCOL, "the provider has not mounted %s at %s", s->path, place);
	if (fstat(fd, &st) < 0 || fstatvfs(fd, &vfs) < 0)
		return err_sys(err, errno, "look at %s in the room", place);
	if (st.st_dev != s->dev || st.st_ino != s->ino)
		return err_set(err, E_DENIED, "%s was replaced while it was mounted", s->path);
	if (m->ro && !(vfs.f_flag & ST_RDONLY))
		return err_set(err, E_PROTOCOL,
			"the provider has mounted %s so that it can be written", s->path);
	tree = mount_clone(fd, "", 0, err);
	if (tree >= 0 && umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		return err_sys(err, errno, "take %s from its place", s->path);
	return TAKE_FD(tree);
}

static int take_mounts(const struct inside *in, int root, struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; i < in->spec->mounts_n && r == 0; i++)
		if (in->sources[i].path) {
			in->trees[i] = r = take_mount(in, root, i, err);
			r = r < 0 ? err_wrap(err, r, "mount %s", in->spec->mounts[i].source) : 0;
		}
	return r;
}

/* Put a mount that is left out if this is not possible. */
static void put_closed(const struct inside *in, const struct target_root *root, size_t i)
{
	const struct room_mount *m = &in->spec->mounts[i];

	in->made[i] = attach_has_to_make(root, m);
	if (attach_beneath(root, in->trees[i], m->target, in->sources[i].is_dir, NULL) < 0)
		in->made[i] = false;
}

static int put_mount(
	const struct inside *in, const struct attach *a, size_t i, struct cloche_err *err)
{
	const struct room_mount *m = &in->spec->mounts[i];

	if (m->guard && !in->sources[i].path)
		return in->trees[m->guard - 1] < 0 ? 0
						   : attach_guard(a->root, in->trees[m->guard - 1],
							     in->spec, m, 0, err);
	if (in->trees[i] < 0)
		return 0;
	if (m->closed) {
		put_closed(in, a->root, i);
		return 0;
	}
	return attach_tree(a, i, in->trees[i], m->target, in->sources[i].is_dir, err);
}

static bool has_repository(const struct room_spec *spec)
{
	for (size_t i = 0; i < spec->mounts_n; i++)
		if (spec->mounts[i].hooks || spec->mounts[i].text)
			return true;
	return false;
}

/* Make a file system for copies of configurations, in which the room may write. Everything else of
 * ours will be read-only (keep_own). */
static int make_copies(struct inside *in, struct target_root *root, struct cloche_err *err)
{
	static const struct mount_option options[] = {
		{"mode", "0755"}, {"size", "128m"}, {"nr_inodes", "16384"}, {NULL, NULL}};
	_cleanup_fd_ int at = -1, tree = -1;
	struct stat st;
	int r;

	if (!has_repository(in->spec))
		return 0;
	r = parts_mkdir(root->fd, &ROOM_GIT_CONFIG[1], 0755, err);
	/* Links lead through our directory, whoever runs git. */
	if (r == 0 &&
		(fstatat(root->fd, &ROOMCTL_DIR[1], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			fchmodat(root->fd, &ROOMCTL_DIR[1], (st.st_mode & 0755) | 0111, 0) < 0))
		r = err_sys(err, errno, "open " ROOMCTL_DIR " to everybody in the room");
	if (r == 0)
		r = tree = mount_new("tmpfs", options, PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	if (r >= 0)
		r = mount_attach(tree, root->fd, &ROOM_GIT_CONFIG[1], ROOM_GIT_CONFIG, err);
	if (r < 0)
		return r;
	at = fs_open_beneath(root->fd, &ROOM_GIT_CONFIG[1], O_PATH | O_DIRECTORY);
	r = at < 0 ? at : target_add_scratch(root, at);
	if (r < 0)
		return err_sys(err, -r, "open " ROOM_GIT_CONFIG " in the room");
	r = in->copies = mount_clone(at, "", 0, err);
	return r < 0 ? r : 0;
}

/* When all are in their places. */
static int put_rest(struct inside *in, const struct attach *a, struct cloche_err *err)
{
	int r = attach_covers(in->spec, a->root, &in->room->ns.base.config_fd, err);

	for (size_t i = 0; i < in->spec->mounts_n && r == 0; i++)
		if (in->spec->mounts[i].also && in->trees[i] >= 0)
			r = attach_again(a, i, in->sources[i].is_dir, err);
	for (size_t i = 0; i < in->spec->mounts_n && r == 0; i++)
		if (in->made[i])
			r = attach_close(a->root, &in->spec->mounts[i], err);
	return r;
}

static int put_mounts(struct inside *in, struct target_root *root, struct cloche_err *err)
{
	const struct attach a = {.root = root, .spec = in->spec, .trees = in->trees};
	int r = make_copies(in, root, err);

	for (size_t i = 0; i < in->spec->mounts_n && r == 0; i++) {
		r = put_mount(in, &a, i, err);
		if (r < 0)
			r = err_wrap(err, r, "mount %s", in->spec->mounts[i].source);
	}
	return r < 0 ? r : put_rest(in, &a, err);
}

/* Directories in which the furnishing finds its own files. No image needs one to be a link. */
static int check_tops(int root, struct cloche_err *err)
{
	static const char *const tops[] = {"run", "etc", "dev", "proc", "sys"};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (fstatat(root, tops[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			return err_set(err, E_DENIED,
				"/%s of the image is not a directory, and a room needs one there",
				tops[i]);
	return 0;
}

/* Cover what an engine shows of the machine beyond what a room may see. */
static int cover(int root, struct cloche_err *err)
{
	int r = parts_mkdir(root, "run/cloche/empty", 0555, err);

	if (r == 0)
		r = devices_cover(root, err);
	if (r == 0)
		r = procfs_cover(root, true, err);
	return r == 0 ? sysfs_cover(root, err) : r;
}

/* Complete an empty root, in which the host's files are mounted already. */
static int fill_root(int host, int root, bool gateway, struct cloche_err *err)
{
	int r = hostview_make_links(host, root, err);

	return r < 0 ? r : etc_make_plain(host, root, gateway, err);
}

static int add_names(const struct target_root *root, bool gateway, struct cloche_err *err)
{
	_cleanup_fd_ int files = -1;
	int r = parts_mkdir(root->fd, "run/cloche/etc", 0755, err);

	if (r < 0)
		return r;
	files = openat(root->fd, "run/cloche/etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return files < 0 ? err_sys(err, errno, "open /run/cloche/etc")
			 : rootfs_mount_names(gateway, root, files, err);
}

/* Add the root and the temporary file systems in which files are made (describe.c). Nothing of the
 * host is mounted over them yet. */
static int find_scratch(const struct inside *in, struct target_root *root, struct cloche_err *err)
{
	static const char *const paths[] = {"run", "tmp", "home", "root", "etc", "var"};
	int r = target_add_scratch(root, root->fd);

	for (size_t i = 0; i < ARRAY_SIZE(paths) && r == 0; i++) {
		_cleanup_fd_ int fd = -1;

		if (i < 2 || in->spec->root == ROOM_ROOT_HOST)
			fd = openat(
				root->fd, paths[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			r = target_add_scratch(root, fd);
	}
	return r < 0 ? err_sys(err, -r, "look at the room's file systems") : 0;
}

/* Make everything that is not mounted. */
static int fill(const struct inside *in, const struct target_root *root, struct cloche_err *err)
{
	const bool gateway = in->spec->net == ROOM_NET_GATEWAY;
	int r = cover(root->fd, err);

	if (r == 0 && in->spec->root == ROOM_ROOT_HOST)
		r = fill_root(in->host, root->fd, gateway, err);
	if (r == 0)
		r = parts_mkdir(root->fd, "run/lock", 01777, err);
	if (r == 0)
		r = add_names(root, gateway, err);
	for (char *const *p = in->spec->places; r == 0 && p && *p; p++)
		fd_close(target_open(root, *p, true, NULL));
	if (r < 0 || !gateway)
		return r;
	if (in->spec->root == ROOM_ROOT_HOST)
		return trust_link_policies(root->fd, err);
	/* An image may have something else there. Then its browsers do not know the gateway. */
	(void)!trust_link_policies(root->fd, NULL);
	return 0;
}

/* So that not even root of the room exchanges what we have there. */
static int keep_own(const struct inside *in, int root, struct cloche_err *err)
{
	_cleanup_fd_ int tree = mount_clone(root, &ROOMCTL_DIR[1], MOUNT_ATTR_RDONLY, err);
	int r = tree < 0 ? tree : mount_attach(tree, root, &ROOMCTL_DIR[1], ROOMCTL_DIR, err);

	if (r < 0 || in->copies < 0)
		return r;
	return mount_attach(in->copies, root, &ROOM_GIT_CONFIG[1], ROOM_GIT_CONFIG, err);
}

static int furnish_files(struct inside *in, struct cloche_err *err)
{
	struct target_root root = {.fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
	_cleanup_fd_ int fd = root.fd;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "open the room's root");
	r = check_tops(fd, err);
	if (r == 0)
		r = find_scratch(in, &root, err);
	if (r == 0)
		r = take_mounts(in, fd, err);
	if (r == 0)
		r = fill(in, &root, err);
	if (r == 0)
		r = put_mounts(in, &root, err);
	if (r == 0 && in->spec->ca_fd >= 0)
		r = trust_install(&root, in->spec->ca_fd, err);
	return r == 0 ? keep_own(in, fd, err) : r;
}

static int furnish(void *arg, struct cloche_err *err)
{
	struct inside *in = arg;
	int r;

	umask(0);
	if (in->user >= 0 && setns(in->user, CLONE_NEWUSER) < 0)
		return err_sys(err, errno, "enter the room's user namespace");
	/* Files that are made there have to belong to root of the room. */
	if (in->user >= 0 && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		return err_sys(err, errno, "become root of the room");
	if (setns(in->net, CLONE_NEWNET) < 0)
		return err_sys(err, errno, "enter the room's network");
	r = in->spec->net == ROOM_NET_GATEWAY ? netcapture_setup(&in->room->ns.net, err)
					      : netcapture_loopback_only(err);
	if (r < 0)
		return r;
	if (setns(in->mount, CLONE_NEWNS) < 0)
		return err_sys(err, errno, "enter the room's mounts");
	return furnish_files(in, err);
}

int inside_furnish(struct program_room *room, const struct room_spec *spec,
	const struct judged_source *sources, struct cloche_err *err)
{
	struct inside in = {room, spec, sources, -1, -1, -1, -1, NULL, NULL, -1};
	int r = open_all(&in, err);

	in.host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && in.host < 0)
		r = err_sys(err, errno, "open the root");
	in.trees = malloc((spec->mounts_n + 1) * sizeof(*in.trees));
	in.made = calloc(spec->mounts_n + 1, sizeof(*in.made));
	if (r == 0 && (!in.trees || !in.made))
		r = err_nomem(err);
	for (size_t i = 0; in.trees && i < spec->mounts_n; i++)
		in.trees[i] = -1;
	if (r == 0)
		r = ns_run(furnish, &in, err);
	fd_close(in.user);
	fd_close(in.mount);
	fd_close(in.net);
	fd_close(in.host);
	fd_close(in.copies);
	for (size_t i = 0; in.trees && i < spec->mounts_n; i++)
		fd_close(in.trees[i]);
	free(in.trees);
	free(in.made);
	return r;
}
