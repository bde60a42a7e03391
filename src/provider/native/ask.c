/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that a provider may lack: questions about a running native room, and about this
 * machine. */
#include "provider/native/native.h"
#include "room/changes.h"
#include "room/probe.h"
#include "room/proctree.h"

#include <unistd.h>

void native_doctor(provider_check_fn fn, void *user)
{
	for (int f = 0; f < PROBE_END_; f++) {
		struct provider_check check;

		probe_one((enum probe_feature)f, &check);
		fn(user, &check);
	}
}

/* Without a group the kernel adds nothing up. Then we do, while there are processes. */
static void sample_processes(const struct room *room, struct room_usage *u)
{
	int io_fd = native_room_const(room)->io_fd;
	struct room_usage p;

	if (room->reaped || room->pid <= 0 || !proctree_read(room->pid, &p))
		return;
	if (io_fd >= 0)
		proctree_add_io(io_fd, &p);
	if (!u->io_read_bytes && !u->io_write_bytes) {
		u->io_read_bytes = p.io_read_bytes;
		u->io_write_bytes = p.io_write_bytes;
	}
	if (!u->cpu_usec)
		u->cpu_usec = p.cpu_usec;
	if (!u->memory_bytes)
		u->memory_bytes = p.memory_bytes;
	if (!u->pids)
		u->pids = p.pids;
}

int native_usage(struct room *room, struct room_usage *ret, struct cloche_err *err)
{
	struct native_room *n = native_room(room);

	cgroup_read_usage(&n->ns.cgroup, ret);
	sample_processes(room, ret);
	if (!ret->cpu_usec)
		ret->cpu_usec = n->cpu_usec;
	n->memory_peak = MAX(n->memory_peak, ret->memory_bytes);
	n->pids_peak = MAX(n->pids_peak, ret->pids);
	if (!ret->memory_peak_bytes)
		ret->memory_peak_bytes = n->memory_peak;
	if (!ret->pids_peak)
		ret->pids_peak = n->pids_peak;
	ret->sampled = !cgroup_keeps_peaks(&n->ns.cgroup);
	return 0;
}

void native_lend(const struct room *room, int fd, uint32_t uid, uint32_t gid)
{
	uint32_t base = native_room_const(room)->id_base;

	if (base && uid < IDMAP_RANGE && gid < IDMAP_RANGE)
		(void)!fchown(fd, base + uid, base + gid);
}

int native_layers(const struct room *room, int *ret_upper, int *ret_lower, struct cloche_err *err)
{
	const struct native_room *n = native_room_const(room);

	if (n->upper_fd < 0 || n->lower_fd < 0)
		return err_set(err, E_UNSUPPORTED,
			"this sandbox has no layer of changes that can be looked at");
	*ret_upper = n->upper_fd;
	*ret_lower = n->lower_fd;
	return 0;
}

int native_diff_kept(const char *dir, room_change_fn fn, void *user, struct cloche_err *err)
{
	struct keep_view v;
	int r = keep_view_open(dir, &v, err);

	if (r < 0)
		return r;
	r = changes_walk(v.upper, v.lower, fn, user, err);
	keep_view_close(&v);
	return r;
}
