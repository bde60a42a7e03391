/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The root is one overlay over lower/, which has the room's own files. A directory of the host
 * cannot be part of that: overlayfs ignores what is mounted inside a layer, and an ordinary user
 * may not use the host's root as a layer. So each of these directories gets an overlay of its own,
 * whose upper layer is the directory of the same name in the one upper tree. The inner overlays are
 * made before the outer one: in this order the kernel sees that no upper layer lies in one that is
 * already in use.
 *
 * An ordinary user's room maps one id. The host's files belong to nobody there, so overlayfs could
 * neither copy them up nor make anything beside them. But where a directory already exists in the
 * upper layer, its owner is the one that is shown. So the directories in which software is usually
 * installed are made beforehand. With a range of ids the lower layer is an idmapped mount, and
 * nothing is needed. */
#include "room/layers.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"
#include "room/mount.h"
#include "room/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LOCAL_DEPTH = 4, OWN_MAX = 1024 };

static const char *const host_dirs[LAYERS_HOST_DIRS + 1] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};

const char *const *layers_host_dirs(void)
{
	return host_dirs;
}

int layers_make(int base, struct cloche_err *err)
{
	int r = parts_mkdir(base, "lower", 0755, err);

	if (r == 0)
		r = parts_mkdir(base, "upper", 0755, err);
	return r == 0 ? parts_mkdir(base, "work", 0700, err) : r;
}

int layers_try(int scratch, struct cloche_err *err)
{
	_cleanup_fd_ int base = -1, tree = -1;
	int r = parts_mkdir(scratch, "try", 0700, err);

	if (r < 0)
		return r;
	base = openat(scratch, "try", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = base < 0 ? err_sys(err, errno, "open a directory in a tmpfs") : layers_make(base, err);
	if (r == 0)
		r = tree = layers_overlay(base, "", false, err);
	fs_remove_tree(scratch, "try");
	return MIN(r, 0);
}

int layers_mount(
	int base, const char *lower, const char *upper, const char *work, struct cloche_err *err)
{
	const struct mount_option options[] = {{"lowerdir", lower}, {"upperdir", upper},
		{"workdir", work}, {"userxattr", NULL}, {NULL, NULL}};

	/* The layers are named relative to the working directory. */
	if (fchdir(base) < 0)
		return err_sys(err, errno, "enter the room's layers");
	return mount_new("overlay", options, PARTS_QUIET, err);
}

int layers_overlay(int base, const char *name, bool places, struct cloche_err *err)
{
	char lower[64], upper[64], work[64];
	int r;

	snprintf(lower, sizeof(lower), "lower%s%s%s", *name ? "/" : "", name,
		places ? ":" LAYERS_PLACES : "");
	snprintf(upper, sizeof(upper), "upper%s%s", *name ? "/" : "", name);
	snprintf(work, sizeof(work), "work/%s", *name ? name : "root");
	r = *name ? parts_mkdir(base, upper, 0755, err) : 0;
	if (r == 0)
		r = parts_mkdir(base, work, 0700, err);
	return r < 0 ? r : layers_mount(base, lower, upper, work, err);
}

struct owning {
	int left; /* directories that may still be made */
};

/* Make the directory `name` of lower in upper and, down to that depth, the directories in it. */
static int own_dir(struct owning *o, int lower, int upper, const char *name, int depth)
{
	_cleanup_(fs_list_closep) DIR *from = fs_list(lower, name);
	_cleanup_fd_ int to = -1;
	struct dirent *e;
	struct stat st;
	int r = 0;

	/* Directories that we may not read, and links, stay as they are. */
	if (!from || fstat(dirfd(from), &st) < 0)
		return 0;
	if (o->left-- == 0)
		return 0;
	if (*name != '.' && mkdirat(upper, name, st.st_mode & 0777) < 0 && errno != EEXIST)
		return -errno;
	to = openat(upper, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return -errno;
	while (r == 0 && depth > 0 && o->left > 0 && (e = readdir(from)))
		if (e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
			r = own_dir(o, dirfd(from), to, e->d_name, depth - 1);
	return r;
}

/* The directories where npm -g and pip install if they do not use "local". */
static int own_libraries(struct owning *o, int lower, int upper)
{
	_cleanup_(fs_list_closep) DIR *lib = fs_list(lower, "lib");
	struct dirent *e;
	char path[300];
	int r = 0;

	while (lib && r == 0 && (e = fs_list_next(lib))) {
		if (strcmp(e->d_name, "node_modules") != 0 && strncmp(e->d_name, "python3", 7) != 0)
			continue;
		snprintf(path, sizeof(path), "lib/%s", e->d_name);
		r = own_dir(o, lower, upper, path, 1);
	}
	return r;
}

int layers_own(int base, const char *name, struct cloche_err *err)
{
	struct owning o = {.left = OWN_MAX};
	_cleanup_fd_ int lower = -1, upper = -1;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "lower/%s", name);
	lower = openat(base, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	snprintf(path, sizeof(path), "upper/%s", name);
	upper = openat(base, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lower < 0 || upper < 0)
		return err_sys(err, errno, "open the layers of /%s", name);
	r = own_dir(&o, lower, upper, ".", 1);
	if (r == 0)
		r = own_dir(&o, lower, upper, "local", LOCAL_DEPTH);
	if (r == 0)
		r = own_libraries(&o, lower, upper);
	return r < 0 ? err_sys(err, -r, "make the directories of /%s", name) : 0;
}
