/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The native room, shared by the files of this folder alone. */

#include "jail/cgroup.h"
#include "jail/rootfs.h"
#include "provider/provider.h"

struct native_room {
	struct room base; /* first */
	struct cgroup cgroup;
	struct keep keep;
	int shipped; /* keeps it from being removed; -1: none */
	bool reaped;
	struct room_exit exit;
	/* Where there is no cgroup: of the reaped processes, and the most that was seen. */
	uint64_t cpu_usec, memory_peak, pids_peak;
};

/* What the first process needs to become the room's; copied into it by the fork. */
struct native_birth {
	const struct room_spec *spec; /* borrowed */
	struct rootfs rootfs;
	struct rootfs_mount *mounts; /* the array that rootfs borrows */
	bool limit_pids;             /* by RLIMIT_NPROC, where there is no cgroup for it */
	uid_t outer_uid;             /* who we are on the host: the child cannot see that */
	gid_t outer_gid;
	int control, report; /* its ends */
};

/* Everything that happens in the first process. Returns only on failure. */
_warn_unused_ int native_child(struct native_birth *b, struct cloche_err *err);

/* The messages of the report socket. First the child hands out its user namespace, which it alone
 * can open whoever it is; it gets one byte, "go on", and later its network. Both ends are the same
 * program; end-of-file without a failure means that init was executed. */
enum native_namespace { NATIVE_USER = 1, NATIVE_NETWORK };
_warn_unused_ int native_hand(
	int sock, enum native_namespace which, int fd, struct cloche_err *err);
_warn_unused_ int native_take(
	int sock, enum native_namespace which, int *ret_fd, struct cloche_err *err);
_warn_unused_ int native_report_layers(int sock, int upper, int lower, struct cloche_err *err);
void native_report_failure(int sock, const struct cloche_err *why);
/* Reads to the end of file; layers become those of ret. */
_warn_unused_ int native_await_report(int sock, struct room *ret, struct cloche_err *err);
