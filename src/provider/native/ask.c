/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that a provider may lack: questions about a running native room, and about this
 * machine. */
#include "base/fd.h"
#include "provider/native/changes.h"
#include "provider/native/listeners.h"
#include "provider/native/native.h"
#include "provider/native/probe.h"
#include "provider/native/proctree.h"

#include <unistd.h>

void native_doctor(provider_check_fn fn, void *user)
{
	struct probe_result results[PROBE_END_];
	size_t n = probe_all(results, ARRAY_SIZE(results));

	for (size_t i = 0; i < n; i++) {
		const struct probe_result *p = &results[i];
		struct provider_check check = {
			p->name, p->detail, p->works ? "" : p->remedy, p->works, p->required};

		fn(user, &check);
	}
}

pid_t native_pid(const struct room *room)
{
	pid_t pid = native_room_const(room)->pid;

	return pid > 0 ? pid : 0;
}

const char *native_unenforced(const struct room *room, unsigned i)
{
	const struct native_room *n = native_room_const(room);

	return i < n->unenforced_n ? n->unenforced[i] : NULL;
}

int native_kill_tree(struct room *room, pid_t pid, struct cloche_err *err)
{
	struct native_room *n = native_room(room);

	if (n->reaped || pid <= 1 || !proctree_kill(n->pid, pid))
		return err_set(err, E_NOT_FOUND, "the room has no process %d", (int)pid);
	return 0;
}

/* Without a group the kernel adds nothing up. Then we do, while there are processes. */
static void sample_processes(struct native_room *n, struct room_usage *u)
{
	struct proctree_usage p;

	if (n->reaped || n->pid <= 0 || !proctree_read(n->pid, &p))
		return;
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
	struct cgroup_usage u;

	cgroup_read_usage(&n->cgroup, &u);
	*ret = (struct room_usage){.cpu_usec = u.cpu_usec,
		.memory_bytes = u.memory_bytes,
		.pids = u.pids,
		.oom_kills = u.oom_kills,
		.pids_refused = u.pids_refused,
		.io_read_bytes = u.io_read_bytes,
		.io_write_bytes = u.io_write_bytes};
	sample_processes(n, ret);
	if (!ret->cpu_usec)
		ret->cpu_usec = n->cpu_usec;
	n->memory_peak = MAX(n->memory_peak, ret->memory_bytes);
	n->pids_peak = MAX(n->pids_peak, ret->pids);
	ret->memory_peak_bytes = u.memory_peak_bytes ? u.memory_peak_bytes : n->memory_peak;
	ret->pids_peak = u.pids_peak ? u.pids_peak : n->pids_peak;
	ret->sampled = !cgroup_keeps_peaks(&n->cgroup);
	return 0;
}

int native_listeners(struct room *room, int ret[ROOM_LISTENERS], struct cloche_err *err)
{
	return listeners_take(&native_room(room)->net, ret, err);
}

bool native_owner(struct room *room, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret)
{
	struct native_room *n = native_room(room);

	return n->pid > 0 && n->net.diag >= 0 &&
	       connection_owner(n->net.diag, n->pid, client, server, &n->looks, ret);
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
