/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The process that answers for the sockets of a room whose walls are Landlock and filters, and that
 * ends all of the room. */

#include "jail/narrow.h"
#include <stdbool.h>

/* In a process that has entered the guard's Landlock domain: start init as a child. In the child,
 * take the limits of n and the filter of seccomp_install_dialling(), and return 0; it has to enter
 * a domain of its own then, whose processes can neither signal the guard nor look into it. In the
 * caller, return only if there is an error: it serves until init has ended, ends all that is left,
 * and exits as init did. own: see keep.h (borrowed). captured: GUARD_GATEWAY_FD is a channel to the
 * gateway (ipc/capture.h). */
enum { GUARD_GATEWAY_FD = 4 };
_warn_unused_ int guard_part(
	const struct narrow *n, bool captured, char **own, struct cloche_err *err);

/* In init: return whether the guard has ended. */
bool guard_is_gone(void);
