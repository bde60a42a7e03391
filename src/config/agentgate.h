/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The AGENTGATE_ variables of the environment: defaults of sandboxes, and of those who make many.
 * One table has their names, units and ranges. */

#include "base/err.h"
#include "base/macro.h"
#include <cloche/sandbox.h>

struct agentgate {
	uint64_t cleanup_ms; /* between two cleanups; 0: there is none */
	unsigned max_runs;   /* at a time */
	bool sandboxed;      /* drivers use sandboxes */
};

/* Reads them into sb and ret (each may be NULL: then what is its alone is not read); what is not
 * set there stays as it is in sb, and is AgentGate's default in ret. given (may be NULL, ends with
 * NULL): names of options whose variables do not count. fn (may be NULL) is told of two spellings
 * that disagree. E_USAGE: a value that cannot be, or a name of a sandbox's variable that nobody
 * knows. */
_warn_unused_ int agentgate_read(cloche_sandbox *sb, struct agentgate *ret,
	const char *const *given, cloche_warning_fn fn, void *user, struct cloche_err *err);
