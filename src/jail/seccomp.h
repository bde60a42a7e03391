/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System call filters, compiled at build time from seccomp-rules.def and seccomp-programs.def by
 * seccomp-gen.c. */

#include "base/err.h"

enum seccomp_filter {
	/* Calls that the rules do not know fail with ENOSYS, those that they refuse on purpose
	 * with EPERM (the rules say which and why); calls of another architecture's table (i386,
	 * x32) kill the process. */
	SECCOMP_ROOM,
	/* The same if a directory of the host is mounted for writing: nothing can be left there
	 * that others could use. No file can be given a set-uid or set-gid bit (openat2(), whose
	 * mode no filter can read, answers ENOSYS), and no device can be made. */
	SECCOMP_ROOM_STAYING,
	/* As the first, but those inside may make namespaces, user namespaces among them, and
	 * mounts in these. */
	SECCOMP_ROOM_NESTED,
	/* Of both: instead of devices, no extended attribute can be set. In a namespace of theirs
	 * they could give a file capabilities, which it would keep, and the name of the attribute
	 * is in memory, if no filter looks. (Overlays that they mount set attributes of their
	 * own, "user.overlay.", and leave whiteouts: both mean nothing to anybody but overlayfs.)
	 */
	SECCOMP_ROOM_NESTED_STAYING,

	/* Of our own programs: calls that seccomp-programs.def does not allow fail with EPERM or
	 * end the process. */
	SECCOMP_GATEWAY,
	SECCOMP_BROKER,
	SECCOMP_BROKER_OFFLINE, /* the same without sockets: whoever dials is ended */
	SECCOMP_FORWARD,
	/* Of cloche-unpack, likewise; seccomp-unpack.def. */
	SECCOMP_UNPACK,
};

/* Installs a filter for all threads of the process and all that it starts, for good. no_new_privs
 * must be set. */
_warn_unused_ int seccomp_install(enum seccomp_filter which, struct cloche_err *err);
