/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The network of a room. Its functions are called by a process that has just entered a fresh
 * network namespace and has CAP_NET_ADMIN in it. Needs nothing but the kernel, so it also links
 * into a static program. */

#include "base/err.h"

enum { NETCAPTURE_PORT = 15001 };

/* Descriptors to accept and answer on from another network namespace; -1 if there is none (no
 * IPv6 on this machine). All are non-blocking and close-on-exec.
 *
 * tcp4, tcp6  listen on 127.0.0.1:15001 and [::1]:15001. getsockname() of an accepted connection is
 *             the address that the room dialled. If that is the listener's own address, a
 *             process dialled it directly: drop it.
 * udp4, udp6  port 53 of every address, with IP_PKTINFO and IPV6_RECVPKTINFO: answer from the
 *             address that was asked (ipi_spec_dst = ipi_addr).
 * diag        NETLINK_SOCK_DIAG socket of the room's namespace, to look up who owns a connection.
 */
struct netcapture {
	int tcp4, tcp6, udp4, udp6, diag;
};

#define NETCAPTURE_INIT                                                                            \
	{                                                                                          \
		-1, -1, -1, -1, -1                                                                 \
	}

/* Bring up the loopback device and let every process bind low ports. No route leads anywhere. */
_warn_unused_ int netcapture_loopback_only(struct cloche_err *err);

/* Make every IPv4 and IPv6 address local, open the listeners, and direct TCP to them, except to the
 * room's own addresses (127.0.0.0/8, ::1, 100.64.0.2). On failure nothing stays open. */
_warn_unused_ int netcapture_setup(struct netcapture *ret, struct cloche_err *err);

/* Close what is open and set all of it to -1. */
void netcapture_close(struct netcapture *n);
