/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The limits that a place has by itself: an engine or a cluster has put them on the container that
 * we stand in, where we can make no control groups of our own. */

#include "provider/provider.h"

/* Store what holds for everything in our control group: memory (swap included), thousandths of a
 * processor, processes. 0: no limit is known. root_fd: the root of the file system, whose
 * /sys/fs/cgroup and /proc/swaps are read. */
void limits_of_place(int root_fd, struct room_limits *ret);

/* Drop the limits of l that the place has already, at most as high as they were asked for. */
void limits_drop_given(const struct room_limits *place, struct room_limits *l);
