/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which process of a room holds a TCP connection: by the kernel's socket diagnostics, and the
 * descriptors of the room's processes. */

#include "provider/provider.h"

/* How long looking may take: a room chooses how many processes, threads and descriptors there are,
 * and how often is asked. Zeroed at first. */
struct owner_budget {
	int64_t left; /* usec */
	uint64_t at;  /* monotonic */
};

/* diag: NETLINK_SOCK_DIAG socket of the room's network namespace (jail/netcapture.h), non-blocking;
 * root: process 1 of the room, as we see it. client and server have one family. Bounded work: a
 * few thousand descriptors are looked at, and what that takes is of the budget. False if nobody
 * is found, or the budget is used up. */
bool connection_owner(int diag, pid_t root, const struct sockaddr *client,
	const struct sockaddr *server, struct owner_budget *budget, struct room_owner *ret);

/* For it alone, and its tests: whether there may be a look now; one has taken so long. */
bool owner_budget_allows(struct owner_budget *b, uint64_t now);
void owner_budget_spend(struct owner_budget *b, uint64_t usec);
