/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Starts a sandbox from its configuration. Shared by one-shot runs and long-lived sandboxes. */

#include "api/start/network.h"
#include "client/client.h"
#include "sandbox/sandbox.h"
#include "workspace/heard.h"

/* Make the whole environment for processes inside: the configured one, then variables that make
 * runtimes trust the gateway, then surrogates; later ones win. *ret is on the heap (strv_free).
 * Return 0 or -ENOMEM. */
_warn_unused_ int room_make_env(const cloche_sandbox *sb, char ***ret);

/* Start a supervisor for the room that sb describes and queue the configuration of its broker. Do
 * not wait for anything. how has what is not in sb: one_shot, detached, unfinished, kept, and
 * config (which is taken, even on failure). net is always initialised: call network_done() when the
 * client is freed. fn (may be NULL) is told if not all files could be protected. What is
 * protected is added to heard (may be NULL). */
_warn_unused_ int room_start(const cloche_sandbox *sb, const struct ctl_start *how,
	struct network *net, struct heard *heard, cloche_warning_fn fn, void *user,
	struct client **ret, struct cloche_err *err);

/* --- runtime.c: prepares a long-lived sandbox for its runtime --- */

/* Before it is made: mount the user's own interpreter (nvm, pyenv, ...) and package manager. */
_warn_unused_ int runtime_add_tools(cloche_sandbox *sb, struct cloche_err *err);
/* When the room runs: fail if something that was asked for is missing, and make the virtual
 * environment. */
_warn_unused_ int runtime_prepare(
	struct client *c, const cloche_sandbox *sb, struct cloche_err *err);
