/* SPDX-License-Identifier: Apache-2.0 */
/* On trees of plain files that look like control groups; and this machine. */
#include "fs/fs.h"
#include "manager/memory.h"
#include "tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#define GIB ((uint64_t)1 << 30)

static char top[TAP_DIR_BYTES];

static const char *at(const char *dir, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s/%s", top, dir, file);
	return path;
}

static void put(const char *dir, const char *file, const char *text)
{
	must(fs_mkdirs(at(dir, ""), 0755, NULL) == 0);
	must(fs_write_atomic(AT_FDCWD, at(dir, file), str_from(text), 0644, false, NULL) == 0);
}

static void expect(const char *group, uint64_t total, uint64_t available)
{
	struct memory m = {64 * GIB, 60 * GIB};

	memory_bound(&m, at(group, "."));
	check_int(m.total, total);
	check_int(m.available, available);
}

static void version_2(void)
{
	put("/two", "cgroup.procs", "");
	expect("/two", 64 * GIB, 60 * GIB);
	put("/two", "memory.max", "max\n");
	put("/two/job", "cgroup.procs", "");
	put("/two/job", "memory.max", "4294967296\n");
	put("/two/job", "memory.current", "3221225472\n");
	put("/two/job", "memory.stat", "anon 1073741824\nfile 0\ninactive_file 2147483648\n");
	put("/two/job/step", "cgroup.procs", "1\n");
	put("/two/job/step", "memory.max", "max\n");
	put("/two/job/step", "memory.current", "3221225472\n");
	expect("/two/job/step", 4 * GIB, 3 * GIB);
	expect("/two/job", 4 * GIB, 3 * GIB);
	expect("/two", 64 * GIB, 60 * GIB);
	/* The least of several holds, and more may be in use than is given. */
	put("/two/job/step", "memory.max", "2147483648\n");
	expect("/two/job/step", 2 * GIB, 0);
}

static void version_1(void)
{
	put("/one", "cgroup.procs", "");
	put("/one", "memory.limit_in_bytes", "9223372036854771712\n");
	put("/one", "memory.usage_in_bytes", "30000000000\n");
	put("/one/docker", "cgroup.procs", "1\n");
	put("/one/docker", "memory.limit_in_bytes", "1073741824\n");
	put("/one/docker", "memory.usage_in_bytes", "536870912\n");
	put("/one/docker", "memory.stat", "inactive_file 0\ntotal_inactive_file 536870912\n");
	expect("/one/docker", GIB, GIB);
	expect("/one", 64 * GIB, 60 * GIB);
}

static void this_machine(void)
{
	struct memory m, same = {GIB, GIB};

	memory_read(&m);
	check(m.total >= m.available && m.available > 0);
	memory_bound(&same, NULL);
	memory_bound(&same, "/no/such/group");
	check(same.total == GIB && same.available == GIB);
}

int main(void)
{
	tap_dir(top);
	run_test(version_2);
	run_test(version_1);
	run_test(this_machine);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
