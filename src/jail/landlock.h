/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Landlock as a second wall behind the mounts: writing only beneath named directories. */

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* The ABI version of the running kernel (1 and up), or 0 if there is no Landlock. */
int landlock_abi(void);

/* Allows the calling process and all it starts to write, make and remove files only beneath these
 * directories (borrowed; those that do not exist are skipped), and to reach abstract sockets and
 * signal processes only among themselves if the kernel can tell. A kernel without Landlock is no
 * error. no_new_privs must be set. paths_n 0: no rule about files. */
_warn_unused_ int landlock_restrict(
	const char *const *paths, size_t paths_n, struct cloche_err *err);

/* The same for a program that works in one directory: it can also open, read and execute nothing
 * that does not lie beneath it. */
_warn_unused_ int landlock_confine(const char *dir, struct cloche_err *err);

struct landlock_grant {
	const char *path; /* borrowed; one that does not exist is skipped */
	bool write;       /* everything; else reading and executing */
};
/* For a process of the host: what lies beneath these paths (or is one of them), and nothing else,
 * may be opened; with tcp false, if the kernel can tell (ABI 4), no port may be bound or
 * connected to. Otherwise as landlock_restrict(). */
_warn_unused_ int landlock_grants(
	const struct landlock_grant *grants, size_t n, bool tcp, struct cloche_err *err);
