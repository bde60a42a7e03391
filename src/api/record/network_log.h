/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A network log in the loop of whoever reads it. */

#include "base/err.h"
#include <cloche/network_log.h>

/* Begin to watch the log of a sandbox (once). Return a descriptor, borrowed, that is readable when
 * there may be more; or an error. */
_warn_unused_ int network_log_watch(cloche_network_log *log, struct cloche_err *err);
/* Make it unreadable again. Call this before reading the log. */
void network_log_settle(cloche_network_log *log);
