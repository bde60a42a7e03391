/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The host's system directories hold programs and libraries that its package manager installed and
 * everybody may read; they are shown read-only. On most systems all but /usr are links into it,
 * which are made anew. Package stores (Nix, Guix) are of the same kind. Everything else, above all
 * /home, /root, /var, /run, /srv, /opt, /mnt and /media, does not exist in the room unless mounted
 * (INV-HOST-HIDDEN).
 */
#include "base/fd.h"
#include "jail/mount.h"
#include "jail/parts.h"
#include "jail/sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const dirs[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"};

/* "/bin" -> "usr/bin"; only links between the directories above are worth making. */
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

int hostview_make(int root, struct cloche_err *err)
{
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++) {
		bool is_link;

		r = copy_link(root, dirs[i], &is_link, err);
		if (r == 0 && !is_link)
			r = parts_bind(root, dirs[i], dirs[i] + 1, true,
				MOUNT_ATTR_RDONLY | PARTS_QUIET, err);
	}
	return r;
}
