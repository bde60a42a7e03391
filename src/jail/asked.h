/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System calls of other processes that wait for an answer (seccomp_unotify(2)). Whoever answers
 * reads what an argument points to once, and acts on that copy: the caller's memory may change at
 * any time, so no call whose arguments matter is let through to the kernel. */

#include "base/macro.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct asked {
	int listener; /* borrowed */
	uint64_t id;
	pid_t thread; /* that waits */
	int call;     /* SYS_*, of this architecture */
	uint64_t args[6];
};

/* Take one request. Return 0, or -errno if its process is gone. */
_warn_unused_ int asked_take(int listener, struct asked *ret);

/* Return whether its process still waits. Until then no other process has the thread's number, so
 * what was looked up by that number before is the caller's. */
bool asked_is_valid(const struct asked *a);

/* Copy from or to the caller's memory, all of it or nothing. Return 0 or -errno. The caller must be
 * dumpable. */
_warn_unused_ int asked_read(const struct asked *a, uint64_t at, void *ret, size_t n);
_warn_unused_ int asked_write(const struct asked *a, uint64_t at, const void *p, size_t n);

/* Copy a text that ends within max bytes, and within the memory that there is. Return 0 or -errno
 * (-ENAMETOOLONG). */
_warn_unused_ int asked_read_text(const struct asked *a, uint64_t at, char *ret, size_t max);

/* Look at the file behind a descriptor of the caller. Return 0 or -errno. */
_warn_unused_ int asked_stat(const struct asked *a, int fd, struct stat *ret);

/* Give the caller a copy of fd (borrowed) and its number as the answer. Return 0, or -errno if
 * nothing was answered. */
_warn_unused_ int asked_give(const struct asked *a, int fd, bool cloexec);
/* Answer with a result, or -errno. */
void asked_answer(const struct asked *a, int result);
/* Let the kernel do the call. */
void asked_let(const struct asked *a);
