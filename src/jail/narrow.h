/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the first process of a room becomes as narrow as everything in it will be, and a program of
 * ours as narrow as it can be. Needs nothing but the kernel, and nothing of how a room was made. */

#include "jail/seccomp.h"
#include <stdbool.h>
#include <stdint.h>

struct narrow {
	bool nested;  /* those inside may make namespaces of their own */
	bool staying; /* a directory of the host is mounted for writing: nothing can be left there
		       * that others could use (SECCOMP_ROOM_STAYING) */
	uint64_t nofile, file_bytes, pids; /* as in struct room_limits; 0: left as it is */
};

/* Resource limits and the end of real-time scheduling. */
_warn_unused_ int narrow_limits(const struct narrow *n, struct cloche_err *err);

/* Capabilities, no_new_privs, Landlock (what lies in the room is left to the mounts; nothing else
 * may be written to, by whatever descriptor) and system call filters, all for good. The caller is
 * root in its user namespace, with every capability there, in the room's root, and has one
 * thread. */
_warn_unused_ int narrow_process(const struct narrow *n, struct cloche_err *err);

/* By a program that faces a network, before it reads the first byte of it (INV-NARROW): no
 * capability, no_new_privs, and its filter for all of its threads, all for good. */
_warn_unused_ int narrow_program(enum seccomp_filter filter, struct cloche_err *err);
