/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the first process of a room becomes as narrow as everything in it will be. Needs nothing but
 * the kernel, and nothing of how the room was made: whoever becomes process 1 can call it. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct narrow {
	bool nested;  /* those inside may make namespaces of their own */
	bool staying; /* a directory of the host is mounted for writing: nothing can be left there
		       * that others could use (SECCOMP_STAYING) */
	uint64_t nofile, file_bytes, pids; /* as in struct room_limits; 0: left as it is */
};

/* Resource limits and the end of real-time scheduling. */
_warn_unused_ int narrow_limits(const struct narrow *n, struct cloche_err *err);

/* Capabilities, no_new_privs, Landlock (what lies in the room is left to the mounts; nothing else
 * may be written to, by whatever descriptor) and system call filters, all for good. The caller is
 * root in its user namespace, with every capability there, in the room's root, and has one
 * thread. */
_warn_unused_ int narrow_process(const struct narrow *n, struct cloche_err *err);
