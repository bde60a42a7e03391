/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: send packets of one's own making: raw IP, packet sockets, by type and by protocol
 * Wall: seccomp: those families and protocols are refused
 * Behind it: capabilities and network namespace */
#include "attempt.h"

#include <netinet/in.h>
#include <sys/socket.h>

int main(void)
{
	REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_RAW));
	REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_TCP));
	REFUSED(socket(AF_INET6, SOCK_RAW, IPPROTO_RAW));
	REFUSED(socket(AF_PACKET, SOCK_RAW, 0x0300));
	REFUSED(socket(AF_PACKET, SOCK_DGRAM, 0x0300));
	REFUSED(socket(AF_INET, SOCK_PACKET, 0x0300));
	REFUSED(socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP));
	REFUSED(socket(AF_INET, SOCK_STREAM, 262 /* MPTCP */));
	REFUSED(socket(AF_INET, 6 /* DCCP */, 33));
	return verdict();
}
