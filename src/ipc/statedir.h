/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where cloche keeps data that outlives sandboxes: contexts of agents, logs, and the consents of
 * the user. $CLOCHE_STATE_DIR; else $XDG_STATE_HOME/cloche; else ~/.local/state/cloche. */

#include "base/err.h"
#include <stdbool.h>

/* Store the path of name in that directory, on the heap. Return -E_CONFIG if there is no such
 * directory, or if the variable holds no absolute path: a room may have written below the working
 * directory. */
_warn_unused_ int statedir_path(const char *name, char **ret, struct cloche_err *err);

/* Open that directory, which only we can write; make it if it is not there. ret_path: NULL, or gets
 * its path, on the heap. */
_warn_unused_ int statedir_open(const char *name, char **ret_path, struct cloche_err *err);

/* Fail with E_CONFIG if the variable holds no absolute path. */
_warn_unused_ int statedir_check(struct cloche_err *err);

/* Names in that directory: the consents (config/consent.h); all logs and their contents, as SandboX
 * calls them; the network logs that sandboxes keep (record/netlogs.h). */
#define STATEDIR_CONSENT "trust"
#define STATEDIR_LOGS "state-logs"
#define STATEDIR_BLOBS "blobs"
#define STATEDIR_NETLOGS "network-logs"
/* An empty file for each list of hidden files that a person was told of. */
#define STATEDIR_HIDDEN "hidden"

/* Open (O_PATH) the directory of the consents or, if it does not exist yet, its nearest parent that
 * exists and that we may search. Return -1 if there is none. */
int statedir_open_consent(bool *ret_is_there);

/* The same for what the user keeps for cloche (fs_config_path()): it is obeyed without consent. */
int statedir_open_settings(bool *ret_is_there);
