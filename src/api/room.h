/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From a configuration to a sandbox that is being made: shared by one-shot runs and long-lived
 * sandboxes. */

#include "api/network.h"
#include "client/client.h"
#include "sandbox/sandbox.h"

/* The whole environment of what runs inside: the configured one, what makes runtimes trust the
 * gateway, and surrogates, each over the one before. Heap (strv_free). 0 or -ENOMEM. */
_warn_unused_ int room_make_env(const cloche_sandbox *sb, char ***ret);

/* Starts a supervisor for the room that sb describes and has its broker configured; waits for
 * nothing. start has what is not the configuration's (one_shot, detached, kept, config); the rest
 * of it is filled here. net is initialised in any case: network_done() when the client is freed. */
_warn_unused_ int room_start(const cloche_sandbox *sb, struct client_start *start,
	struct network *net, struct client **ret, struct cloche_err *err);
