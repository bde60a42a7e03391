/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Prepares a long-lived sandbox for its runtime. */

#include "client/client.h"
#include "sandbox/sandbox.h"

/* Before it is made: mount the user's own interpreter (nvm, pyenv, ...) and package manager. */
_warn_unused_ int runtime_add_tools(cloche_sandbox *sb, struct cloche_err *err);
/* When the room runs: fail if something that was asked for is missing, and make the virtual
 * environment. */
_warn_unused_ int runtime_prepare(
	struct client *c, const cloche_sandbox *sb, struct cloche_err *err);
