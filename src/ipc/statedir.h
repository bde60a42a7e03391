/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where cloche keeps what outlives sandboxes: contexts of agents, and the consents of the person.
 * $CLOCHE_STATE_DIR; else $XDG_STATE_HOME/cloche; else ~/.local/state/cloche. */

#include "base/err.h"
#include <stdbool.h>

/* The path of name in it, on the heap. -E_CONFIG if there is none, or if the variable holds
 * no absolute path: what lies below the working directory may be a room's. */
_warn_unused_ int statedir_path(const char *name, char **ret, struct cloche_err *err);

/* Below it: who was consented to (config/consent.h). */
#define STATEDIR_CONSENT "trust"

/* Opens (O_PATH) the directory of the consents or, if it is not there yet, the nearest above it
 * that is and that we may search. -1 if there can be none. */
int statedir_open_consent(bool *ret_is_there);
