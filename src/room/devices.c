/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "jail/sys.h"
#include "room/mount.h"
#include "room/parts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* Device nodes cannot be made in a user namespace, so single nodes of the host are mounted. None of
 * them leads to the host: /dev/tty is the terminal of the process that opens it. They are read-only
 * to protect the times and modes of the host's nodes; devices can still be written to. */
static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
	const char *name, *to;
} links[] = {{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}};

static int make_pts(int root, const struct idmap *ids, struct cloche_err *err)
{
	/* The machine has 3072 of them for all but itself, and the memory that they use is not
	 * counted. gid 5 is tty everywhere, if it can be mapped. */
	const struct mount_option options[] = {{"newinstance", NULL}, {"ptmxmode", "0666"},
		{"mode", "0620"}, {"max", "256"}, {ids->range ? "gid" : NULL, "5"}, {NULL, NULL}};
	_cleanup_fd_ int tree = -1;
	int r = parts_mkdir(root, "dev/pts", 0755, err);

	if (r < 0)
		return r;
	tree = mount_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	return tree < 0 ? tree : mount_attach(tree, root, "dev/pts", "/dev/pts", err);
}

int devices_make(int root, const struct idmap *ids, struct cloche_err *err)
{
	char source[32];
	size_t i;
	int r = parts_mkdir(root, "dev", 0755, err);

	for (i = 0; i < ARRAY_SIZE(nodes) && r == 0; i++) {
		snprintf(source, sizeof(source), "/dev/%s", nodes[i]);
		r = parts_bind(root, source, source + 1, false,
			MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	}
	for (i = 0; i < ARRAY_SIZE(links) && r == 0; i++) {
		snprintf(source, sizeof(source), "dev/%s", links[i].name);
		if (symlinkat(links[i].to, root, source) < 0)
			r = err_sys(err, errno, "make /%s", source);
	}
	if (r == 0)
		r = parts_mkdir(root, "dev/shm", 01777, err);
	return r == 0 ? make_pts(root, ids, err) : r;
}

int devices_cover(int root, struct cloche_err *err)
{
	char path[32];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(nodes) && r == 0; i++) {
		_cleanup_fd_ int tree = -1;

		snprintf(path, sizeof(path), "dev/%s", nodes[i]);
		tree = mount_clone_if_there(
			root, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
		if (tree < 0 && tree != -ENOENT)
			return tree;
		if (tree >= 0)
			r = mount_attach(tree, root, path, path, err);
	}
	return r;
}
