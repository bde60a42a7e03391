/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: /proc/self/cgroup gives our group in each hierarchy; /proc/self/mountinfo
 * says where hierarchies are mounted and which part of them. */
#include "room/cgroup-find.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { PROC_MAX = 1 << 20 };

static const char *const names[CGROUP_N] = {"memory", "pids", "cpu", "cpuacct", "cpuset", "io"};

const char *cgroup_controller_name(enum cgroup_controller c)
{
	return names[c];
}

static bool list_has(struct str list, char separator, const char *word)
{
	while (list.n)
		if (str_eq(str_next(&list, separator), str_from(word)))
			return true;
	return false;
}

/* Return the n-th (from 0) field of a line. */
static struct str field(struct str line, unsigned n)
{
	for (; n; n--)
		line = str_from_index(line, str_chr(line, ' ') + 1);
	return str_prefix(line, str_chr(line, ' '));
}

/* Return the path of our group in the hierarchy with that controller (NULL: version 2), from
 * /proc/self/cgroup: "5:pids,rdma:/a/b", "0::/a/b". */
static struct str own_path(struct str text, const char *controller)
{
	while (text.n) {
		struct str line = str_next_line(&text), list;

		(void)str_next(&line, ':');
		list = str_next(&line, ':');
		if (controller ? list_has(list, ',', controller) : list.n == 0)
			return line;
	}
	return STR_NULL;
}

/* Return the mount point plus our path below what is mounted there. */
static char *join(struct str mount_point, struct str mount_root, struct str path)
{
	char *joined = NULL;

	if (mount_root.n > 1) {
		if (!str_starts(path, mount_root))
			return NULL;
		path = str_from_index(path, mount_root.n);
		if (path.n && path.p[0] != '/')
			return NULL;
	}
	if (path.n == 1)
		path.n = 0;
	/* The group is above the root of our cgroup namespace, so we could not write there. */
	if (str_starts(path, STR("/..")))
		return NULL;
	if (asprintf(&joined, "%.*s%.*s", STR_FMT(mount_point), STR_FMT(path)) < 0)
		return NULL;
	return joined;
}

/* 36 25 0:32 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids */
static void take_mount(struct cgroup_place *p, struct str line, struct str groups)
{
	struct str root = field(line, 3), point = field(line, 4), path;
	struct str tail = str_from_index(line, str_find(line, STR(" - ")) + 3);
	struct str type = field(tail, 0);
	unsigned c;

	if (str_eq(type, STR("cgroup2")) && !p->v2) {
		path = own_path(groups, NULL);
		p->v2 = path.p ? join(point, root, path) : NULL;
		p->v2_mount = p->v2 ? str_dup(point) : NULL;
	}
	if (!str_eq(type, STR("cgroup")))
		return;
	for (c = 0; c < CGROUP_N; c++) {
		path = own_path(groups, names[c]);
		if (!p->v1[c] && path.p && list_has(field(tail, 2), ',', names[c]))
			p->v1[c] = join(point, root, path);
	}
}

int cgroup_find_in(struct str groups, struct str mountinfo, struct cgroup_place *ret)
{
	*ret = (struct cgroup_place){0};
	while (mountinfo.n) {
		struct str line = str_next_line(&mountinfo);

		take_mount(ret, line, groups);
	}
	if (!ret->v2 || ret->v2_mount)
		return 0;
	cgroup_place_done(ret);
	return -ENOMEM;
}

int cgroup_find(struct cgroup_place *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf groups = BUF_INIT(PROC_MAX), mounts = BUF_INIT(PROC_MAX);
	int r = fd_read_file(AT_FDCWD, "/proc/self/cgroup", &groups, err);

	if (r == 0)
		r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", &mounts, err);
	if (r < 0)
		return r;
	return cgroup_find_in(buf_str(&groups), buf_str(&mounts), ret) < 0 ? err_nomem(err) : 0;
}

void cgroup_place_done(struct cgroup_place *p)
{
	unsigned c;

	free(p->v2);
	free(p->v2_mount);
	for (c = 0; c < CGROUP_N; c++)
		free(p->v1[c]);
	*p = (struct cgroup_place){0};
}
