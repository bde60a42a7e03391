/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The network logs that sandboxes with a network keep by themselves: JSON Lines in one directory
 * below the state directory, ID.jsonl or, of a sandbox with a name, ID@NAME.jsonl. Whoever may
 * write to a log holds a shared lock on it, so a log without one is complete. Of complete logs the
 * latest NETLOGS_KEPT stay. */

#include "base/err.h"
#include <stdbool.h>

enum { NETLOGS_KEPT = 64, NETLOGS_SLACK = 16 };
#define NETLOG_KEPT_BYTES (16ULL << 20) /* of one log; the oldest lines go first */

/* Create the log of a sandbox (name NULL: it has none), opened for appending and locked, after
 * removing logs that are too many. */
_warn_unused_ int netlogs_create(const char *id, const char *name, struct cloche_err *err);

/* Store the path of a log on the heap. sandbox is an id, its unambiguous beginning, or a name; of
 * several with that name the latest. E_NOT_FOUND if there is none, E_USAGE if several ids begin so.
 */
_warn_unused_ int netlogs_find(const char *sandbox, char **ret, struct cloche_err *err);

/* Remove the log of a sandbox, if it has one. */
void netlogs_remove(const char *id);

/* Return whether somebody may still write to the log on fd. */
bool netlog_is_open(int fd);
