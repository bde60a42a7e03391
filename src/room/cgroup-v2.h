/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds where in a version 2 hierarchy the group of a room can be made. For the cgroup*.c files. */

#include "room/cgroup-find.h"

/* The best first. */
enum cgroup_way {
	CGROUP_WAY_READY,  /* the parent already enables its controllers for its children */
	CGROUP_WAY_ENABLE, /* it has to be told to */
	CGROUP_WAY_LEAF,   /* the same, after its processes have moved to a leaf below it: a group
			    * with processes cannot enable controllers for its children */
	CGROUP_WAY_NONE
};

struct cgroup_choice {
	enum cgroup_way way;
	char *parent;  /* heap; NULL with CGROUP_WAY_NONE */
	unsigned have; /* the wanted controllers (bits) that a group below it can have */
};

#define CGROUP_CHOICE_INIT ((struct cgroup_choice){.way = CGROUP_WAY_NONE})

/* Search our own group and those above it, the nearest first, for the best parent of a group with
 * these controllers. managed: a service manager owns the hierarchy, so that only what it marked as
 * delegated is considered. Change nothing. Return 0 or -ENOMEM. */
_warn_unused_ int cgroup_v2_choose(
	const struct cgroup_place *place, unsigned wanted, bool managed, struct cgroup_choice *ret);

/* The same for one group alone, which is ours: it needs no mark. */
_warn_unused_ int cgroup_v2_choose_here(
	const char *dir, unsigned wanted, struct cgroup_choice *ret);

void cgroup_choice_done(struct cgroup_choice *c);

/* Make the chosen parent enable the wanted controllers for its children: move processes if that is
 * the way and turn controllers on (also that for io if there is one: it costs nothing and counts).
 * Store in choice->have what groups below it have now. */
_warn_unused_ int cgroup_v2_prepare(
	struct cgroup_choice *choice, unsigned wanted, struct cloche_err *err);

/* Make dir enable these controllers (bits) for its children. Return 0 or -errno. */
_warn_unused_ int cgroup_v2_turn_on(const char *dir, unsigned controllers);

/* Return the controllers (bits) that the whole hierarchy has. */
unsigned cgroup_v2_offers(const struct cgroup_place *place);

/* Store in words (at most size bytes) why a group with controller c cannot be had. */
void cgroup_v2_explain(const struct cgroup_place *place, const struct cgroup_choice *choice,
	enum cgroup_controller c, bool managed, char *ret, size_t size);
