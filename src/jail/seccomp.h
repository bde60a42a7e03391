/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System call filters, compiled at build time from seccomp-rules.def and seccomp-programs.def by
 * seccomp-gen.c. */

#include "base/err.h"

enum seccomp_filter_id {
	/* The allowlist. Calls it does not know fail with ENOSYS, those that it refuses on purpose
	 * with EPERM (the rules say which and why); calls of another architecture's table (i386,
	 * x32) kill the process. */
	SECCOMP_ROOM,
	/* The same, but those inside may make namespaces, user namespaces among them, and mounts in
	 * these. */
	SECCOMP_ROOM_NESTED,
	/* On top of it, where a directory of the host is mounted for writing: nothing can be left
	 * there that others could use. No file can be given a set-uid or set-gid bit (openat2(),
	 * whose mode no filter can read, answers ENOSYS), and no device can be made. */
	SECCOMP_STAYING,
	/* The same, where those inside may make user namespaces: instead of devices, no extended
	 * attribute can be set. In a namespace of theirs they could give a file capabilities,
	 * which it would keep, and the name of the attribute is in memory, where no filter looks.
	 * (Overlays that they mount set attributes of their own, "user.overlay.", and leave
	 * whiteouts: both mean nothing to anybody but overlayfs.) */
	SECCOMP_STAYING_NESTED,
	SECCOMP_FILTER_END_,
};

/* Installs a filter for the calling thread and all it starts, for good. no_new_privs must be set.
 */
_warn_unused_ int seccomp_install(enum seccomp_filter_id id, struct cloche_err *err);

enum seccomp_program {
	SECCOMP_GATEWAY,
	SECCOMP_BROKER,
	SECCOMP_FORWARD,
};

/* Installs the filter of a program of ours for all of its threads. Calls that seccomp-programs.def
 * does not allow it fail with EPERM or end the process; those of another architecture's table end
 * it. no_new_privs must be set. */
_warn_unused_ int seccomp_install_program(enum seccomp_program program, struct cloche_err *err);
