/* SPDX-License-Identifier: Apache-2.0 */
/* On trees of plain files that look like control groups. What only a kernel does is tested in
 * tests/vm and tests/integration/test-limits. */
#include "fs/fs.h"
#include "room/cgroup-file.h"
#include "room/cgroup-v2.h"
#include "room/cgroup.h"
#include "tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { ORDINARY_ID = 12345, M = 1 << CGROUP_MEMORY, P = 1 << CGROUP_PIDS, C = 1 << CGROUP_CPU };

static char top[TAP_DIR_BYTES];
static struct cloche_err err;

static const char *at(const char *dir, const char *file)
{
	static char path[2][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 2];

	snprintf(p, PATH_MAX, "%s%s/%s", top, dir, file);
	return p;
}

static void put(const char *dir, const char *file, const char *text)
{
	must(fs_write_atomic(AT_FDCWD, at(dir, file), str_from(text), 0644, false, &err) == 0);
}

/* A group with what the kernel shows of it; the root of a hierarchy has no type. */
static void make(const char *dir, const char *here, const char *down, const char *processes)
{
	must(fs_mkdirs(at(dir, ""), 0755, &err) == 0);
	put(dir, "cgroup.controllers", here);
	put(dir, "cgroup.subtree_control", down);
	put(dir, "cgroup.procs", processes);
	if (dir[0])
		put(dir, "cgroup.type", "domain\n");
}

static void fresh(void)
{
	fs_remove_tree(AT_FDCWD, top);
	must(mkdir(top, 0755) == 0);
}

static void expect_choice(
	const char *own, unsigned wanted, bool managed, enum cgroup_way way, const char *parent)
{
	struct cgroup_place place = {.v2 = strdup(at(own, "")), .v2_mount = strdup(top)};
	struct cgroup_choice c;

	must(place.v2 && place.v2_mount);
	place.v2[strlen(place.v2) - 1] = '\0';
	check_int(cgroup_v2_choose(&place, wanted, managed, &c), 0);
	check_int(c.way, way);
	if (!parent)
		check(c.parent == NULL);
	else
		check(c.parent && strcmp(c.parent + strlen(top), parent) == 0);
	cgroup_choice_done(&c);
	cgroup_place_done(&place);
}

static void places_are_found(void)
{
	static const char groups[] = "12:cpu,cpuacct:/a\n5:pids:/a/b\n3:memory:/\n0::/u/s.scope\n";
	static const char mounts[] =
		"30 1 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
		"31 30 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"32 30 0:27 /a /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup c rw,cpu,cpuacct\n"
		"33 30 0:28 /other /sys/fs/cgroup/pids rw - cgroup c rw,pids\n"
		"34 30 0:29 / /sys/fs/cgroup/memory rw - cgroup c rw,memory\n";
	struct cgroup_place p;

	must(cgroup_find_in(str_from(groups), str_from(mounts), &p) == 0);
	check_z(p.v2, "/sys/fs/cgroup/unified/u/s.scope");
	check_z(p.v2_mount, "/sys/fs/cgroup/unified");
	check_z(p.v1[CGROUP_CPU], "/sys/fs/cgroup/cpu,cpuacct");
	check_z(p.v1[CGROUP_CPUACCT], "/sys/fs/cgroup/cpu,cpuacct");
	check_z(p.v1[CGROUP_MEMORY], "/sys/fs/cgroup/memory");
	/* Our group is not below what is mounted. */
	check(p.v1[CGROUP_PIDS] == NULL);
	cgroup_place_done(&p);
	must(cgroup_find_in(STR("0::/../x\n"), str_from(mounts), &p) == 0);
	check(p.v2 == NULL && p.v1[CGROUP_MEMORY] == NULL);
	cgroup_place_done(&p);
	/* A prefix of the name is not a directory above it. */
	must(cgroup_find_in(STR("4:cpu:/ab\n"), str_from(mounts), &p) == 0);
	check(p.v1[CGROUP_CPU] == NULL);
	cgroup_place_done(&p);
}

