/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Maps the identities in the room to those of the host. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { IDMAP_RANGE = 65536 };

struct idmap {
	bool range;        /* 0..65535 inside are base..base+65535 outside; else one single id */
	uint32_t base;     /* first uid and gid outside; above 65535 */
	uint32_t uid, gid; /* inside, of the first process: root's of a range, else the single id */
};

/* Choose the mapping. Root of the host gets a range that no account uses: the one that /etc/subuid
 * and /etc/subgid grant to root, if they do, else one of 4094 ranges from 0x70000000 up, picked by
 * the room's id (systemd leaves those free). Every other user, and root if the range does not exist
 * (inside another user namespace) or it has no capability SYS_ADMIN to copy mounts (in a
 * container), gets a single id: its own, which is uid and gid inside. */
struct idmap idmap_choose(const char *room_id, uint32_t uid, uint32_t gid);

/* Called by the process itself in its new namespace: write the map of the single id. outer_*: its
 * ids before. */
_warn_unused_ int idmap_write_self(
	const struct idmap *m, uid_t outer_uid, gid_t outer_gid, struct cloche_err *err);

/* Called by the parent: write the map of the range. */
_warn_unused_ int idmap_write_range(const struct idmap *m, pid_t pid, struct cloche_err *err);

/* Become the first process's user, after the maps are written. Every capability in the room's user
 * namespace stays until the next program is executed, whoever that user is. */
_warn_unused_ int idmap_become_first(const struct idmap *m, struct cloche_err *err);

/* Open a descriptor of the user namespace of a process, for idmapped mounts. */
_warn_unused_ int idmap_open_ns(pid_t pid, int *ret_fd, struct cloche_err *err);
