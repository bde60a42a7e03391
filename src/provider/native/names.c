/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "provider/native/mount.h"
#include "provider/native/parts.h"
#include "provider/native/target.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static int mount_name(const struct target_root *root, int files, int etc, const char *name,
	struct str text, struct cloche_err *err)
{
	_cleanup_fd_ int tree = -1, at = -1;
	char path[32];
	int e = parts_file(files, name, text, err);

	if (e < 0)
		return e;
	tree = mount_clone(files, name, 0, err);
	if (tree < 0)
		return tree == -ENOENT ? err_sys(err, ENOENT, "copy %s", name) : tree;
	snprintf(path, sizeof(path), "/etc/%s", name);
	/* Remove a link that leads nowhere; it belongs to the overlay, not to the directory below.
	 */
	if (target_find(root, path, NULL) == -ENOENT)
		(void)unlinkat(etc, name, 0);
	at = target_open(root, path, false, err);
	return at < 0 ? at : mount_attach(tree, at, "", path, err);
}

/* In an overlay, /etc stays as it was except for the names, which are mounted over it: they are
 * this room's own, and the usual link to a resolver's file would lead nowhere. */
int rootfs_mount_names(
	const struct rootfs *r, const struct target_root *root, int files, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf hosts = BUF_INIT(4096), resolv = BUF_INIT(4096);
	_cleanup_(buf_donep) struct buf name = BUF_INIT(4096);
	_cleanup_fd_ int etc = target_open(root, "/etc", true, err);
	int e;

	if (etc < 0)
		return etc;
	if (etc_hosts(r, &hosts) < 0 || etc_resolv_conf(r, &resolv) < 0 ||
		buf_printf(&name, "%s\n", ROOTFS_HOSTNAME) < 0)
		return err_nomem(err);
	e = mount_name(root, files, etc, "hosts", buf_str(&hosts), err);
	if (e == 0)
		e = mount_name(root, files, etc, "resolv.conf", buf_str(&resolv), err);
	return e < 0 ? e : mount_name(root, files, etc, "hostname", buf_str(&name), err);
}
