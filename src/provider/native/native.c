/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The parent's side of a room. Before the birth: choose ids, open what will be mounted (root only),
 * make the control group. The birth is one clone3(). After it: write the id maps (root only), move
 * the child into version 1 groups, say "go on", make the network while the child furnishes its file
 * system, hand it over, and wait until the child has executed init or reports an error.
 *
 * The room is its pid namespace: when process 1 dies, everything in it dies. So it is enough to
 * kill process 1 through its pidfd, and nothing can escape that. */
#include "provider/native/native.h"
#include "base/fd.h"
#include "jail/sys.h"
#include "room/changes.h"
#include "room/ns.h"
#include "room/probe.h"
#include "room/proctree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int native_probe(
	const struct provider *provider, struct provider_about *ret, struct cloche_err *err)
{
	static const enum probe_feature needed[] = {PROBE_NAMESPACES, PROBE_PROC, PROBE_SECCOMP};
	struct provider_check p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		probe_one(needed[i], &p);
		if (!p.works) {
			int r = err_set(err, E_UNSUPPORTED, "%s: %s", p.name, p.detail);

			err_hint(err, "%s", p.remedy);
			return r;
		}
	}
	/* Rooms that mount nothing of this file system work all the same. */
	probe_one(PROBE_IDMAP, &p);
	if (!p.works)
		snprintf(ret->doubt, sizeof(ret->doubt), "%.250s: %.250s", p.detail, p.remedy);
	return 0;
}

static const struct limit_way limits[] = {
	{LIMIT_memory_bytes, LIMIT_BY_GROUP, CGROUP_MEMORY},
	{LIMIT_cpus_milli, LIMIT_BY_GROUP, CGROUP_CPU},
	{LIMIT_pids, LIMIT_BY_GROUP, CGROUP_PIDS},
	{LIMIT_nofile, LIMIT_BY_RESOURCE, RLIMIT_NOFILE},
	{LIMIT_file_bytes, LIMIT_BY_RESOURCE, RLIMIT_FSIZE},
	{LIMIT_tmpfs_bytes, LIMIT_BY_MOUNTS},
};
LIMITS_COMPLETE(limits);

static struct cgroup_limits native_group_limits(const struct room_limits *l)
{
	struct cgroup_limits found = {0};

	for (size_t i = 0; i < LIMITS_N; i++)
		if (limits[i].means == LIMIT_BY_GROUP)
			found.of[limits[i].number] = limit_value(l, limits[i].limit);
	return found;
}

/* Make the group and judge what it lacks. */
static int make_cgroup(struct native_room *n, struct native_birth *b, struct cloche_err *err)
{
	const struct room_limits *l = &b->rootfs.spec->limits;
	const struct cgroup_limits wanted = native_group_limits(l);
	int r = cgroup_make(NULL, b->rootfs.spec->id, &wanted, &n->ns.cgroup, err);

	for (size_t i = 0; i < LIMITS_N && r == 0; i++) {
		enum cgroup_controller c = (enum cgroup_controller)limits[i].number;
		const char *why =
			limits[i].means == LIMIT_BY_GROUP ? cgroup_lacks(&n->ns.cgroup, c) : NULL;

		if (!why)
			continue;
		/* The kernel can count only this limit per user namespace. */
		if (c == CGROUP_PIDS) {
			b->limit_pids = true;
			if (!b->rootfs.ids.range)
				continue;
		}
		r = limit_lacks(&n->ns.base, l, limits[i].limit, why, err);
	}
	return r;
}

static int check_apart(const struct keep *k, const char *own, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open(own, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "look at %s", own);
	return keep_check_apart(k, fd, own, err);
}

/* Open the directory that keeps changes: it must be neither beside the host's own programs nor
 * within reach of the room. */
