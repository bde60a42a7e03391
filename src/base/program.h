/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Helper programs, cloche's own and others: where they are, and how they are started. */

#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

/* Finds a program that belongs to cloche: in $CLOCHE_LIBEXEC if that is set, else beside the
 * running executable, else in the installed libexec directory, else in that of cloche itself.
 * Returns a heap string, or NULL with err set. */
char *program_find(const char *name, struct cloche_err *err);

/* Finds a program on the person's PATH, in its absolute directories. A heap string, or NULL. */
char *program_on_path(const char *name);

struct program_fd {
	int from; /* borrowed */
	int to;   /* number in the program; ascending, above 2, without gaps better */
};

struct program_spawn {
	const char *path;
	char *const *argv, *const *env;
	const struct program_fd *fds;
	size_t fds_n;
	int stdio[3];   /* -1: /dev/null */
	bool own_group; /* it leads a process group of its own */
};

/* Starts a program with exactly these descriptors, default signal dispositions and nothing
 * blocked; uses vfork's way, so its cost does not grow with the caller. The process is a child of
 * the caller, who has to reap it. *ret_pidfd may be NULL. */
_warn_unused_ int program_start(
	const struct program_spawn *p, pid_t *ret_pid, int *ret_pidfd, struct cloche_err *err);

/* The part of an environment that a helper program may see: settings of cloche, of the session, of
 * container engines and of sanitizers, never the rest (it may hold real secrets). Heap array of
 * heap strings (strv_free), NULL on lack of memory. */
char **program_env(char *const *env);

/* When a process was started, in the kernel's ticks since the machine's (field 22 of its
 * /proc/PID/stat): with the pid that names one process of one boot. 0 if there is none, or if it is
 * dead and only waited for. */
uint64_t program_start_time(pid_t pid);
