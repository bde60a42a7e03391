/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a task needs of a run beyond the public functions. */

#include "api/sandbox.h"
#include <cloche/run.h>

/* As cloche_run_new, but takes sb (also on failure) and argv (copied). */
int run_new_take(cloche_sandbox *sb, char *const *argv, cloche_run **ret, struct cloche_err *err);

static inline void cloche_run_freep(cloche_run **run)
{
	cloche_run_free(*run);
}
