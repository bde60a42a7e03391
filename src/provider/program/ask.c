/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: however it was made, the room is a pid namespace of this machine, and we
 * hold a descriptor of its process 1. So it is ended and examined like every other room, without
 * asking the program. */
#include "base/fd.h"
#include "jail/sys.h"
#include "provider/program/operations.h"
#include "room/cgroup-find.h"
#include "room/proctree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { PROC_MAX = 1 << 20 };

/* Return whether a process is in a group other than ours: only such a group counts the room alone.
 */
static bool is_apart(struct str groups)
{
	_cleanup_(buf_donep) struct buf ours = BUF_INIT(PROC_MAX);

	return fd_read_file(AT_FDCWD, "/proc/self/cgroup", &ours, NULL) == 0 &&
	       !str_eq(groups, buf_str(&ours));
}

void program_find_cgroup(pid_t pid, struct cgroup *ret)
{
	_cleanup_(buf_donep) struct buf groups = BUF_INIT(PROC_MAX), mounts = BUF_INIT(PROC_MAX);
	struct cgroup_place place = {0};
	char path[32];

	*ret = CGROUP_INIT;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (fd_read_file(AT_FDCWD, path, &groups, NULL) < 0 || !is_apart(buf_str(&groups)) ||
		fd_read_file(AT_FDCWD, "/proc/self/mountinfo", &mounts, NULL) < 0 ||
		cgroup_find_in(buf_str(&groups), buf_str(&mounts), &place) < 0)
		return;
	/* If the kernel has both, the version with the controllers is the one in use. */
	if (place.v1[CGROUP_MEMORY]) {
		ret->version = 1;
		for (int i = 0; i < CGROUP_N; i++)
			ret->path[i] = TAKE_PTR(place.v1[i]);
	} else if (place.v2) {
		ret->version = 2;
		ret->path[0] = TAKE_PTR(place.v2);
	}
	cgroup_place_done(&place);
}

void program_leave_cgroup(struct cgroup *g)
{
	for (int i = 0; i < CGROUP_N; i++)
		free(g->path[i]);
	*g = CGROUP_INIT;
}

int program_usage(struct room *room, struct room_usage *ret, struct cloche_err *err)
{
	struct program_room *r = program_room(room);
	struct room_usage u, tree;

	/* The group vanishes with its last process. */
	if (!room_has_ended(room)) {
		cgroup_read_usage(&r->ns.cgroup, &u);
		if (!u.pids && proctree_read(room->pid, &tree)) {
			u.cpu_usec = tree.cpu_usec;
			u.memory_bytes = tree.memory_bytes;
			u.pids = tree.pids;
		}
		proctree_add_sample(&r->usage, &u);
	}
	*ret = r->usage;
	return 0;
}

int program_kill(struct room *room, int sig, struct cloche_err *err)
{
	struct room_usage usage;

	if (room_has_ended(room))
		return 0;
	if (sig != SIGKILL) {
		proctree_signal_namespace(room->pid, sig);
		return 0;
	}
	(void)program_usage(room, &usage, NULL);
	if (sys_pidfd_send_signal(room->watch_fd, sig) < 0 && errno != ESRCH)
		return err_sys(err, errno, "kill the room");
	return 0;
}

/* Process 1 is not our child, so the kernel does not tell us how it ended. */
int program_wait(struct room *room, struct room_exit *ret, struct cloche_err *err)
{
	struct program_room *r = program_room(room);
	struct pollfd p = {.fd = room->watch_fd, .events = POLLIN};

	while (room->watch_fd >= 0 && poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	*ret = (struct room_exit){.exited = true, .oom_killed = r->usage.oom_kills > 0};
	return 0;
}

static int read_map(pid_t pid, const char *name, struct buf *ret, struct cloche_err *err)
{
	char path[48];

	*ret = BUF_INIT(PROC_MAX);
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fd_read_file(AT_FDCWD, path, ret, err);
}

int program_read_ids(struct program_room *r, struct cloche_err *err)
{
	int e = read_map(r->ns.base.pid, "uid_map", &r->uids, err);

	return e < 0 ? e : read_map(r->ns.base.pid, "gid_map", &r->gids, err);
}

/* Return the host's id for that id of the room. */
static uint32_t map_id(struct str map, uint32_t id)
{
	while (map.n) {
		struct str line = str_next_line(&map);
		char one[64];
		unsigned inside, outside, n;

		str_copy(one, sizeof(one), line);
		if (sscanf(one, "%u %u %u", &inside, &outside, &n) == 3 && id >= inside &&
			id - inside < n)
			return outside + (id - inside);
	}
	return UINT32_MAX;
}

void program_lend(const struct room *room, int fd, uint32_t uid, uint32_t gid)
{
	const struct program_room *r = program_room_const(room);
	uint32_t u = map_id(buf_str(&r->uids), uid), g = map_id(buf_str(&r->gids), gid);

	if (u != UINT32_MAX && g != UINT32_MAX)
		(void)!fchown(fd, u, g);
}
