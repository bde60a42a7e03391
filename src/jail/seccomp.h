/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System call filters, compiled at build time from seccomp-rules.def and seccomp-programs.def by
 * seccomp-gen.c. */

#include "base/err.h"
#include <stdbool.h>

enum seccomp_filter {
	/* Calls that the rules do not know fail with ENOSYS, those that they refuse on purpose with
	 * EPERM (the rules say which and why). Calls of another architecture's table (i386, x32)
	 * kill the process. */
	SECCOMP_ROOM,
	/* The same for a room with a writable mount of a host directory: nothing may be left there
	 * that others could use. No file can be given a set-uid bit, nor made with a set-gid bit
	 * (openat2() fails with ENOSYS, as no filter can read its mode), and no device can be made.
	 * A second filter has to decide who may get a set-gid bit later. */
	SECCOMP_ROOM_STAYING,
	/* As SECCOMP_ROOM, but processes inside may make namespaces, including user namespaces, and
	 * mounts in these. */
	SECCOMP_ROOM_NESTED,
	/* Both of the above, and nothing gets a set-gid bit; but instead of devices, extended
	 * attributes are refused. In a user namespace of its own a process could give a file
	 * capabilities, which would stay on the file, and a filter cannot tell them apart, since
	 * the name of the attribute is in memory. (Overlays that are mounted inside set attributes
	 * of their own, "user.overlay.", and leave whiteouts: both mean nothing except to
	 * overlayfs.) */
	SECCOMP_ROOM_NESTED_STAYING,
	/* Nothing that is there gets a set-gid bit. */
	SECCOMP_NO_SETGID,

	/* For our own programs: calls that seccomp-programs.def does not allow fail with EPERM or
	 * end the process. */
	SECCOMP_GATEWAY,
	SECCOMP_BROKER,
	SECCOMP_BROKER_OFFLINE, /* the same without sockets: dialling ends the process */
	SECCOMP_FORWARD,
	SECCOMP_UNPACK,
	SECCOMP_SYNC,
	SECCOMP_RELAY,
	SECCOMP_SSH_ROOM,
	SECCOMP_SSH_ORIGIN,
};

/* Install a filter for all threads of the process and everything that it starts, for good.
 * no_new_privs must be set. */
_warn_unused_ int seccomp_install(enum seccomp_filter which, struct cloche_err *err);

/* For this thread and all that it starts: calls that would give what is there a set-gid bit wait
 * for an answer (seccomp_unotify(2)). Return the descriptor on which they are answered, or -errno.
 * This makes one system call. no_new_privs must be set. */
int seccomp_install_asking(void);

/* The same for a room without a network namespace of its own: no socket in it sends to the
 * machine's network, and socket() for the internet families, connect(), bind(), getsockname() and
 * getpeername() wait for an answer (init/dial.h), and so do
 * all calls that change the mode of what is there. What else of the machine Landlock leaves open is
 * refused: unix sockets for datagrams, objects of System V, limits and priorities of others. Needs
 * Linux 5.19. */
int seccomp_install_dialling(void);
/* Return whether this kernel has calls wait for an answer. */
bool seccomp_can_ask(void);
