/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The native room. Shared by the files of this folder. */

#include "provider/limit.h"
#include "room/imageroot.h"
#include "room/nsroom.h"
#include "room/rootfs.h"

struct native_room {
	struct nsroom ns;       /* first */
	int upper_fd, lower_fd; /* of the overlay, O_PATH; -1: none */
	int io_fd;        /* io of process 1 (proc(5)), if it could not be opened later; else -1 */
	uint32_t id_base; /* the host's id of user (and group) 0 if a range of ids is mapped;
			   * else 0 */
	struct keep keep;
	struct imageroot image;
	int shipped; /* holds the copy of /etc, so that it is not removed; -1: none */
	/* Without a cgroup: usage of the reaped processes, and the highest values seen. */
	uint64_t cpu_usec, memory_peak, pids_peak;
};

/* What the child needs to become the room's first process; copied into it by the fork. */
struct native_birth {
	struct rootfs rootfs; /* with the room's spec */
	bool limit_pids;      /* by RLIMIT_NPROC, if there is no cgroup for it */
	uid_t outer_uid;      /* our ids on the host: the child cannot see them */
	gid_t outer_gid;
	int control, report; /* the child's ends */
};

/* Do everything that happens in the first process. Return only on failure. */
_warn_unused_ int native_child(struct native_birth *b, struct cloche_err *err);

/* The messages of the report socket. First the child hands over its user namespace, since under
 * some identities only the child itself can open it; then it gets one byte, "go on", and later its
 * network. Both ends run the same program. End of file without a failure means that init was
 * executed. */
enum native_namespace { NATIVE_USER = 1, NATIVE_NETWORK };
_warn_unused_ int native_hand(
	int sock, enum native_namespace which, int fd, struct cloche_err *err);
_warn_unused_ int native_take(
	int sock, enum native_namespace which, int *ret_fd, struct cloche_err *err);
_warn_unused_ int native_report_layers(int sock, int upper, int lower, struct cloche_err *err);
_warn_unused_ int native_report_io(int sock, int fd, struct cloche_err *err);
_warn_unused_ int native_report_config(int sock, int fd, struct cloche_err *err);
void native_report_failure(int sock, const struct cloche_err *why);
/* Read to the end of file; store what it hands out in ret. */
_warn_unused_ int native_await_report(int sock, struct native_room *ret, struct cloche_err *err);

static inline struct native_room *native_room(struct room *r)
{
	return container_of(r, struct native_room, ns.base);
}

static inline const struct native_room *native_room_const(const struct room *r)
{
	return (const struct native_room *)r;
}

/* --- ask.c: the optional operations --- */
void native_doctor(provider_check_fn fn, void *user);
int native_usage(struct room *r, struct room_usage *ret, struct cloche_err *err);
void native_lend(const struct room *r, int fd, uint32_t uid, uint32_t gid);
int native_layers(const struct room *r, int *ret_upper, int *ret_lower, struct cloche_err *err);
int native_diff_kept(const char *dir, room_change_fn fn, void *user, struct cloche_err *err);
