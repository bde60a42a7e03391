/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A fresh /proc shows only the processes of the room's pid namespace. The files that show or change
 * the machine as a whole are covered: files by /dev/null, directories by an empty one, and the
 * settings become read-only. The user namespace denies most of it anyway; this is the second wall.
 * /sys would show the machine's devices, so it is an empty directory with only the processors in
 * it, which run-times count; their temperature records are covered.
 *
 * In a user namespace a fresh /proc can be mounted only if a fully visible one exists already. So
 * if a room may make user namespaces (--nested), nothing is covered, and the first wall has to do.
 */
#include "base/fd.h"
#include "jail/sys.h"
#include "provider/native/mount.h"
#include "provider/native/ns.h"
#include "provider/native/parts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const masked_files[] = {
	"interrupts", "kcore", "keys", "latency_stats", "sched_debug", "timer_list", "timer_stats"};
static const char *const masked_dirs[] = {"acpi", "asound", "scsi"};
static const char *const read_only[] = {"bus", "fs", "irq", "pressure", "sys", "sysrq-trigger"};

enum what { MASK_FILE, MASK_DIR, MAKE_READ_ONLY };

static int cover(int root, const char *name, enum what what, struct cloche_err *err)
{
	uint64_t attrs = MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC;
	_cleanup_fd_ int tree = -1;
	char path[64];

	snprintf(path, sizeof(path), "proc/%s", name);
	/* Not every kernel has all of them. */
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

int procfs_make(int root, bool bare, struct cloche_err *err)
{
	_cleanup_fd_ int tree = -1;
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
	return r < 0 || bare ? r : procfs_cover(root, err);
}

int procfs_cover(int root, struct cloche_err *err)
{
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(masked_files) && r == 0; i++)
		r = cover(root, masked_files[i], MASK_FILE, err);
	for (i = 0; i < ARRAY_SIZE(masked_dirs) && r == 0; i++)
		r = cover(root, masked_dirs[i], MASK_DIR, err);
	for (i = 0; i < ARRAY_SIZE(read_only) && r == 0; i++)
		r = cover(root, read_only[i], MAKE_READ_ONLY, err);
	return r;
}

/* Cover the records of when each processor was throttled, which reveal the load from others. */
int sysfs_cover(int root, struct cloche_err *err)
{
	char path[64];
	unsigned i;
	int r = 0;

	for (i = 0; r == 0; i++) {
		_cleanup_fd_ int tree = -1;

		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u", i);
		if (faccessat(root, path, F_OK, 0) < 0)
			return 0;
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/thermal_throttle", i);
		if (faccessat(root, path, F_OK, 0) < 0)
			continue;
		tree = mount_clone(root, "run/cloche/empty",
			MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
		r = tree < 0 ? err_wrap(err, "cover /%s", path)
			     : mount_attach(tree, root, path, path, err);
	}
	return r;
}

int sysfs_make(int root, bool nested, struct cloche_err *err)
{
	static const char *const dirs[] = {"sys", "sys/devices", "sys/devices/system"};
	/* Container engines look for these. */
	static const char *const groups[] = {"sys/fs", "sys/fs/cgroup"};
	static const char *const shown[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++)
		r = parts_mkdir(root, dirs[i], 0555, err);
	for (i = 0; i < ARRAY_SIZE(groups) && r == 0 && nested; i++)
		r = parts_mkdir(root, groups[i], 0555, err);
	for (i = 0; i < ARRAY_SIZE(shown) && r == 0; i++)
		r = parts_bind(root, shown[i], shown[i] + 1, true,
			MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	return r == 0 ? sysfs_cover(root, err) : r;
}
