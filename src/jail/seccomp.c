/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp-filters.h"

int seccomp_install(enum seccomp_filter which, struct cloche_err *err)
{
	static const struct {
		const struct sock_filter *code;
		size_t n;
	} filters[] = {
#define FILTER(array) {array, ARRAY_SIZE(array)}
		[SECCOMP_ROOM] = FILTER(filter_room),
		[SECCOMP_ROOM_STAYING] = FILTER(filter_room_staying),
		[SECCOMP_ROOM_NESTED] = FILTER(filter_room_nested),
		[SECCOMP_ROOM_NESTED_STAYING] = FILTER(filter_room_nested_staying),
		[SECCOMP_NO_SETGID] = FILTER(filter_no_setgid),
		[SECCOMP_GATEWAY] = FILTER(filter_gateway),
		[SECCOMP_BROKER] = FILTER(filter_broker),
		[SECCOMP_BROKER_OFFLINE] = FILTER(filter_broker_offline),
		[SECCOMP_FORWARD] = FILTER(filter_forward),
		[SECCOMP_UNPACK] = FILTER(filter_unpack),
	};
	struct sock_filter code[BPF_MAXINSNS];
	struct sock_fprog prog = {.len = (unsigned short)filters[which].n, .filter = code};

	memcpy(code, filters[which].code, prog.len * sizeof(code[0]));
	for (size_t i = 0; i < prog.len; i++)
		if (code[i].k == SELF_PLACEHOLDER)
			code[i].k = (uint32_t)getpid();
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return err_sys(err, errno, "install the system call filter");
	return 0;
}

int seccomp_install_asking(void)
{
	struct sock_filter code[ARRAY_SIZE(filter_ask_setgid)];
	struct sock_fprog prog = {.len = (unsigned short)ARRAY_SIZE(code), .filter = code};
	int fd;

	memcpy(code, filter_ask_setgid, sizeof(code));
	fd = (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);

	return fd < 0 ? -errno : fd;
}
