/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Claude Code, with an API key or with a subscription's token. Included only by driver.c. */

#include "agent/driver.h"

extern const struct agent_driver agent_claude_code;
extern const struct agent_driver agent_claude_subscription;

/* Find the program on the host; see struct agent_driver. */
int claude_code_find(
	const struct agent_search *s, struct agent_program *ret, struct cloche_err *err);
