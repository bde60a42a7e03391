/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The few things that musl lacks. Forced into every source of the programs that are linked with it
 * (-include); nobody else includes it. */

#include <linux/close_range.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The resource argument is an int there. */
#define __rlimit_resource_t int

static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

/* Its texts are constants in any locale. */
static inline const char *strerrordesc_np(int errnum)
{
	return strerror(errnum);
}

/* These programs have one thread and open everything close-on-exec: there is nothing to close. */
static inline int posix_spawn_file_actions_addclosefrom_np(
	posix_spawn_file_actions_t *actions, int from)
{
	(void)actions;
	(void)from;
	return 0;
}
