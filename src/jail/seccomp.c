/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp-filters.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define FILTERS(_)                                                                                 \
	_(SECCOMP_ROOM, filter_room)                                                               \
	_(SECCOMP_ROOM_STAYING, filter_room_staying)                                               \
	_(SECCOMP_ROOM_NESTED, filter_room_nested)                                                 \
	_(SECCOMP_ROOM_NESTED_STAYING, filter_room_nested_staying)                                 \
	_(SECCOMP_NO_SETGID, filter_no_setgid)                                                     \
	_(SECCOMP_GATEWAY, filter_gateway)                                                         \
	_(SECCOMP_BROKER, filter_broker)                                                           \
	_(SECCOMP_BROKER_OFFLINE, filter_broker_offline)                                           \
	_(SECCOMP_FORWARD, filter_forward)                                                         \
	_(SECCOMP_UNPACK, filter_unpack)                                                           \
	_(SECCOMP_SYNC, filter_sync)                                                               \
	_(SECCOMP_RELAY, filter_relay)                                                             \
	_(SECCOMP_SSH_ROOM, filter_ssh_room)                                                       \
	_(SECCOMP_SSH_ORIGIN, filter_ssh_origin)

static const struct {
	const struct sock_filter *code;
	size_t n;
} filters[] = {
#define FILTER(number, array) [number] = {array, ARRAY_SIZE(array)},
	FILTERS(FILTER)};

/* As large as the largest. A larger frame would touch pages that no filter needs. */
union seccomp_code {
#define ROOM(number, array) struct sock_filter array##_[ARRAY_SIZE(array)];
	FILTERS(ROOM)
	struct sock_filter any[1];
};

int seccomp_install(enum seccomp_filter which, struct cloche_err *err)
{
	union seccomp_code buffer;
	struct sock_filter *code = buffer.any;
	struct sock_fprog prog = {.len = (unsigned short)filters[which].n, .filter = code};

	memcpy(&buffer, filters[which].code, prog.len * sizeof(code[0]));
	for (size_t i = 0; i < prog.len; i++)
		if (code[i].k == SELF_PLACEHOLDER)
			code[i].k = (uint32_t)getpid();
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return err_sys(err, errno, "install the system call filter");
	return 0;
}

/* As large as the larger one. */
union seccomp_asking {
	struct sock_filter setgid[ARRAY_SIZE(filter_ask_setgid)];
	struct sock_filter dialling[ARRAY_SIZE(filter_ask_dialling)];
	struct sock_filter any[1];
};

static int seccomp_listen(const struct sock_filter *filter, size_t n, unsigned long flags)
{
	union seccomp_asking code;
	struct sock_fprog prog = {.len = (unsigned short)n, .filter = code.any};
	int fd;

	memcpy(&code, filter, n * sizeof(*filter));
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &prog);
	return fd < 0 ? -errno : fd;
}

int seccomp_install_asking(void)
{
	return seccomp_listen(filter_ask_setgid, ARRAY_SIZE(filter_ask_setgid), 0);
}

int seccomp_install_dialling(void)
{
	/* Once a request is taken, only a deadly signal ends the wait: a call that began anew would
	 * find its work done. */
	return seccomp_listen(filter_ask_dialling, ARRAY_SIZE(filter_ask_dialling),
		SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
}

bool seccomp_can_ask(void)
{
	const uint32_t action = SECCOMP_RET_USER_NOTIF;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
