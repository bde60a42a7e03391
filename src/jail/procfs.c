/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A fresh /proc shows the processes of the room's pid namespace only. What it tells and lets change
 * of the machine as a whole is covered: files by /dev/null, directories by an empty one, and the
 * settings become read-only. The user namespace denies most of it anyway; this is the second wall.
 * /sys would show the machine's devices, so it is an empty directory with the processors in it,
 * which run-times count. */
#include "base/fd.h"
#include "jail/mount.h"
#include "jail/ns.h"
#include "jail/parts.h"
#include "jail/sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const masked_files[] = {
	"interrupts", "kcore", "keys", "latency_stats", "sched_debug", "timer_list", "timer_stats"};
static const char *const masked_dirs[] = {"acpi", "asound", "scsi"};
static const char *const read_only[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};

enum what { MASK_FILE, MASK_DIR, MAKE_READ_ONLY };

static int cover(int root, const char *name, enum what what, struct cloche_err *err)
{
	uint64_t attrs = MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC;
	_cleanup_fd_ int tree = -1;
	char path[64];

	snprintf(path, sizeof(path), "proc/%s", name);
	/* Kernels differ in what they have. */
	if (faccessat(root, path, F_OK, 0) < 0)
		return 0;
	if (what == MASK_FILE)
		tree = mount_clone(root, "dev/null", 0, err);
	else if (what == MASK_DIR)
		tree = mount_clone(root, "run/cloche/empty", attrs, err);
	else
		tree = mount_clone(root, path, attrs, err);
	if (tree < 0)
		return tree == -ENOENT ? err_sys(err, ENOENT, "cover /%s", path) : tree;
	return mount_attach(tree, root, path, path, err);
}

int procfs_make(int root, struct cloche_err *err)
{
	_cleanup_fd_ int tree = -1;
	size_t i;
	int r = parts_mkdir(root, "proc", 0555, err);

	if (r < 0)
		return r;
	tree = mount_new("proc", NULL, PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	if (tree < 0) {
		if (err && err->sys_errno == EPERM)
			err_hint(err, "parts of /proc are covered here, as in a container: run it "
				      "with an uncovered /proc (docker run --security-opt "
				      "systempaths=unconfined)");
		return tree;
	}
	r = mount_attach(tree, root, "proc", "/proc", err);
	for (i = 0; i < ARRAY_SIZE(masked_files) && r == 0; i++)
		r = cover(root, masked_files[i], MASK_FILE, err);
	for (i = 0; i < ARRAY_SIZE(masked_dirs) && r == 0; i++)
		r = cover(root, masked_dirs[i], MASK_DIR, err);
	for (i = 0; i < ARRAY_SIZE(read_only) && r == 0; i++)
		r = cover(root, read_only[i], MAKE_READ_ONLY, err);
	return r;
}

int sysfs_make(int root, struct cloche_err *err)
{
	static const char *const dirs[] = {"sys", "sys/devices", "sys/devices/system"};
	static const char *const shown[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++)
		r = parts_mkdir(root, dirs[i], 0555, err);
	for (i = 0; i < ARRAY_SIZE(shown) && r == 0; i++)
		r = parts_bind(root, shown[i], shown[i] + 1, true,
			MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	return r;
}
