/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What rooms have in common that are made of namespaces of this machine, whoever made them. */

#include "jail/netcapture.h"
#include "provider/provider.h"
#include "room/cgroup.h"
#include "room/owner.h"

struct nsroom {
	struct room base;      /* first; its watch_fd is a pidfd */
	struct netcapture net; /* the listeners until they are handed over, and diag */
	struct owner_budget looks;
	struct cgroup cgroup;
};

void nsroom_init(struct nsroom *r, const struct provider *p);

static inline struct nsroom *nsroom(struct room *r)
{
	return container_of(r, struct nsroom, base);
}

/* Operations of struct provider. */
int nsroom_kill_tree(struct room *r, pid_t pid, struct cloche_err *err);
int nsroom_listeners(struct room *r, int ret[ROOM_LISTENERS], struct cloche_err *err);
bool nsroom_owner(struct room *r, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret);