static int open_keep(const struct room_spec *spec, struct native_room *n, struct cloche_err *err)
{
	const char *const *dirs = layers_host_dirs();
	const char *root = spec->root == ROOM_ROOT_HOST ? NULL : spec->root_dir;
	char image[IMAGEROOT_NAME];
	size_t i;
	int r;

	if (spec->root == ROOM_ROOT_IMAGE)
		imageroot_name(spec->layers, image);
	r = keep_open(spec->keep_dir, spec->root == ROOM_ROOT_IMAGE ? image : root, spec->host_home,
		&n->keep, err);

	if (r == 0 && spec->root == ROOM_ROOT_IMAGE)
		r = check_apart(&n->keep, root, err);
	else if (r == 0 && root)
		r = keep_check_apart(&n->keep, spec->root_fd, root, err);
	for (i = 0; dirs[i] && r == 0; i++)
		r = check_apart(&n->keep, dirs[i], err);
	for (i = 0; i < spec->mounts_n && r == 0; i++)
		if (!spec->mounts[i].ro && !spec->mounts[i].guard)
			r = keep_check_apart(
				&n->keep, spec->mounts[i].fd, spec->mounts[i].source, err);
	return r;
}

/* Set-uid programs of root must not be shown with their owner: with an overlay, the room could copy
 * them to where it may write. A range of ids hides the owner of read-only mounts
 * (rootfs_idmap_sources), but not of a root that can be changed; without a range it cannot be
 * hidden. For other users' programs see nested.c. */
static int check_nested(
	const struct room_spec *spec, const struct idmap *ids, struct cloche_err *err)
{
	bool over = spec->root != ROOM_ROOT_HOST || spec->overlay || spec->keep_dir;
	bool writable = spec->keep_dir != NULL;
	/* Those of an image belong to the user who stored it. */
	bool shown = ids->range ? over : geteuid() == 0 || spec->root == ROOM_ROOT_IMAGE;

	for (size_t i = 0; i < spec->mounts_n; i++)
		writable = writable || !spec->mounts[i].ro;
	if (!spec->nested || !shown || !writable)
		return 0;
	err_set(err, E_UNSUPPORTED,
		"--nested %s, with a writable mount: "
		"set-uid programs could be left there",
		geteuid() != 0 ? "over an image"
		: ids->range   ? "by root, over a root that can be changed"
			       : "by root, in a user namespace");
	err_hint(err, "%s%s",
		geteuid() != 0 ? "run it " : "run cloche as an ordinary user, or run it ",
		spec->keep_dir ? "without --keep-changes" : "without a workspace (--no-workspace)");
	return -E_UNSUPPORTED;
}

static int check_user(const struct room_spec *spec, const struct idmap *ids, struct cloche_err *err)
{
	if (!ids->range || (spec->uid < IDMAP_RANGE && spec->gid < IDMAP_RANGE))
		return 0;
	return err_set(err, E_USAGE,
		"--user %u:%u: a sandbox that root makes has the ids from 0 to %d", spec->uid,
		spec->gid, IDMAP_RANGE - 1);
}

static int prepare(const struct room_spec *spec, struct native_room *n, struct native_birth *b,
	struct cloche_err *err)
{
	int r = rootfs_init(&b->rootfs, spec, &n->keep, err);

	b->outer_uid = geteuid();
	b->outer_gid = getegid();
	if (r == 0 && spec->root == ROOM_ROOT_IMAGE)
		r = imageroot_lock(spec->root_dir, spec->layers, &n->image, err);
	if (r == 0 && spec->root == ROOM_ROOT_HOST)
		b->rootfs.shipped = n->shipped = rootfs_open_shipped();
	if (r == 0 && spec->keep_dir)
		r = open_keep(spec, n, err);
	if (r < 0)
		return r;
	b->rootfs.ids = idmap_choose(spec->id, spec->uid, spec->gid);
	r = check_user(spec, &b->rootfs.ids, err);
	if (r < 0)
		return r;
	n->ns.base.uid = b->rootfs.ids.uid;
	n->ns.base.gid = b->rootfs.ids.gid;
	n->id_base = b->rootfs.ids.range ? b->rootfs.ids.base : 0;
	r = check_nested(spec, &b->rootfs.ids, err);
	if (r == 0 && b->rootfs.ids.range)
		r = rootfs_open_sources(&b->rootfs, err);
	if (r == 0)
		r = make_cgroup(n, b, err);
	b->rootfs.cgroup = &n->ns.cgroup;
	return r;
}

/* Do what only the parent may do, ending with "go on". Take the child's user namespace as late as
 * possible, since the child hands it over only when it first runs. */
static int admit(struct native_room *n, struct native_birth *b, int report, int *ret_userns,
	struct cloche_err *err)
{
	bool range = b->rootfs.ids.range;
	int r = 0;

