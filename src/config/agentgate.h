/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The AGENTGATE_ environment variables: defaults for sandboxes, and for programs that make many of
 * them. One table has their names, units and ranges. */

#include "base/err.h"
#include "base/macro.h"
#include <cloche/sandbox.h>

struct agentgate {
	uint64_t cleanup_ms; /* between two cleanups; 0: no cleanups */
	unsigned max_runs;   /* at a time */
	bool sandboxed;      /* drivers use sandboxes */
};

/* Read the variables into sb and ret. Each may be NULL: then the variables for it alone are not
 * read. If a variable is not set, sb stays as it is, and ret gets AgentGate's default. given (may
 * be NULL, NULL-terminated): names of options whose variables are ignored. fn (may be NULL) is
 * called if two spellings of a variable disagree. E_USAGE: an invalid value, or an unknown variable
 * for sandboxes. */
_warn_unused_ int agentgate_read(cloche_sandbox *sb, struct agentgate *ret,
	const char *const *given, cloche_warning_fn fn, void *user, struct cloche_err *err);
