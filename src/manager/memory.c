/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/memory.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/macro.h"
#include "room/cgroup-file.h"
#include "room/cgroup-find.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Return the value of a line of /proc/meminfo, in bytes, or 0 if it is missing. */
static uint64_t find_line(struct str text, const char *name)
{
	const char *at = memmem(text.p, text.n, name, strlen(name));

	return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static void bound_by(struct memory *m, const char *dir)
{
	/* Linux: Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst. */
	static const struct {
		const char *most, *used, *cache;
	} versions[] = {{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
		{"memory.max", "memory.current", "inactive_file"}};

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		uint64_t most = cgroup_read_number(dir, versions[i].most, NULL);
		uint64_t used = cgroup_read_number(dir, versions[i].used, NULL);
		uint64_t cache = cgroup_read_number(dir, "memory.stat", versions[i].cache);

		/* The limit is "max", or the group has another version. */
		if (most == 0)
			continue;
		used -= MIN(used, cache);
		m->total = MIN(m->total, most);
		m->available = MIN(m->available, used < most ? most - used : 0);
	}
}

void memory_bound(struct memory *m, const char *group)
{
	_cleanup_(freep) char *dir = group ? strdup(group) : NULL;
	char *slash;

	for (; dir && cgroup_has_file(dir, "cgroup.procs"); *slash = '\0') {
		bound_by(m, dir);
		slash = strrchr(dir, '/');
		if (!slash)
			break;
	}
}

void memory_read(struct memory *ret)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(64 * 1024);
	_cleanup_(cgroup_place_donep) struct cgroup_place place = {0};

	*ret = (struct memory){0};
	if (fd_read_file(AT_FDCWD, "/proc/meminfo", &b, NULL) == 0)
		*ret = (struct memory){find_line(buf_str(&b), "MemTotal:"),
			find_line(buf_str(&b), "MemAvailable:")};
	if (ret->total == 0)
		*ret = (struct memory){UINT64_MAX, UINT64_MAX};
	if (cgroup_find(&place, NULL) < 0)
		return;
	memory_bound(ret, place.v2);
	memory_bound(ret, place.v1[CGROUP_MEMORY]);
}