	if (range)
		r = idmap_write_range(&b->rootfs.ids, n->ns.base.pid, err);
	if (r == 0 && n->ns.cgroup.version == 1)
		r = cgroup_add(&n->ns.cgroup, n->ns.base.pid, err);
	if (r == 0 && range)
		r = native_take(report, NATIVE_USER, ret_userns, err);
	if (r == 0 && range)
		r = rootfs_idmap_sources(&b->rootfs, *ret_userns, err);
	if (r == 0 && send(report, "", 1, MSG_NOSIGNAL) < 0)
		r = err_sys(err, errno, "start the room");
	if (r == 0 && !range)
		r = native_take(report, NATIVE_USER, ret_userns, err);
	return r;
}

static int set_up_capture(void *arg, struct cloche_err *err)
{
	return netcapture_setup(arg, err);
}

static int set_up_loopback(void *arg, struct cloche_err *err)
{
	return netcapture_loopback_only(err);
}

static int give_network(struct native_room *n, const struct native_birth *b, int userns, int report,
	struct cloche_err *err)
{
	bool none = b->rootfs.spec->net == ROOM_NET_NONE;
	_cleanup_fd_ int fd = -1;
	int r = ns_make_network(
		userns, none ? set_up_loopback : set_up_capture, &n->ns.net, &fd, err);

	return r < 0 ? r : native_hand(report, NATIVE_NETWORK, fd, err);
}

static int finish_parent(
	struct native_room *n, struct native_birth *b, int report, struct cloche_err *err)
{
	struct cloche_err inside = CLOCHE_ERR_INIT;
	_cleanup_fd_ int userns = -1;
	int r = admit(n, b, report, &userns, err), inner;

	if (r == 0 && b->rootfs.spec->born)
		b->rootfs.spec->born(b->rootfs.spec->born_user, n->ns.base.pid);
	if (r == 0)
		r = give_network(n, b, userns, report, err);
	if (r == 0)
		return native_await_report(report, n, err);
	/* If the child failed first, our error is only a consequence of that. */
	shutdown(report, SHUT_WR);
	inner = native_await_report(report, n, &inside);
	if (inner == 0 || inside.code == E_CANCELLED)
		return r;
	if (err)
		*err = inside;
	return inner;
}

static void run_child(struct native_birth *b, int control, int report)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	b->control = control;
	b->report = report;
	(void)!native_child(b, &err);
	native_report_failure(b->report, &err);
	_exit(1);
}

static int give_birth(struct native_room *n, struct native_birth *b, struct cloche_err *err)
{
	int control[2], report[2], r;

	r = fd_socketpair(SOCK_STREAM, control);
	if (r < 0)
		return err_sys(err, -r, "make the control socket");
	n->ns.base.control_fd = control[0];
	r = fd_socketpair(SOCK_SEQPACKET, report);
	if (r < 0) {
		close(control[1]);
		return err_sys(err, -r, "make the report socket");
	}
	r = ns_clone(n->ns.cgroup.dirfd, &n->ns.base.watch_fd, err);
	if (r == 0) {
		/* Our copy of the parent's end would hide that the parent is gone. */
		close(report[0]);
		close(control[0]);
		run_child(b, control[1], report[1]);
	}
	close(control[1]);
	close(report[1]);
	if (r > 0) {
		n->ns.base.pid = r;
		r = finish_parent(n, b, report[0], err);
	}
	close(report[0]);
	return r;
}

static int native_create(const struct provider *p, const struct room_spec *spec, struct room **ret,
	struct cloche_err *err)
{
	_cleanup_(room_freep) struct room *room = NULL;
	struct native_birth b = {0};
	struct native_room *n;
	int r = room_spec_check(spec, err);

	if (r == 0 && spec->net == ROOM_NET_HOST)
		r = err_set(err, E_UNSUPPORTED, "--net host needs --provider subprocess");
	if (r < 0)
		return r;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_nomem(err);
	nsroom_init(&n->ns, &native_provider);
	n->upper_fd = n->lower_fd = n->io_fd = -1;
	n->keep = KEEP_INIT;
	n->image = IMAGEROOT_NULL;
	n->shipped = -1;
	room = &n->ns.base;
	r = prepare(spec, n, &b, err);
	if (r == 0)
		r = give_birth(n, &b, err);
	rootfs_done(&b.rootfs);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(room);
	return 0;
}