static void a_group_beside_ours_is_preferred(void)
{
	fresh();
	make("", "cpu memory pids\n", "cpu memory pids\n", "");
	make("/a", "cpu memory pids\n", "", "100\n");
	expect_choice("/a", M | P | C, false, CGROUP_WAY_READY, "");
	/* One that bounds us would not bind a room beside us. */
	put("/a", "memory.max", "1000000\n");
	expect_choice("/a", M | P | C, false, CGROUP_WAY_LEAF, "/a");
	put("/a", "memory.max", "max\n");
	put("/a", "cpu.max", "max 100000\n");
	expect_choice("/a", M | P | C, false, CGROUP_WAY_READY, "");
	/* An empty one below hands nothing down yet; the ready one is better. */
	make("/a/b", "cpu memory pids\n", "", "");
	expect_choice("/a/b", M | P | C, false, CGROUP_WAY_READY, "");
	/* As long as it has as much. */
	put("", "cgroup.subtree_control", "memory\n");
	put("", "cgroup.controllers", "memory\n");
	expect_choice("/a/b", M | P | C, false, CGROUP_WAY_ENABLE, "/a/b");
}

static void the_root_may_have_processes(void)
{
	fresh();
	make("", "cpu memory pids\n", "", "1\n2\n");
	expect_choice("", M | P, false, CGROUP_WAY_ENABLE, "");
	make("/a", "", "", "100\n");
	expect_choice("/a", M | P, false, CGROUP_WAY_ENABLE, "");
}

static void what_cannot_be_used_is_not(void)
{
	fresh();
	make("", "", "", "1\n");
	make("/a", "memory pids\n", "", "100\n");
	expect_choice("/a", C, false, CGROUP_WAY_NONE, NULL);
	expect_choice("/a", M, false, CGROUP_WAY_LEAF, "/a");
	put("/a", "cgroup.type", "threaded\n");
	expect_choice("/a", M, false, CGROUP_WAY_NONE, NULL);
}

static void only_the_managers_mark_counts(void)
{
	fresh();
	make("", "cpu memory pids\n", "cpu memory pids\n", "");
	make("/user@1000.service", "cpu memory pids\n", "cpu memory pids\n", "");
	make("/user@1000.service/x.scope", "cpu memory pids\n", "", "100\n");
	expect_choice("/user@1000.service/x.scope", M, true, CGROUP_WAY_NONE, NULL);
	if (setxattr(at("/user@1000.service", ""), "user.delegate", "1", 1, 0) < 0) {
		tap_skip("no extended attributes in /tmp");
		return;
	}
	/* That group is the manager's, with all that it has not delegated itself. */
	expect_choice("/user@1000.service/x.scope", M, true, CGROUP_WAY_NONE, NULL);
	must(setxattr(at("/user@1000.service/x.scope", ""), "user.delegate", "1", 1, 0) == 0);
	expect_choice("/user@1000.service/x.scope", M, true, CGROUP_WAY_LEAF,
		"/user@1000.service/x.scope");
}

static void as_somebody_else(void)
{
	must(setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) == 0);
	must(setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) == 0);
	expect_choice("/a", M, false, CGROUP_WAY_NONE, NULL);
	expect_choice("/b", M, false, CGROUP_WAY_LEAF, "/b");
	expect_choice("/c", M, false, CGROUP_WAY_NONE, NULL);
	_exit(tap_ok_now ? 0 : 1);
}

