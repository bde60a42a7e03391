/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A fresh /proc shows only the processes of the room's pid namespace. The files that show or change
 * the machine as a whole are covered: files by /dev/null, directories by an empty one, and the
 * settings become read-only. The user namespace denies most of it anyway; this is the second wall.
 * /sys would show the machine's devices, so it is an empty directory with only the processors and
 * the room's own control group in it, by which run-times size themselves; the processors'
 * temperature records are covered. In a room that an engine made, such a directory is laid over its
 * /sys.
 *
 * In a user namespace a fresh /proc can be mounted only if a fully visible one exists already. So
 * if a room may make user namespaces (--nested), nothing is covered, and the first wall has to do.
 */
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"
#include "room/cgroup-file.h"
#include "room/mount.h"
#include "room/parts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum what { MASK_FILE, MASK_DIR, MAKE_READ_ONLY };
static const struct {
	const char *name;
	enum what what;
} covered[] = {{"interrupts", MASK_FILE}, {"kcore", MASK_FILE}, {"keys", MASK_FILE},
	{"latency_stats", MASK_FILE}, {"sched_debug", MASK_FILE}, {"timer_list", MASK_FILE},
	{"timer_stats", MASK_FILE}, {"acpi", MASK_DIR}, {"asound", MASK_DIR}, {"scsi", MASK_DIR},
	{"bus", MAKE_READ_ONLY}, {"fs", MAKE_READ_ONLY}, {"irq", MAKE_READ_ONLY},
	{"pressure", MAKE_READ_ONLY}, {"sys", MAKE_READ_ONLY}, {"sysrq-trigger", MAKE_READ_ONLY},
	/* From here on: what only root of the machine could read or write. */
	{"kpagecount", MASK_FILE}, {"kpageflags", MASK_FILE}, {"kpagecgroup", MASK_FILE},
	{"slabinfo", MASK_FILE}, {"vmallocinfo", MASK_FILE}, {"pagetypeinfo", MASK_FILE},
	{"1", MAKE_READ_ONLY}};
enum { COVERED_ALWAYS = ARRAY_SIZE(covered) - 7 };

static const char *const sys_dirs[] = {
	"sys", "sys/devices", "sys/devices/system", "sys/fs", "sys/fs/cgroup", NULL};
/* All that is seen of /sys. The last one is shown only if an engine made the room, and with it the
 * view of the room's own group there. */
static const char *const shown[] = {
	"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup"};
enum { SHOWN_OF_HOST = ARRAY_SIZE(shown) - 1 };
#define SYS_ATTRS (MOUNT_ATTR_RDONLY | PARTS_QUIET | MOUNT_ATTR_NOEXEC)

static int procfs_cover_one(int root, const char *name, enum what what, struct cloche_err *err)
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
	return tree < 0 ? err_wrap(err, tree, "cover /%s", path)
			: mount_attach(tree, root, path, path, err);
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
	return r < 0 || bare ? r : procfs_cover(root, false, err);
}

int procfs_cover(int root, bool by_root, struct cloche_err *err)
{
	size_t n = by_root ? ARRAY_SIZE(covered) : COVERED_ALWAYS;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = procfs_cover_one(root, covered[i].name, covered[i].what, err);
	return r;
}

/* Cover the records of when each processor was throttled, which reveal the load from others. */
static int cover_throttling(int root, struct cloche_err *err)
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
		r = tree < 0 ? err_wrap(err, tree, "cover /%s", path)
			     : mount_attach(tree, root, path, path, err);
	}
	return r;
}

static int show_group(int root, const struct cgroup *g, struct cloche_err *err)
{
	_cleanup_(freep) char *inner = NULL;
	char path[64];
	int r = 0;

	if (g->version == 2) {
		inner = fs_join(g->path[0], CGROUP_INNER);
		return inner ? parts_bind(root, inner, "sys/fs/cgroup", true, SYS_ATTRS, err)
			     : err_nomem(err);
	}
	for (unsigned c = 0; c < CGROUP_N && r == 0; c++) {
		snprintf(path, sizeof(path), "sys/fs/cgroup/%s", cgroup_controller_name(c));
		if (g->path[c])
			r = parts_bind(root, g->path[c], path, true, SYS_ATTRS, err);
	}
	return r;
}

int sysfs_make(int root, const struct cgroup *group, struct cloche_err *err)
{
	int r = parts_mkdirs(root, sys_dirs, 0555, err);

	for (size_t i = 0; i < SHOWN_OF_HOST && r == 0; i++)
		r = parts_bind(root, shown[i], shown[i] + 1, true, SYS_ATTRS, err);
	if (r == 0)
		r = show_group(root, group, err);
	return r == 0 ? cover_throttling(root, err) : r;
}

/* Lay a tmpfs over /sys, which has only copies of what is shown. */
static int replace_sys(int root, int copies[static ARRAY_SIZE(shown)], struct cloche_err *err)
{
	static const struct mount_option options[] = {{"mode", "0555"}, {"size", "64k"}, {0}};
	struct mount_attr read_only_too = {.attr_set = MOUNT_ATTR_RDONLY};
	_cleanup_fd_ int over = mount_new("tmpfs", options, PARTS_QUIET | MOUNT_ATTR_NOEXEC, err);
	int r = over < 0 ? over : mount_attach(over, root, "sys", "/sys", err);

	if (r == 0)
		r = parts_mkdirs(root, sys_dirs, 0555, err);
	for (size_t i = 0; i < ARRAY_SIZE(shown) && r == 0; i++) {
		if (copies[i] < 0)
			continue;
		r = parts_mkdir(root, shown[i] + 1, 0555, err);
		if (r == 0)
			r = mount_attach(copies[i], root, shown[i] + 1, shown[i], err);
	}
	if (r == 0 && sys_mount_setattr(over, "", AT_EMPTY_PATH, &read_only_too) < 0)
		r = err_sys(err, errno, "make /sys read-only");
	return r == 0 ? cover_throttling(root, err) : r;
}

int sysfs_cover(int root, struct cloche_err *err)
{
	int copies[ARRAY_SIZE(shown)], r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		copies[i] = -1;
	if (faccessat(root, "sys", F_OK, 0) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(shown) && r == 0; i++) {
		copies[i] = mount_clone_if_there(root, shown[i] + 1, SYS_ATTRS, err);
		r = copies[i] == -ENOENT ? 0 : MIN(copies[i], 0);
	}
	if (r == 0)
		r = replace_sys(root, copies, err);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		fd_close(copies[i]);
	return r;
}
