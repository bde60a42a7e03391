/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A SOCK_SEQPACKET pair connects the parent and the room's first process while that is still our
 * own program: no byte of it comes from anything hostile. A message of the child is its user
 * namespace, its two layers, its io figures, its copies of configurations,
 * or the error object that ended the attempt; a message
 * of the parent is the room's network namespace. The child's end is close-on-exec, so end of file
 * means that init runs. */
#include "base/fd.h"
#include "provider/native/native.h"

#include <errno.h>
#include <sys/socket.h>

enum { MAX_FDS = 2 };
enum kind { REPORT_LAYERS = NATIVE_NETWORK + 1, REPORT_IO, REPORT_CONFIG, REPORT_FAILURE };

struct report {
	unsigned kind; /* of either enum */
	struct cloche_err err;
};

static int send_fds(int sock, struct report *rep, const int *fds, unsigned n)
{
	struct iovec iov = {.iov_base = rep, .iov_len = sizeof(*rep)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_control control;

	fd_attach(&msg, &control, fds, n);
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int native_report_layers(int sock, int upper, int lower, struct cloche_err *err)
{
	struct report rep = {.kind = REPORT_LAYERS};
	const int fds[] = {upper, lower};
	int r = send_fds(sock, &rep, fds, ARRAY_SIZE(fds));

	return r < 0 ? err_sys(err, -r, "hand out the room's layers") : 0;
}

int native_report_io(int sock, int fd, struct cloche_err *err)
{
	struct report rep = {.kind = REPORT_IO};
	int r = send_fds(sock, &rep, &fd, 1);

	return r < 0 ? err_sys(err, -r, "hand out the room's figures") : 0;
}

int native_report_config(int sock, int fd, struct cloche_err *err)
{
	struct report rep = {.kind = REPORT_CONFIG};
	int r = send_fds(sock, &rep, &fd, 1);

	return r < 0 ? err_sys(err, -r, "hand out the copies of configurations") : 0;
}

void native_report_failure(int sock, const struct cloche_err *why)
{
	struct report rep = {.kind = REPORT_FAILURE, .err = *why};

	/* If the parent is gone, the failure cannot be reported. */
	(void)!send(sock, &rep, sizeof(rep), MSG_NOSIGNAL);
}

int native_hand(int sock, enum native_namespace which, int fd, struct cloche_err *err)
{
	struct report rep = {.kind = which};
	int r = send_fds(sock, &rep, &fd, 1);

	return r < 0 ? err_sys(err, -r, "hand over a namespace of the room") : 0;
}

/* Receive a message with its descriptors. Return its size, 0 at the end of file, or -errno. */
static ssize_t receive(int sock, struct report *ret, int ret_fds[MAX_FDS], unsigned *ret_n)
{
	struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
	union fd_control control;
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	/* ECONNRESET is reported once if the other end ended without reading what was sent to it;
	 * what it wrote comes after. */
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	*ret_n = n < 0 ? 0 : fd_detach(&msg, ret_fds, MAX_FDS);
	return n < 0 ? -errno : n;
}

int native_take(int sock, enum native_namespace which, int *ret_fd, struct cloche_err *err)
{
	struct report rep;
	int fds[MAX_FDS];
	unsigned fds_n;
	bool whole = receive(sock, &rep, fds, &fds_n) == sizeof(rep);

	if (whole && rep.kind == REPORT_FAILURE && rep.err.code) {
		if (err)
			*err = rep.err;
		return -rep.err.code;
	}
	if (!whole || rep.kind != which || fds_n != 1)
		return err_set(err, E_CANCELLED, "the other end gave up");
	*ret_fd = fds[0];
	return 0;
}

int native_await_report(int sock, struct native_room *ret, struct cloche_err *err)
{
	struct report rep;
	int fds[MAX_FDS];
	unsigned fds_n;

	for (;;) {
		ssize_t n = receive(sock, &rep, fds, &fds_n);

		if (n < 0)
			return err_sys(err, (int)-n, "hear from the room");
		if (n == 0)
			return 0;
		if (n != sizeof(rep))
			return err_set(err, E_INTERNAL, "a torn report from the room");
		if (rep.kind == REPORT_IO && fds_n == 1) {
			ret->io_fd = fds[0];
			continue;
		}
		if (rep.kind == REPORT_CONFIG && fds_n == 1) {
			ret->ns.base.config_fd = fds[0];
			continue;
		}
		/* Nobody took it, as the child failed before it heard the parent. */
		if (rep.kind == NATIVE_USER && fds_n == 1) {
			fd_close(fds[0]);
			continue;
		}
		if (rep.kind != REPORT_LAYERS)
			break;
		if (fds_n == MAX_FDS) {
			ret->upper_fd = fds[0];
			ret->lower_fd = fds[1];
		}
	}
	if (err)
		*err = rep.err;
	return rep.err.code ? -rep.err.code : -E_INTERNAL;
}