static void what_is_not_ours_is_left_alone(void)
{
	static const char *const files[] = {"", "cgroup.procs", "cgroup.subtree_control"};
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		tap_skip("needs root, to have files of two owners");
		return;
	}
	fresh();
	make("", "cpu memory pids\n", "cpu memory pids\n", "");
	make("/a", "memory\n", "", "100\n");
	make("/b", "memory\n", "", "100\n");
	make("/c", "memory\n", "", "100\n");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		must(chown(at("/b", files[i]), ORDINARY_ID, ORDINARY_ID) == 0);
	/* Without its cgroup.procs nobody may move anything. */
	must(chown(at("/c", ""), ORDINARY_ID, ORDINARY_ID) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		as_somebody_else();
	must(waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
}

static void a_limit_that_cannot_be_set_leaves_a_reason(void)
{
	const struct cgroup_limits limits = {
		.of = {[CGROUP_MEMORY] = 1 << 20, [CGROUP_CPU] = 500, [CGROUP_PIDS] = 5}};
	_cleanup_(buf_donep) struct buf plan = BUF_INIT(4096);
	char line[TAP_DIR_BYTES + 32];
	struct cgroup g;

	fresh();
	check_int(cgroup_plan(top, "t", &limits, &plan, &err), 0);
	must(snprintf(line, sizeof(line), "cgroup %s/cloche-t\n", top) < (int)sizeof(line));
	check(str_eq(buf_str(&plan), str_from(line)));
	must(cgroup_make(top, "t", &limits, &g, &err) == 0);
	check(cgroup_lacks(&g, CGROUP_MEMORY) && cgroup_lacks(&g, CGROUP_CPU) &&
		cgroup_lacks(&g, CGROUP_PIDS));
	check(access(at("/cloche-t", ""), F_OK) == 0);
	cgroup_remove(&g);
	check(access(at("/cloche-t", ""), F_OK) < 0);
}

static void usage_is_read(void)
{
	struct cgroup g = CGROUP_INIT;
	struct room_usage u;

	fresh();
	g.version = 2;
	g.path[0] = top;
	put("", "cpu.stat", "usage_usec 1234\nuser_usec 1\n");
	put("", "memory.current", "5000\n");
	put("", "memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
	put("", "pids.current", "7\n");
	put("", "pids.events", "max 0\n");
	put("", "io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n");
	cgroup_read_usage(&g, &u);
	check_int(u.cpu_usec, 1234);
	check_int(u.memory_bytes, 5000);
	check_int(u.oom_kills, 2);
	check_int(u.pids, 7);
	check(!u.pids_refused);
	check_int(u.io_read_bytes, 11);
	check_int(u.io_write_bytes, 22);
	/* A peak that the kernel does not keep is the greatest that was seen. */
	check(!cgroup_keeps_peaks(&g));
	put("", "memory.current", "4000\n");
	put("", "pids.current", "9\n");
	put("", "pids.events", "max 1\n");
	cgroup_read_usage(&g, &u);
	check_int(u.memory_peak_bytes, 5000);
	check_int(u.pids_peak, 9);
	check(u.pids_refused);
	put("", "memory.peak", "6000\n");
	put("", "pids.peak", "12\n");
	cgroup_read_usage(&g, &u);
	check_int(u.memory_peak_bytes, 6000);
	check_int(u.pids_peak, 12);
	check(cgroup_keeps_peaks(&g));
}

/* A record that somebody has tampered with leads nowhere else. */
static void only_groups_of_ours_are_reaped(void)
{
	static const char *const lines[] = {"", "cgroup", "cgroup relative/cloche-x",
		"cgroup /sys/fs/cgroup/system.slice", "cgroup /sys/fs/cgroup/../cloche-x",
		"cgroup /sys/fs/cgroup/cloche", "scope x.scope", "scope cloche-x.service",
		"scope cloche-x/../y.scope", "scope cloche-x y.scope", "scope cloche-x\n.scope",
		"slice cloche-x.slice"};
	char line[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check_int(cgroup_reap(str_from(lines[i]), &err), -E_CORRUPT);
	fresh();
	/* The right name in a file system of another kind. */
	must(mkdir(at("", "cloche-x"), 0755) == 0);
	snprintf(line, sizeof(line), "cgroup %s", at("", "cloche-x"));
	check_int(cgroup_reap(str_from(line), &err), -E_CORRUPT);
	check(access(at("", "cloche-x"), F_OK) == 0);
	/* What is gone is fine. */
	check_int(cgroup_reap(STR("cgroup /sys/fs/cgroup/cloche-nobody"), &err), 0);
}

int main(void)
{
	tap_dir(top);
	run_test(places_are_found);
	run_test(a_group_beside_ours_is_preferred);
	run_test(the_root_may_have_processes);
	run_test(what_cannot_be_used_is_not);
	run_test(only_the_managers_mark_counts);
	run_test(what_is_not_ours_is_left_alone);
	run_test(a_limit_that_cannot_be_set_leaves_a_reason);
	run_test(usage_is_read);
	run_test(only_groups_of_ours_are_reaped);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
