/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up descriptors: open files, sockets, eventfds, epolls, and some in flight
 * Wall: RLIMIT_NOFILE of each process; the room's end closes them */
#include "attempt.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static void send_one(int to, int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	(void)!sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int main(void)
{
	int n = 0, pair[2], i;

	while (n < 30000) {
		int fd = n % 4 == 0   ? open("/dev/null", O_RDONLY)
			 : n % 4 == 1 ? eventfd(0, 0)
			 : n % 4 == 2 ? epoll_create1(0)
				      : socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0)
			break;
		n++;
	}
	printf("%d descriptors, then: %s\n", n, strerror(errno));
	for (i = 3; i < 100; i++)
		close(i);
	for (i = 0; i < 20 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0; i++) {
		for (int k = 0; k < 50; k++)
			send_one(pair[0], pair[1]);
		close(pair[0]);
		close(pair[1]);
	}
	if (n >= 30000)
		escaped("no limit of descriptors");
	return verdict();
}
