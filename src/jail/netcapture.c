/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A network namespace with only a loopback device has no way out. A route that declares every
 * address local makes the kernel deliver whatever the room sends, to any address, back to the room:
 * the packet leaves through lo and comes in again. On its way in, two tproxy rules direct TCP for
 * any address but the room's own to a transparent listener. The local address of its accepted
 * sockets is the address that was dialled. The listeners are made here and handed to another
 * process: a socket stays in the namespace where it was made, wherever it is used. UDP needs no
 * rule but a socket on port 53 of every address; other ports answer with "connection refused" at
 * once, so QUIC falls back to TCP.
 *
 * The route needs its preferred source address. Without it, the source of a connection would be its
 * destination, and if the two ports happened to be equal, it would connect to itself. IPv6 uses
 * ::1.
 *
 * Nothing here confines the room; the missing way out does (INV-NO-ROUTE). If root inside the room
 * undoes all of this, it only loses its network. */
#include "jail/netcapture.h"
#include "base/fd.h"
#include "jail/netlink.h"
#include "jail/nftables.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LO_INDEX = 1, DNS_PORT = 53, BACKLOG = 4096 };

/* The room's own address, from the range for carrier-grade NAT (RFC 6598): no real network that a
 * tool inside might compare it with uses it. */
static const uint8_t own_address[4] = {100, 64, 0, 2};

/* Change a setting that is not essential: if /proc is read-only or the kernel does not have it, the
 * room works without it. */
static void try_sysctl(const char *path, const char *value)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, value, strlen(value)) < 0)
		return;
}

static void add_link_up(struct netlink *nl)
{
	const struct ifinfomsg lo = {.ifi_family = AF_UNSPEC,
		.ifi_index = LO_INDEX,
		.ifi_flags = IFF_UP,
		.ifi_change = IFF_UP};

	netlink_begin(nl, RTM_NEWLINK, NLM_F_ACK, &lo, sizeof(lo));
}

static void add_address(struct netlink *nl)
{
	const struct ifaddrmsg a = {.ifa_family = AF_INET,
		.ifa_prefixlen = 32,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = LO_INDEX};

	netlink_begin(nl, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &a, sizeof(a));
	netlink_attr(nl, IFA_LOCAL, own_address, sizeof(own_address));
	netlink_attr(nl, IFA_ADDRESS, own_address, sizeof(own_address));
}

static void add_route(struct netlink *nl, unsigned char family)
{
	const struct rtmsg rt = {.rtm_family = family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL};

	netlink_begin(nl, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &rt, sizeof(rt));
	netlink_attr_u32(nl, RTA_OIF, LO_INDEX);
	if (family == AF_INET)
		netlink_attr(nl, RTA_PREFSRC, own_address, sizeof(own_address));
}

int netcapture_loopback_only(struct cloche_err *err)
{
	struct netlink nl = {0};
	uint32_t seq;
	int r;

	add_link_up(&nl);
	r = netlink_run(&nl, NETLINK_ROUTE, 1, &seq);
	if (r < 0)
		return err_sys(err, -r, "bring up the room's loopback device");
	try_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	return 0;
}

/* Set addresses and routes in one request. *ret_v6: whether IPv6 is there. */
static int set_routes(bool *ret_v6, struct cloche_err *err)
{
	static const char *const steps[] = {"bring up the room's loopback device",
		"give the room its address", "route IPv4 to the gateway",
		"route IPv6 to the gateway"};
	struct netlink nl = {0};
	uint32_t seq;
	int r;

	add_link_up(&nl);
	add_address(&nl);
	add_route(&nl, AF_INET);
	add_route(&nl, AF_INET6);
	r = netlink_run(&nl, NETLINK_ROUTE, ARRAY_SIZE(steps), &seq);
	*ret_v6 = r == 0;
	if (r == 0 || seq == ARRAY_SIZE(steps))
		return 0;
	return err_sys(err, -r, "%s", seq ? steps[seq - 1] : "talk to the kernel about routes");
}

static int set_option(int s, int level, int option, const char *what, struct cloche_err *err)
{
	const int on = 1;

	if (setsockopt(s, level, option, &on, sizeof(on)) < 0)
		return err_sys(err, errno, "set %s on a listener of the room", what);
	return 0;
}

