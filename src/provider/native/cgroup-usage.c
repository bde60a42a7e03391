/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "provider/cgroup-file.h"
#include "provider/native/cgroup.h"

static const char *memory_peak_file(const struct cgroup *g)
{
	return g->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes";
}

/* Return the kernel's own peak, or the highest sample. */
static uint64_t peak(const char *dir, const char *file, uint64_t now, uint64_t *seen)
{
	uint64_t kept = cgroup_read_number(dir, file, NULL);

	*seen = MAX(*seen, now);
	return kept ? kept : *seen;
}

void cgroup_read_usage(struct cgroup *g, struct room_usage *ret)
{
	const char *memory = cgroup_dir(g, CGROUP_MEMORY), *pids = cgroup_dir(g, CGROUP_PIDS);
	bool v2 = g->version == 2;

	*ret = (struct room_usage){0};
	if (g->version == 0)
		return;
	if (v2) {
		ret->cpu_usec = cgroup_read_number(g->path[0], "cpu.stat", "usage_usec");
		ret->io_read_bytes = cgroup_sum_numbers(g->path[0], "io.stat", "rbytes");
		ret->io_write_bytes = cgroup_sum_numbers(g->path[0], "io.stat", "wbytes");
	} else {
		ret->cpu_usec =
			cgroup_read_number(g->path[CGROUP_CPUACCT], "cpuacct.usage", NULL) / 1000;
	}
	ret->memory_bytes =
		cgroup_read_number(memory, v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
	ret->memory_peak_bytes =
		peak(memory, memory_peak_file(g), ret->memory_bytes, &g->memory_peak);
	ret->oom_kills =
		cgroup_read_number(memory, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
	ret->pids = cgroup_read_number(pids, "pids.current", NULL);
	ret->pids_peak = peak(pids, "pids.peak", ret->pids, &g->pids_peak);
	ret->pids_refused = cgroup_read_number(pids, "pids.events", "max") > 0;
}

bool cgroup_keeps_peaks(const struct cgroup *g)
{
	const char *memory = cgroup_dir(g, CGROUP_MEMORY), *pids = cgroup_dir(g, CGROUP_PIDS);

	return memory && cgroup_has_file(memory, memory_peak_file(g)) && pids &&
	       cgroup_has_file(pids, "pids.peak");
}
