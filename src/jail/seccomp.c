/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp-filters.h"

static int install(const struct sock_filter *filter, size_t n, struct cloche_err *err)
{
	struct sock_fprog prog = {
		.len = (unsigned short)n,
		/* The kernel only reads it; the struct has no const. */
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_sys(err, errno, "install the system call filter");
	return 0;
}

int seccomp_install(enum seccomp_filter_id id, struct cloche_err *err)
{
	int r;

	if (id == SECCOMP_STAYING)
		return install(filter_staying, ARRAY_SIZE(filter_staying), err);
	if (id == SECCOMP_STAYING_NESTED)
		return install(filter_staying_nested, ARRAY_SIZE(filter_staying_nested), err);
	/* Of two refusals the kernel reports that of the filter installed last: the argument rules
	 * know the better errno. */
	if (id == SECCOMP_ROOM_NESTED)
		r = install(filter_room_nested, ARRAY_SIZE(filter_room_nested), err);
	else
		r = install(filter_room, ARRAY_SIZE(filter_room), err);
	if (r < 0)
		return r;
	if (id == SECCOMP_ROOM_NESTED)
		return install(filter_arguments_nested, ARRAY_SIZE(filter_arguments_nested), err);
	return install(filter_arguments, ARRAY_SIZE(filter_arguments), err);
}
