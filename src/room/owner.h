/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the process of a room that holds a TCP connection, by the kernel's socket diagnostics and
 * the descriptors of the room's processes. */

#include "provider/provider.h"

/* The time that searches may take: the room decides how many processes, threads and descriptors
 * there are, and how often a search is needed. Zeroed at first. */
struct owner_budget {
	int64_t left; /* usec */
	uint64_t at;  /* monotonic */
};

/* Find the owner of a connection. diag: non-blocking NETLINK_SOCK_DIAG socket of the room's network
 * namespace (jail/netcapture.h); root: process 1 of the room, as we see it. client and server have
 * one family. Bounded work: at most a few thousand descriptors are examined, and the time is taken
 * from the budget. Return false if no process is found or the budget is used up. */
bool connection_owner(int diag, pid_t root, const struct sockaddr *client,
	const struct sockaddr *server, struct owner_budget *budget, struct room_owner *ret);

/* For connection_owner() and its tests: return whether a search may start now; record how long one
 * has taken. */
bool owner_budget_allows(struct owner_budget *b, uint64_t now);
void owner_budget_spend(struct owner_budget *b, uint64_t usec);
