/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: change the network by netlink: addresses, routes, devices, rules; listen to the kernel's
 *    events
 * Wall: capabilities: no NET_ADMIN; seccomp: no family of netlink but routes
 * Behind it: network namespace: what may be changed is one's own */
#include "attempt.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

static long ask(uint16_t type, uint16_t flags)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg m;
		char space[64];
	} req = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			 .nlmsg_type = type,
			 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
			 .nlmsg_seq = 1},
		.m = {.ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_change = IFF_UP}};
	union {
		struct nlmsghdr h;
		char space[4096];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct nlmsgerr *e;

	if (fd < 0 || send(fd, &req, req.h.nlmsg_len, 0) < 0 ||
		recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.h))
		return -1;
	close(fd);
	e = NLMSG_DATA(&answer.h);
	errno = -e->error;
	return e->error < 0 ? -1 : 0;
}

int main(void)
{
	int protocol;

	REFUSED(ask(RTM_NEWLINK, 0));
	REFUSED(ask(RTM_DELLINK, 0));
	REFUSED(ask(RTM_NEWADDR, NLM_F_CREATE));
	REFUSED(ask(RTM_NEWROUTE, NLM_F_CREATE));
	REFUSED(ask(RTM_DELRULE, 0));
	for (protocol = 1; protocol < 32; protocol++)
		refused("another netlink", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
	return verdict();
}