static int set_options(int s, bool v6, bool tcp, struct cloche_err *err)
{
	int r;

	if (!v6) {
		r = set_option(s, SOL_IP, IP_TRANSPARENT, "IP_TRANSPARENT", err);
		return r < 0 || tcp ? r : set_option(s, SOL_IP, IP_PKTINFO, "IP_PKTINFO", err);
	}
	r = set_option(s, SOL_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY", err);
	if (r == 0)
		r = set_option(s, SOL_IPV6, IPV6_TRANSPARENT, "IPV6_TRANSPARENT", err);
	if (r == 0 && !tcp)
		r = set_option(s, SOL_IPV6, IPV6_RECVPKTINFO, "IPV6_RECVPKTINFO", err);
	return r;
}

/* Without SO_REUSEADDR and SO_REUSEPORT, so that no process in the room can bind to these ports as
 * well. */
static int bind_listener(int s, bool v6, bool tcp)
{
	in_port_t port = htons(tcp ? NETCAPTURE_PORT : DNS_PORT);
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = port};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = port};

	if (tcp) {
		a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a6.sin6_addr = in6addr_loopback;
	}
	return v6 ? bind(s, (void *)&a6, sizeof(a6)) : bind(s, (void *)&a4, sizeof(a4));
}

/* -EADDRNOTAVAIL or -EAFNOSUPPORT (without err) if the machine has no IPv6. */
static int make_listener(int family, int type, struct cloche_err *err)
{
	bool v6 = family == AF_INET6, tcp = type == SOCK_STREAM;
	_cleanup_fd_ int s = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (s < 0)
		return v6 && errno == EAFNOSUPPORT ? -EAFNOSUPPORT
						   : err_sys(err, errno, "make a listener");
	r = set_options(s, v6, tcp, err);
	if (r < 0)
		return r;
	if (bind_listener(s, v6, tcp) < 0)
		return v6 && errno == EADDRNOTAVAIL ? -EADDRNOTAVAIL
						    : err_sys(err, errno, "bind a listener");
	if (tcp && listen(s, BACKLOG) < 0)
		return err_sys(err, errno, "listen in the room");
	return TAKE_FD(s);
}

static int open_listeners(bool v6, struct netcapture *n, struct cloche_err *err)
{
	if ((n->tcp4 = make_listener(AF_INET, SOCK_STREAM, err)) < 0)
		return n->tcp4;
	if ((n->udp4 = make_listener(AF_INET, SOCK_DGRAM, err)) < 0)
		return n->udp4;
	n->diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	if (!v6)
		return 0;
	n->tcp6 = make_listener(AF_INET6, SOCK_STREAM, err);
	if (n->tcp6 == -EAFNOSUPPORT || n->tcp6 == -EADDRNOTAVAIL)
		return 0;
	if (n->tcp6 < 0)
		return n->tcp6;
	n->udp6 = make_listener(AF_INET6, SOCK_DGRAM, err);
	return n->udp6 < 0 ? n->udp6 : 0;
}

int netcapture_setup(struct netcapture *ret, struct cloche_err *err)
{
	struct netcapture n = NETCAPTURE_INIT;
	bool v6;
	int r;

	/* The room's link is memory, and the host's default may pace (BBR), with a timer for each
	 * packet. Every kernel has reno. A socket takes the algorithm that is set when it is made.
	 */
	try_sysctl("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
	r = set_routes(&v6, err);
	if (r == 0)
		r = open_listeners(v6, &n, err);
	if (r == 0)
		r = nftables_capture(own_address, NETCAPTURE_PORT, err);
	if (r < 0) {
		netcapture_close(&n);
		return r;
	}
	try_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	/* Every address is local, so the kernel would answer a ping to any of them. */
	try_sysctl("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
	try_sysctl("/proc/sys/net/ipv6/icmp/echo_ignore_all", "1");
	if (n.tcp6 < 0)
		n.tcp6 = n.udp6 = -1;
	*ret = n;
	return 0;
}

void netcapture_close(struct netcapture *n)
{
	n->tcp4 = fd_close(n->tcp4);
	n->tcp6 = fd_close(n->tcp6);
	n->udp4 = fd_close(n->udp4);
	n->udp6 = fd_close(n->udp6);
	n->diag = fd_close(n->diag);
}
