/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Narrowing: gives the first process of a room the same few rights that every process in the room
 * will have, and our own programs as few as possible. Depends on the kernel alone, not on how a
 * room was made. */

#include "jail/seccomp.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct narrow {
	bool nested;  /* processes in the room may make namespaces of their own */
	bool staying; /* a directory of the host is mounted writable: nothing may be left there that
		       * others could use (SECCOMP_ROOM_STAYING) */
	uint64_t resources[RLIM_NLIMITS]; /* by RLIMIT_*; 0: unchanged */
};

/* One of these limits as a word of a program's arguments: "rlimit=NUMBER:VALUE". */
enum { NARROW_WORD = 48 };
void narrow_put_word(int resource, uint64_t value, char ret[NARROW_WORD]);
/* Take such a word. Return false if it is none. */
_warn_unused_ bool narrow_take_word(struct narrow *n, const char *word);

/* Set the resource limits and leave real-time scheduling. */
_warn_unused_ int narrow_limits(const struct narrow *n, struct cloche_err *err);

/* Apply the capabilities, no_new_privs, Landlock and the system call filter, all for good. Unless
 * the room is nested, Landlock allows writing only beneath its root, whatever descriptor is used;
 * within it, the mounts decide. The caller is root in its user namespace with every capability
 * there, is in the room's root, and has one thread. */
_warn_unused_ int narrow_process(const struct narrow *n, struct cloche_err *err);

/* For a program that faces a network, called before it reads the first byte from it (INV-NARROW):
 * drop all capabilities, set no_new_privs and install its filter for all of its threads, all for
 * good. */
_warn_unused_ int narrow_program(enum seccomp_filter filter, struct cloche_err *err);
