/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a sandbox that stays needs for its runtime. */

#include "client/client.h"
#include "sandbox/sandbox.h"

/* Before it is made: shows the person's own interpreter (nvm, pyenv, ...) and package manager. */
_warn_unused_ int runtime_add_tools(cloche_sandbox *sb, struct cloche_err *err);
/* In the room: an error if something is missing that was asked for; makes the virtual
 * environment. */
_warn_unused_ int runtime_prepare(
	struct client *c, const cloche_sandbox *sb, struct cloche_err *err);
