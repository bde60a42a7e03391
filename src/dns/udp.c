/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/udp.h"
#include "base/fd.h"
#include "dns/message.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

void dns_udp_prepare(int fd)
{
	const int one = 1;

	/* One of these fails, because a socket has one family. */
	(void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one));
}

union dns_udp_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

/* Build the control data of the answer from that of the query, so that the answer is sent from the
 * address that was asked. Return false if that address is not known. */
static bool dns_udp_from(struct msghdr *in, struct msghdr *out, union dns_udp_control *control)
{
	struct cmsghdr *cm, *made = &control->align;

	memset(control, 0, sizeof(*control));
	out->msg_control = control->bytes;
	for (cm = CMSG_FIRSTHDR(in); cm; cm = fd_next_control(in, cm)) {
		if (cm->cmsg_level == IPPROTO_IP && cm->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(cm), sizeof(info));
			info.ipi_spec_dst = info.ipi_addr;
			info.ipi_ifindex = 0;
			made->cmsg_len = CMSG_LEN(sizeof(info));
			memcpy(CMSG_DATA(made), &info, sizeof(info));
			out->msg_controllen = CMSG_SPACE(sizeof(info));
		} else if (cm->cmsg_level == IPPROTO_IPV6 && cm->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(cm), sizeof(info));
			/* A link-local address needs its interface. */
			if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
				info.ipi6_ifindex = 0;
			made->cmsg_len = CMSG_LEN(sizeof(info));
			memcpy(CMSG_DATA(made), &info, sizeof(info));
			out->msg_controllen = CMSG_SPACE(sizeof(info));
		} else {
			continue;
		}
		made->cmsg_level = cm->cmsg_level;
		made->cmsg_type = cm->cmsg_type;
		return true;
	}
	return false;
}

bool dns_udp_answer(int fd, dns_udp_fn respond, void *user)
{
	_cleanup_(buf_donep) struct buf answer = BUF_INIT(DNS_TCP_MAX);
	char packet[DNS_UDP_MAX];
	union dns_udp_control got, made;
	struct sockaddr_storage from;
	struct iovec iov = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr in = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = got.bytes,
		.msg_controllen = sizeof(got),
	};
	struct msghdr out;
	ssize_t n = recvmsg(fd, &in, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR;
	if ((in.msg_flags & MSG_TRUNC) || respond(user, str_make(packet, (size_t)n), &answer) <= 0)
		return true;
	iov = (struct iovec){.iov_base = buf_data(&answer), .iov_len = buf_len(&answer)};
	out = (struct msghdr){
		.msg_name = &from,
		.msg_namelen = in.msg_namelen,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	/* An answer that cannot be sent is lost, like any datagram. */
	if (dns_udp_from(&in, &out, &made))
		(void)sendmsg(fd, &out, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}
