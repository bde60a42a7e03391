/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a provider enforces the limits of a room. Each limit is a row of LIMIT in options.def, and
 * each provider answers for each of them: a table that lacks one does not compile. */

#include "provider/provider.h"

enum room_limit {
#define OPTION(member, type, ...)
#define LIMIT(member, word, ...) LIMIT_##member,
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
	LIMITS_N
};

enum limit_means {
	LIMIT_REFUSED,     /* not at all; text says why */
	LIMIT_BY_RESOURCE, /* process 1, and so each process: number is RLIMIT_* */
	LIMIT_BY_GROUP,    /* the control group: number is an enum cgroup_controller */
	LIMIT_BY_MAKER,    /* the program that makes the room */
	LIMIT_BY_MOUNTS,   /* the size of the room's tmpfs (room_limits_tmpfs) */
};

struct limit_way {
	enum room_limit limit;
	enum limit_means means;
	int number;
	const char *text; /* LIMIT_REFUSED: why. LIMIT_BY_RESOURCE: what this does not cover, or
			   * NULL */
	const char *word; /* in the request to the program that makes the room, or NULL */
};

/* Behind the table of a provider. test-provider.c looks that no limit is there twice. */
#define LIMITS_COMPLETE(ways)                                                                      \
	_Static_assert(ARRAY_SIZE(ways) == LIMITS_N, "a limit of options.def has no row here")

/* Return the value of a limit; 0: there is none. */
uint64_t limit_value(const struct room_limits *l, enum room_limit which);
/* Return the name of its option, without "--". */
const char *limit_option(enum room_limit which);
/* Return whether a room may be made in which it is not in force. */
bool limit_is_optional(const struct room_limits *l, enum room_limit which);

/* A limit that was asked for is not in force. If the room may be made all the same, note this in it
 * and return 0; else fail (E_LIMITS_UNAVAILABLE) (INV-LIMITS-OR-REFUSAL). */
_warn_unused_ int limit_lacks(struct room *room, const struct room_limits *l, enum room_limit which,
	const char *why, struct cloche_err *err);
