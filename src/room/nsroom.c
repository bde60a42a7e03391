/* SPDX-License-Identifier: Apache-2.0 */
#include "room/nsroom.h"
#include "base/fd.h"
#include "room/proctree.h"

void nsroom_init(struct nsroom *r, const struct provider *p)
{
	*r = (struct nsroom){.net = NETCAPTURE_INIT, .cgroup = CGROUP_INIT};
	room_init(&r->base, p);
}

int nsroom_kill_tree(struct room *room, pid_t pid, struct cloche_err *err)
{
	if (room_has_ended(room) || pid <= 1 || !proctree_kill(room->pid, true, pid))
		return err_set(err, E_NOT_FOUND, "the room has no process %d", (int)pid);
	return 0;
}

int nsroom_listeners(struct room *room, int ret[ROOM_LISTENERS], struct cloche_err *err)
{
	struct netcapture *n = &nsroom(room)->net;

	if (n->tcp4 < 0)
		return err_set(err, E_INTERNAL, "the room has no listeners (any more)");
	ret[ROOM_TCP4] = TAKE_FD(n->tcp4);
	ret[ROOM_TCP6] = TAKE_FD(n->tcp6);
	ret[ROOM_UDP4] = TAKE_FD(n->udp4);
	ret[ROOM_UDP6] = TAKE_FD(n->udp6);
	ret[ROOM_CAPTURE] = -1;
	return 0;
}

bool nsroom_owner(struct room *room, const struct sockaddr *client, const struct sockaddr *server,
	struct room_owner *ret)
{
	struct nsroom *r = nsroom(room);

	return room->pid > 0 && r->net.diag >= 0 &&
	       connection_owner(r->net.diag, room->pid, client, server, &r->looks, ret);
}
