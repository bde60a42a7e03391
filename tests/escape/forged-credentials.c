/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: claim to be another process or user by SCM_CREDENTIALS, as services believe
 * Wall: user namespace: ids of the host cannot be named; pid namespace
 * Behind it: the same */
#include "attempt.h"

#include <sys/socket.h>

static long claim(int fd, pid_t pid, uid_t uid)
{
	struct ucred who = {.pid = pid, .uid = uid, .gid = uid};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(who))];
	} control = {0};
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_CREDENTIALS;
	control.align.cmsg_len = CMSG_LEN(sizeof(who));
	memcpy(CMSG_DATA(&control.align), &who, sizeof(who));
	return sendmsg(fd, &msg, 0);
}

int main(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return BROKEN;
	REFUSED(claim(pair[0], canary_number("CANARY_PID"), getuid()));
	REFUSED(claim(pair[0], 1, getuid()));
	REFUSED(claim(pair[0], getpid(), 100000));
	return verdict();
}
