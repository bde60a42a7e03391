/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The first process of the room, from its birth to the execution of init, in named stages:
 *
 *   identity   the maps are there; becomes root of the room
 *   furnish    the file system, ending with pivot_root: from here on the host is out of reach
 *   network    the namespace that the parent has had made meanwhile; without it no room comes to be
 *   descriptors, limits
 *   narrow     capabilities, no_new_privs, Landlock, system call filters, all for good
 *   execute    init, from its read-only mount in the room
 *
 * Everything before "execute" runs our own code on data of the person's; nothing hostile runs in
 * the room yet. A failure is reported to the parent with its message and ends the process. */
#include "base/fd.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/nested.h"
#include "jail/ns.h"
#include "jail/seccomp.h"
#include "jail/sys.h"
#include "provider/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int hand_out_user(const struct native_birth *b, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "open the room's user namespace");
	return native_hand(b->report, NATIVE_USER, fd, err);
}

static int stage_identity(const struct native_birth *b, struct cloche_err *err)
{
	const struct idmap *ids = &b->rootfs.ids;
	char byte;
	ssize_t n;
	int r = hand_out_user(b, err);

	if (r < 0)
		return r;
	if (!ids->range) {
		r = idmap_write_self(b->outer_uid, b->outer_gid, err);
		if (r < 0)
			return r;
	}
	/* Meanwhile the parent is at work. */
	if (!b->spec->nested)
		ns_make_last();
	do
		n = recv(b->report, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return err_set(err, E_CANCELLED, "the supervisor gave up");
	r = ns_settle(ROOTFS_HOSTNAME, err);
	if (r < 0)
		return r;
	r = idmap_become_root(ids, err);
	return r < 0 ? r : caps_join_keyring(err);
}

static int stage_furnish(struct native_birth *b, struct cloche_err *err)
{
	struct rootfs *r = &b->rootfs;
	int e = rootfs_furnish(r, err);

	if (e == 0)
		e = nested_check_programs(r, err);
	return e < 0 || r->upper_fd < 0
		       ? e
		       : native_report_layers(b->report, r->upper_fd, r->lower_fd, err);
}

static int stage_network(const struct native_birth *b, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	int r = native_take(b->report, NATIVE_NETWORK, &fd, err);

	return r < 0 ? r : ns_enter_network(fd, err);
}

/* 0, 1, 2: /dev/null of the room; 3: control; everything else is closed at exec. */
static int stage_descriptors(struct native_birth *b, struct cloche_err *err)
{
	_cleanup_fd_ int opened = open("/dev/null", O_RDWR | O_CLOEXEC), null = -1;
	int i;

	if (opened < 0)
		return err_sys(err, errno, "open /dev/null of the room");
	/* What is moved must not lie where something is moved to. */
	null = fcntl(opened, F_DUPFD_CLOEXEC, 10);
	b->control = fcntl(b->control, F_DUPFD_CLOEXEC, 10);
	b->report = fcntl(b->report, F_DUPFD_CLOEXEC, 10);
	if (null < 0 || b->control < 0 || b->report < 0)
		return err_sys(err, errno, "move the room's descriptors");
	if (opened <= ROOM_CONTROL_FD)
		opened = -1;
	for (i = 0; i < ROOM_CONTROL_FD; i++)
		if (dup2(null, i) < 0)
			return err_sys(err, errno, "open the standard descriptors");
	if (dup2(b->control, ROOM_CONTROL_FD) < 0)
		return err_sys(err, errno, "hand over the control socket");
	if (fd_close_range(ROOM_CONTROL_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return err_sys(err, errno, "close the room's other descriptors");
	return 0;
}

/* Of a caller that runs so itself. (musl has these calls fail.) A lower niceness than 0, which is
 * his wish, stays. */
static int leave_real_time(struct cloche_err *err)
{
	const struct sched_param ordinary = {0};
	int policy = (int)syscall(SYS_sched_getscheduler, 0);

	if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE)
		return 0;
	if (policy < 0 || syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary) < 0)
		return err_sys(err, errno, "leave the caller's real-time scheduling");
	return 0;
}

static int stage_limits(const struct native_birth *b, struct cloche_err *err)
{
	const struct room_limits *l = &b->spec->limits;
	/* With 0 a core handler of the host would still be started; see seccomp-gen.c. */
	int r = caps_rlimit(RLIMIT_CORE, 1, err);

	/* A share of the processors does not bind what runs in real time. */
	if (r == 0)
		r = caps_rlimit(RLIMIT_RTPRIO, 0, err);
	if (r == 0)
		r = caps_rlimit(RLIMIT_NICE, 0, err);
	if (r == 0)
		r = leave_real_time(err);
	if (r == 0 && l->nofile)
		r = caps_rlimit(RLIMIT_NOFILE, l->nofile, err);
	if (r == 0 && l->file_bytes)
		r = caps_rlimit(RLIMIT_FSIZE, l->file_bytes, err);
	/* Counted per user namespace, so only what is in the room. */
	if (r == 0 && b->limit_pids)
		r = caps_rlimit(RLIMIT_NPROC, l->pids, err);
	return r;
}

static int stage_narrow(const struct native_birth *b, struct cloche_err *err)
{
	const char *writable[ROOM_MAX_MOUNTS + 16];
	bool nested = b->spec->nested;
	/* Where Landlock guards files the kernel refuses every mount, of one's own namespace too.
	 */
	size_t n = nested ? 0 : rootfs_writable(&b->rootfs, writable, ARRAY_SIZE(writable));
	uint64_t caps = nested ? CAPS_ROOM_NESTED : CAPS_ROOM;
	int r = caps_bound(caps, err);

	if (r == 0)
		r = caps_set(caps, err);
	if (r == 0)
		r = caps_no_new_privs(err);
	if (r == 0)
		r = landlock_restrict(writable, n, err);
	/* Late, because a change of identity would undo it. */
	if (r == 0)
		r = ns_die_with_parent(b->report, err);
	if (r == 0 && rootfs_writes_as_owner(&b->rootfs))
		r = seccomp_install(nested ? SECCOMP_STAYING_NESTED : SECCOMP_STAYING, err);
	return r < 0 ? r : seccomp_install(nested ? SECCOMP_ROOM_NESTED : SECCOMP_ROOM, err);
}

int native_child(struct native_birth *b, struct cloche_err *err)
{
	char name[] = "cloche-init";
	char *argv[] = {name, NULL}, *no_environment[] = {NULL};
	int r;

	r = stage_identity(b, err);
	if (r == 0)
		r = stage_furnish(b, err);
	if (r == 0)
		r = stage_network(b, err);
	if (r == 0)
		r = stage_descriptors(b, err);
	if (r == 0)
		r = stage_limits(b, err);
	if (r == 0)
		r = stage_narrow(b, err);
	if (r < 0)
		return r;
	umask(022);
	execve(ROOTFS_INIT_PATH, argv, no_environment);
	return err_sys(err, errno, "execute %s in the room", b->spec->init_path);
}
