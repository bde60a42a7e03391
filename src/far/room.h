/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A room at the other end of a stream, as its supervisor has it. Not thread-safe. */

#include "provider/provider.h"

/* What the program of the provider is asked: the request to start a room, and the one to be
 * connected with it again. Borrowed. */
struct far_requests {
	struct str start, again;
};

/* Make a room there. p: the provider, whose program carries bytes; spec: as for create of struct
 * provider. The room's operations are those of far_provider. */
_warn_unused_ int far_room_create(const struct provider *p, const struct room_spec *spec,
	const struct far_requests *requests, struct room **ret, struct cloche_err *err);

/* The operations of such rooms. Only those that have a room can be called; the rest is the
 * program's. */
extern const struct provider far_provider;

/* What has to run in the other place, as the argument of `sh -c`. It has neither a newline nor a
 * single quote. Heap; NULL with err set. verb: "start", "attach", "reap", or "probe", whose id is
 * "". */
char *far_script(const char *verb, const char *id, struct cloche_err *err);
