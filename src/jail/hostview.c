/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The host's system directories hold programs and libraries that its package manager installed and
 * everybody may read; they are shown read-only, or below a layer of the room's own. On most systems
 * all but /usr are links into it, which are made anew. Package stores (Nix, Guix) are of the same
 * kind, and always read-only. Everything else, above all
 * /home, /root, /var, /run, /srv, /opt, /mnt and /media, does not exist in the room unless mounted
 * (INV-HOST-HIDDEN).
 */
#include "base/fd.h"
#include "jail/layers.h"
#include "jail/mount.h"
#include "jail/parts.h"
#include "jail/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const stores[] = {"/nix/store", "/gnu/store"};

/* "/bin" -> "usr/bin"; only links between the system's directories are worth making. */
static int copy_link(int root, const char *path, bool *ret_is_link, struct cloche_err *err)
{
	char to[256];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	*ret_is_link = n > 0;
	if (n <= 0)
		return 0;
	to[n] = '\0';
	if (symlinkat(to, root, path + 1) < 0)
		return err_sys(err, errno, "make the link %s", path);
	return 0;
}

static int show_store(struct parts_view *v, const char *path, struct cloche_err *err)
{
	char parent[32];
	int r;

	if (access(path, F_OK) < 0)
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)strcspn(path + 1, "/"), path + 1);
	r = parts_mkdir(v->root, parent, 0755, err);
	return r < 0 ? r
		     : parts_show(v, path, path + 1, true, MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
}

int hostview_make(struct parts_view *v, const struct rootfs *r, struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	size_t i;
	int e = 0;

	for (i = 0; dirs[i] && e == 0; i++) {
		bool is_link;

		e = copy_link(v->root, dirs[i], &is_link, err);
		if (e < 0 || is_link)
			continue;
		if (r->host_trees[i] >= 0)
			e = parts_mkdir(v->root, dirs[i] + 1, LAYERS_COVERED, err);
		else
			e = parts_show(v, dirs[i], dirs[i] + 1, true,
				MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
	}
	for (i = 0; i < ARRAY_SIZE(stores) && e == 0; i++)
		e = show_store(v, stores[i], err);
	return e;
}