static int native_kill(struct room *room, int sig, struct cloche_err *err)
{
	struct native_room *n = native_room(room);

	if (room->reaped || room->watch_fd < 0)
		return 0;
	if (sig == SIGKILL) {
		if (sys_pidfd_send_signal(room->watch_fd, sig) < 0 && errno != ESRCH)
			return err_sys(err, errno, "kill the room");
		return 0;
	}
	if (n->ns.cgroup.version)
		cgroup_kill(&n->ns.cgroup, sig);
	else
		proctree_signal_namespace(n->ns.base.pid, sig);
	return 0;
}

static uint64_t timeval_usec(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static int native_wait(struct room *room, struct room_exit *ret, struct cloche_err *err)
{
	struct native_room *n = native_room(room);
	bool first = !room->reaped;
	struct room_usage usage;
	struct rusage ru;
	int r = room_reap(room, &ru, err);

	if (r < 0)
		return r;
	if (first) {
		cgroup_read_usage(&n->ns.cgroup, &usage);
		room->exit.oom_killed = usage.oom_kills > 0;
		n->cpu_usec = timeval_usec(ru.ru_utime) + timeval_usec(ru.ru_stime);
		n->memory_peak = MAX(n->memory_peak, (uint64_t)ru.ru_maxrss * 1024);
	}
	*ret = room->exit;
	return 0;
}

static int native_plan(const struct provider *p, const struct room_spec *spec, struct buf *out,
	struct cloche_err *err)
{
	const struct cgroup_limits wanted = native_group_limits(&spec->limits);
	int r = room_spec_check(spec, err);

	return r < 0 ? r : cgroup_plan(NULL, spec->id, &wanted, out, err);
}

static int native_record(const struct room *room, struct buf *out, struct cloche_err *err)
{
	const struct native_room *n = native_room_const(room);

	return cgroup_record(&n->ns.cgroup, out) < 0 ? err_nomem(err) : 0;
}

/* Whether the groups are known, and all gone. Then the scope ends by itself. */
static bool is_gone(struct str record)
{
	bool known = false;

	while (record.n) {
		struct str line = str_next_line(&record);

		if (!str_starts(line, STR("cgroup /")))
			continue;
		known = true;
		if (cgroup_is_there(line))
			return false;
	}
	return known;
}

static int native_reap(const struct provider *p, struct str record, struct cloche_err *err)
{
	bool gone = is_gone(record);
	int r = 0;

	/* A group that cannot be removed must not stop the removal of the others. */
	while (record.n) {
		struct str line = str_next_line(&record);

		if (gone && str_starts(line, STR("scope ")))
			continue;
		if (line.n && r == 0)
			r = cgroup_reap(line, err);
		else if (line.n)
			(void)!cgroup_reap(line, NULL);
	}
	return r;
}

static struct room *native_destroy(struct room *room)
{
	struct native_room *n;
	struct room_exit ending;

	if (!room)
		return NULL;
	n = native_room(room);
	if (room->pid > 0 && !room->reaped) {
		(void)native_kill(room, SIGKILL, NULL);
		(void)native_wait(room, &ending, NULL);
	}
	netcapture_close(&n->ns.net);
	keep_close(&n->keep);
	imageroot_unlock(&n->image);
	fd_close(n->shipped);
	fd_close(n->upper_fd);
	fd_close(n->lower_fd);
	fd_close(n->io_fd);
	room_done(room);
	cgroup_remove(&n->ns.cgroup);
	free(n);
	return NULL;
}

const struct provider native_provider = {
	.name = "native",
	.limits = limits,
	.probe = native_probe,
	.plan = native_plan,
	.create = native_create,
	.kill = native_kill,
	.wait = native_wait,
	.record = native_record,
	.reap = native_reap,
	.destroy = native_destroy,
	.doctor = native_doctor,
	.kill_tree = nsroom_kill_tree,
	.usage = native_usage,
	.listeners = nsroom_listeners,
	.owner = nsroom_owner,
	.lend = native_lend,
	.layers = native_layers,
	.diff = changes_walk,
	.diff_kept = native_diff_kept,
};
