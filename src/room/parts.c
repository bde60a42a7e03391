/* SPDX-License-Identifier: Apache-2.0 */
#include "room/parts.h"
#include "base/fd.h"
#include "jail/sys.h"
#include "room/mount.h"
#include "room/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int parts_mkdir(int root, const char *path, unsigned mode, struct cloche_err *err)
{
	if (mkdirat(root, path, (mode_t)mode) < 0)
		return errno == EEXIST ? 0 : err_sys(err, errno, "make /%s in the room", path);
	return 0;
}

int parts_mkdirs(int root, const char *const *paths, unsigned mode, struct cloche_err *err)
{
	int r = 0;

	for (; *paths && r == 0; paths++)
		r = parts_mkdir(root, *paths, mode, err);
	return r;
}

int parts_file(int root, const char *path, struct str text, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "make /%s in the room", path);
	r = text.n ? fd_write_all(fd, text.p, text.n) : 0;
	return r < 0 ? err_sys(err, -r, "write /%s in the room", path) : 0;
}

/* Make an empty file to mount on; an existing one is fine. */
static int parts_make_place(int root, const char *path, struct cloche_err *err)
{
	if (mknodat(root, path, S_IFREG | 0644, 0) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make /%s in the room", path);
	return 0;
}

/* Copy the mount of source, and make an entry at path for it. Return the copy, or -ENOENT (without
 * err) if source does not exist. */
static int parts_copy(int root, const char *source, const char *path, bool dir, uint64_t attrs,
	struct cloche_err *err)
{
	_cleanup_fd_ int tree = mount_clone_if_there(AT_FDCWD, source, attrs, err);
	int r = tree;

	if (tree >= 0)
		r = dir ? parts_mkdir(root, path, 0755, err) : parts_make_place(root, path, err);
	return r < 0 ? r : TAKE_FD(tree);
}

int parts_bind(int root, const char *source, const char *path, bool dir, uint64_t attrs,
	struct cloche_err *err)
{
	_cleanup_fd_ int tree = parts_copy(root, source, path, dir, attrs, err);

	if (tree < 0)
		return tree == -ENOENT ? 0 : tree;
	return mount_attach(tree, root, path, source, err);
}

bool parts_collect(struct parts_view *v, int tree, const char *path, bool dir)
{
	if (!v->pending)
		v->pending = calloc(PARTS_PENDING, sizeof(*v->pending));
	if (!v->pending || v->pending_n == PARTS_PENDING ||
		strlen(path) >= sizeof(v->pending[0].path)) {
		fd_close(tree);
		return false;
	}
	snprintf(v->pending[v->pending_n].path, sizeof(v->pending[0].path), "%s", path);
	v->pending[v->pending_n].dir = dir;
	v->pending[v->pending_n++].tree = tree;
	return true;
}

int parts_show(struct parts_view *v, const char *source, const char *path, bool dir, uint64_t attrs,
	struct cloche_err *err)
{
	int tree;

	if (!v->defer)
		return parts_bind(v->root, source, path, dir, attrs, err);
	tree = parts_copy(v->root, source, path, dir, attrs, err);
	if (tree < 0)
		return tree == -ENOENT ? 0 : tree;
	return parts_collect(v, tree, path, dir)
		       ? 0
		       : err_set(err, E_INTERNAL, "too many parts of the host");
}

int parts_attach(struct parts_view *v, const struct target_root *to, struct cloche_err *err)
{
	size_t i;
	int r = 0;

	for (i = 0; i < v->pending_n && r == 0; i++) {
		_cleanup_fd_ int at = target_open(to, v->pending[i].path, v->pending[i].dir, err);

		r = at < 0 ? at : mount_attach(v->pending[i].tree, at, "", v->pending[i].path, err);
	}
	return r;
}

void parts_view_done(struct parts_view *v)
{
	while (v->pending_n > 0) {
		v->pending_n--;
		fd_close(v->pending[v->pending_n].tree);
	}
	free(v->pending);
	v->pending = NULL;
}
