/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The first process of the room, from its birth to the execution of init, in named stages:
 *
 *   identity   the id maps are written; it becomes the room's first user
 *   furnish    the file system, ending with pivot_root: from here on the host is out of reach
 *   network    the namespace that the parent has made meanwhile; without it there is no room
 *   descriptors
 *   narrow     limits, capabilities, no_new_privs, Landlock, filters, all for good (jail/narrow.h)
 *   execute    init, from its read-only mount in the room
 *
 * Everything before "execute" runs our own code on the user's data; nothing hostile runs in the
 * room yet. A failure is reported to the parent with its message and ends the process. */
#include "base/fd.h"
#include "ipc/roomctl.h"
#include "jail/caps.h"
#include "jail/narrow.h"
#include "jail/sys.h"
#include "provider/native/native.h"
#include "room/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int hand_out_user(const struct native_birth *b, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		int r = err_sys(err, errno, "open the room's user namespace");

		ns_explain_apparmor(b->outer_uid, err);
		return r;
	}
	return native_hand(b->report, NATIVE_USER, fd, err);
}

/* Init is not dumpable, so its figures belong to root of its user namespace; without one they are
 * closed to everybody. */
static int hand_out_io(const struct native_birth *b, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 0 : native_report_io(b->report, fd, err);
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
		r = idmap_write_self(ids, b->outer_uid, b->outer_gid, err);
		if (r == 0 && ids->uid != 0)
			r = hand_out_io(b, err);
		if (r < 0)
			return r;
	}
	/* The parent works meanwhile. */
	if (!b->rootfs.spec->nested)
		ns_make_last();
	do
		n = recv(b->report, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return err_set(err, E_CANCELLED, "the supervisor gave up");
	r = ns_settle(ROOTFS_HOSTNAME, err);
	if (r < 0)
		return r;
	r = idmap_become_first(ids, err);
	return r < 0 ? r : caps_join_keyring(err);
}

static int stage_furnish(struct native_birth *b, struct cloche_err *err)
{
	struct rootfs *r = &b->rootfs;
	int e = rootfs_furnish(r, err);

	if (e == 0)
		e = rootfs_check_programs(r, err);
	if (e == 0 && r->config_fd >= 0)
		e = native_report_config(b->report, r->config_fd, err);
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

/* Set up descriptors 0, 1, 2: /dev/null of the room; 3: control. Everything else is closed at exec.
 */
static int stage_descriptors(struct native_birth *b, struct cloche_err *err)
{
	int r;

	b->report = fcntl(b->report, F_DUPFD_CLOEXEC, ROOM_CONTROL_FD + 1);
	r = b->report < 0 ? -errno : fd_make_first(b->control);
	if (r == 0 && fd_close_range(ROOM_CONTROL_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		r = -errno;
	return r < 0 ? err_sys(err, -r, "arrange the room's descriptors") : 0;
}

static int stage_narrow(const struct native_birth *b, struct cloche_err *err)
{
	const struct room_limits *l = &b->rootfs.spec->limits;
	const struct limit_way *ways = native_provider.limits;
	struct narrow narrow = {
		.nested = b->rootfs.spec->nested, .staying = rootfs_writes_as_owner(&b->rootfs)};
	int r;

	for (size_t i = 0; i < LIMITS_N; i++)
		if (ways[i].means == LIMIT_BY_RESOURCE)
			narrow.resources[ways[i].number] = limit_value(l, ways[i].limit);
	/* The kernel counts per user namespace, so only the processes of the room. */
	if (b->limit_pids)
		narrow.resources[RLIMIT_NPROC] = l->pids;
	r = narrow_limits(&narrow, err);
	/* Late, because a change of identity would undo this. */
	if (r == 0)
		r = ns_die_with_parent(b->report, err);
	return r < 0 ? r : narrow_process(&narrow, err);
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
		r = stage_narrow(b, err);
	if (r < 0)
		return r;
	umask(022);
	execve(ROOMCTL_INIT_PATH, argv, no_environment);
	return err_sys(err, errno, "execute %s in the room", b->rootfs.spec->init_path);
}
