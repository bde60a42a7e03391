/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: make a socket of every other family; each is a part of the kernel that few have looked at
 * Wall: seccomp: unix, the two internet families and routes alone */
#include "attempt.h"

#include <sys/socket.h>

int main(void)
{
	int family, type, pair[2];

	for (family = 0; family < 64; family++)
		for (type = 1; type < 8; type++) {
			bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				     family == AF_NETLINK;

			if (!known && socket(family, type, 0) >= 0) {
				printf("family %d type %d\n", family, type);
				escaped("socket");
			}
			if (family != AF_UNIX && socketpair(family, type, 0, pair) >= 0)
				escaped("socketpair");
		}
	return verdict();
}
