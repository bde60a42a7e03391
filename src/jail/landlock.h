/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Landlock, a second wall behind the mounts: it allows writing only beneath named directories. */

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Return the ABI version of the running kernel (1 and up), or 0 if there is no Landlock. */
int landlock_abi(void);

/* Allow the calling process and everything it starts to write, make and remove files only beneath
 * these directories (borrowed; those that do not exist are skipped). If the kernel can do it, also
 * limit abstract sockets and signals to these processes themselves. A kernel without Landlock is no
 * error. no_new_privs must be set. paths_n 0: no rule about files. */
_warn_unused_ int landlock_restrict(
	const char *const *paths, size_t paths_n, struct cloche_err *err);

/* As landlock_restrict(), for a program that works in one directory: it also cannot open, read or
 * execute anything outside of it. */
_warn_unused_ int landlock_confine(const char *dir, struct cloche_err *err);

struct landlock_grant {
	const char *path; /* borrowed; one that does not exist is skipped */
	bool write;       /* all access; else only reading and executing */
};
/* For a process of the host: allow it to open these paths and what lies beneath them, and nothing
 * else. With tcp false, also forbid binding and connecting TCP ports, if the kernel can do that
 * (ABI 4). Otherwise as landlock_restrict(). */
_warn_unused_ int landlock_grants(
	const struct landlock_grant *grants, size_t n, bool tcp, struct cloche_err *err);
