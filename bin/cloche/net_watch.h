/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asking a person what a sandbox may reach besides. */

#include <cloche/error.h>
#include <stdbool.h>

/* Ask until the sandbox of that id or name has ended. json: questions are printed as JSON Lines,
 * and answers ("NUMBER y|a|n") are read from standard input. quiet: nothing but questions is
 * printed. Return an exit status or a negated error code. */
int net_watch(const char *name, bool json, bool quiet, cloche_err *err);
/* Have another process do that on this terminal for a run's sandbox. Return its pid, or a negated
 * error code. */
int net_watch_start(const char *id, cloche_err *err);
