/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System call filters, compiled at build time from seccomp-rules.def by seccomp-gen.c. */

#include "base/err.h"

enum seccomp_filter_id {
	/* The allowlist. Calls it does not know fail with ENOSYS, those that it refuses on purpose
	 * with EPERM (the rules say which and why); calls of another architecture's table (i386,
	 * x32) kill the process. */
	SECCOMP_ROOM,
	/* The same, but those inside may make namespaces, user namespaces among them, and mounts in
	 * these. */
	SECCOMP_ROOM_NESTED,
	/* On top of it, where a directory of the host is mounted for writing: no file can be given
	 * a set-uid or set-gid bit, as it would keep it on the host, where others could use it.
	 * openat2(), whose mode no filter can read, answers ENOSYS. */
	SECCOMP_NO_SETID,
	/* Besides it, where those inside may make user namespaces: no extended attribute can be
	 * set. In a namespace of theirs they could give a file capabilities, which it would keep,
	 * and the name of the attribute is in memory, where no filter looks. */
	SECCOMP_NO_XATTR,
	SECCOMP_FILTER_END_,
};

/* Installs a filter for the calling thread and all it starts, for good. no_new_privs must be set.
 */
_warn_unused_ int seccomp_install(enum seccomp_filter_id id, struct cloche_err *err);
