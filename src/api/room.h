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

/* Where commands start that say nothing else; borrowed from sb. */
const char *room_workdir(const cloche_sandbox *sb);

/* Starts a supervisor for the room that sb describes and has its broker configured; waits for
 * nothing. start has what is not the configuration's (one_shot, detached, kept, config); the rest
 * of it is filled here. net is initialised in any case: network_done() when the client is freed. */
_warn_unused_ int room_start(const cloche_sandbox *sb, struct client_start *start,
	struct network *net, struct client **ret, struct cloche_err *err);

/* The configuration as a JSON object for the record: what was granted, secrets by their names
 * alone, variables by theirs. Heap; NULL on lack of memory. */
char *room_describe(const cloche_sandbox *sb);
/* The same of a sandbox for one command: what it runs, its first arguments, cut where they are
 * long.
 */
char *room_describe_command(const char *const *argv);
