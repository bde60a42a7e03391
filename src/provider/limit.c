/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/limit.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
	const char *option;
	size_t offset;
} rows[] = {
#define OPTION(member, type, ...)
#define LIMIT(member, word, ...) {word, offsetof(struct room_limits, member)},
#define VERB(...)
#define MEMBER(member, type)
#include "provider/options.def"
};

uint64_t limit_value(const struct room_limits *l, enum room_limit which)
{
	return *(const uint64_t *)((const char *)l + rows[which].offset);
}

const char *limit_option(enum room_limit which)
{
	return rows[which].option;
}

bool limit_is_optional(const struct room_limits *l, enum room_limit which)
{
	return l->best_effort || (which == LIMIT_memory_bytes && l->memory_optional) ||
	       (which == LIMIT_cpus_milli && l->cpus_optional);
}

int limit_lacks(struct room *room, const struct room_limits *l, enum room_limit which,
	const char *why, struct cloche_err *err)
{
	const char *option = limit_option(which);
	char text[512];

	if (limit_is_optional(l, which)) {
		snprintf(text, sizeof(text), "the %s limit: %s", option, why);
		return room_add_unenforced(room, text, err);
	}
	err_set(err, E_LIMITS_UNAVAILABLE, "the %s limit cannot be enforced: %s", option, why);
	err_hint(err, "leave --%s out, or say --limits best-effort to run without it", option);
	return -E_LIMITS_UNAVAILABLE;
}
