/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp-filters.h"

static int install(
	const struct sock_filter *filter, size_t n, unsigned long flags, struct cloche_err *err)
{
	struct sock_fprog prog = {
		.len = (unsigned short)n,
		/* The kernel only reads it; the struct has no const. */
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog) != 0)
		return err_sys(err, errno, "install the system call filter");
	return 0;
}

int seccomp_install(enum seccomp_filter_id id, struct cloche_err *err)
{
	int r;

	if (id == SECCOMP_STAYING)
		return install(filter_staying, ARRAY_SIZE(filter_staying), 0, err);
	if (id == SECCOMP_STAYING_NESTED)
		return install(filter_staying_nested, ARRAY_SIZE(filter_staying_nested), 0, err);
	/* Of two refusals the kernel reports that of the filter installed last: the argument rules
	 * know the better errno. */
	if (id == SECCOMP_ROOM_NESTED)
		r = install(filter_room_nested, ARRAY_SIZE(filter_room_nested), 0, err);
	else
		r = install(filter_room, ARRAY_SIZE(filter_room), 0, err);
	if (r < 0)
		return r;
	if (id == SECCOMP_ROOM_NESTED)
		return install(
			filter_arguments_nested, ARRAY_SIZE(filter_arguments_nested), 0, err);
	return install(filter_arguments, ARRAY_SIZE(filter_arguments), 0, err);
}

int seccomp_install_program(enum seccomp_program program, struct cloche_err *err)
{
	static const struct {
		const struct sock_filter *code;
		size_t n;
	} filters[] = {
		[SECCOMP_GATEWAY] = {filter_gateway, ARRAY_SIZE(filter_gateway)},
		[SECCOMP_BROKER] = {filter_broker, ARRAY_SIZE(filter_broker)},
		[SECCOMP_FORWARD] = {filter_forward, ARRAY_SIZE(filter_forward)},
	};
	const size_t n = filters[program].n;
	_cleanup_(freep) struct sock_filter *code = calloc(n, sizeof(*code));

	if (!code)
		return err_nomem(err);
	memcpy(code, filters[program].code, n * sizeof(*code));
	for (size_t i = 0; i < n; i++)
		if (code[i].k == SELF_PLACEHOLDER)
			code[i].k = (uint32_t)getpid();
	return install(code, n, SECCOMP_FILTER_FLAG_TSYNC, err);
}
