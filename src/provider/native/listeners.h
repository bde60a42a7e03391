/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hands over the listeners of a captured network (room_listeners). */

#include "base/fd.h"
#include "jail/netcapture.h"
#include "provider/provider.h"

/* Works once; n keeps the rest. */
static inline int listeners_take(
	struct netcapture *n, int ret[ROOM_LISTENERS], struct cloche_err *err)
{
	if (n->tcp4 < 0)
		return err_set(err, E_INTERNAL, "the room has no listeners (any more)");
	ret[ROOM_TCP4] = TAKE_FD(n->tcp4);
	ret[ROOM_TCP6] = TAKE_FD(n->tcp6);
	ret[ROOM_UDP4] = TAKE_FD(n->udp4);
	ret[ROOM_UDP6] = TAKE_FD(n->udp6);
	return 0;
}
