/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A SOCK_SEQPACKET pair between the parent and the room's first process while that is still our own
 * program: no byte of it comes from anything hostile. A message is the listeners of the room with
 * a bit for each that is there, its two layers, or the error object that ended the attempt. The
 * child's end is close-on-exec, so the end of file says that init runs. */
#include "base/fd.h"
#include "provider/native/native.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum kind { REPORT_NET = 1, REPORT_LAYERS, REPORT_FAILURE };

struct report {
	enum kind kind;
	unsigned present; /* bits of the listeners that are attached, in their order */
	struct cloche_err err;
};

union control {
	struct cmsghdr align;
	char mem[CMSG_SPACE(sizeof(int) * NETCAPTURE_FDS)];
};

static int send_fds(int sock, struct report *rep, const int *fds, unsigned n)
{
	struct iovec iov = {.iov_base = rep, .iov_len = sizeof(*rep)};
	union control control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.mem};
	struct cmsghdr *c = &control.align;

	msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int native_report_net(int sock, const struct netcapture *net, struct cloche_err *err)
{
	struct report rep = {.kind = REPORT_NET};
	int all[NETCAPTURE_FDS], fds[NETCAPTURE_FDS], r;
	unsigned i, n = 0;

	netcapture_to_array(net, all);
	for (i = 0; i < NETCAPTURE_FDS; i++)
		if (all[i] >= 0) {
			rep.present |= 1u << i;
			fds[n++] = all[i];
		}
	r = send_fds(sock, &rep, fds, n);
	return r < 0 ? err_sys(err, -r, "hand out the room's listeners") : 0;
}

int native_report_layers(int sock, int upper, int lower, struct cloche_err *err)
{
	struct report rep = {.kind = REPORT_LAYERS};
	const int fds[] = {upper, lower};
	int r = send_fds(sock, &rep, fds, ARRAY_SIZE(fds));

	return r < 0 ? err_sys(err, -r, "hand out the room's layers") : 0;
}

void native_report_failure(int sock, const struct cloche_err *why)
{
	struct report rep = {.kind = REPORT_FAILURE, .err = *why};

	/* If the parent is gone there is nobody to tell. */
	(void)!send(sock, &rep, sizeof(rep), MSG_NOSIGNAL);
}

static void take_listeners(struct msghdr *msg, unsigned present, struct netcapture *ret)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int all[NETCAPTURE_FDS] = NETCAPTURE_INIT;
	size_t n, next = 0;
	unsigned i;
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (i = 0; i < NETCAPTURE_FDS && next < n; i++)
		if (present & 1u << i) {
			memcpy(&fd, CMSG_DATA(c) + sizeof(int) * next++, sizeof(fd));
			all[i] = fd;
		}
	netcapture_close(ret);
	netcapture_from_array(all, ret);
}

static void take_layers(struct msghdr *msg, struct room *ret)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fds[2];

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len != CMSG_LEN(sizeof(fds)))
		return;
	memcpy(fds, CMSG_DATA(c), sizeof(fds));
	fd_close(ret->upper_fd);
	fd_close(ret->lower_fd);
	ret->upper_fd = fds[0];
	ret->lower_fd = fds[1];
}

int native_await_report(int sock, struct room *ret, struct cloche_err *err)
{
	struct report rep;

	for (;;) {
		struct iovec iov = {.iov_base = &rep, .iov_len = sizeof(rep)};
		union control control;
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.mem,
			.msg_controllen = sizeof(control.mem)};
		ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

		/* ECONNRESET says once that the child ended without reading our "go on"; what it
		 * wrote comes after. */
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n < 0)
			return err_sys(err, errno, "hear from the room");
		if (n == 0)
			return 0;
		if (n != sizeof(rep))
			return err_set(err, E_INTERNAL, "a torn report from the room");
		if (rep.kind == REPORT_NET) {
			take_listeners(&msg, rep.present, &ret->net);
			continue;
		}
		if (rep.kind == REPORT_LAYERS) {
			take_layers(&msg, ret);
			continue;
		}
		if (err)
			*err = rep.err;
		return rep.err.code ? -rep.err.code : -E_INTERNAL;
	}
}
