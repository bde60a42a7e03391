/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The homes of agents that are kept (docs/design/agents.md). */

#include "agent/driver.h"
#include "base/fd.h"
#include "base/sha256.h"
#include <cloche/agent.h>

/* Where a home is in the room. It is no home of the host, so no project lies in it. */
#define HOMES_INSIDE "/home/agent"
/* Where in it an agent works that has no project. */
#define HOMES_WORK "work"

struct agent_home {
	int held; /* keeps it from being removed; -1: none */
	int dir;  /* O_PATH: what is mounted; -1: none */
	char *path;
	bool is_new, is_shared; /* somebody else has it, too */
};
#define AGENT_HOME_INIT ((struct agent_home){.held = -1, .dir = -1})
static inline void agent_home_done(struct agent_home *h)
{
	h->held = fd_close(h->held);
	h->dir = fd_close(h->dir);
	free(h->path);
	h->path = NULL;
}

/* Open the home of an agent for a project ("": none); make it if there is none. fn is told which
 * files of the person could not be copied into a new one. */
_warn_unused_ int homes_open(const struct agent_driver *d, const char *project,
	cloche_warning_fn fn, void *user, struct agent_home *ret, struct cloche_err *err);
/* Store the name that a home has. */
_warn_unused_ int homes_name(
	const char *agent, const char *project, char **ret, struct cloche_err *err);

/* Get the person's key for surrogates that stay the same; it is made if there is none. */
_warn_unused_ int homes_key(uint8_t ret[SHA256_BYTES], struct cloche_err *err);
