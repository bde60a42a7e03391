/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: connect to an abstract unix socket of the host, or take its name
 * Wall: network namespace: abstract names belong to it; Landlock scopes them again
 * Behind it: network namespace */
#include "attempt.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
	static const int kinds[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(canary("CANARY_ABSTRACT"));
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);

	memcpy(a.sun_path + 1, canary("CANARY_ABSTRACT"), n);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd = socket(AF_UNIX, kinds[i] | SOCK_CLOEXEC, 0);

		REFUSED(connect(fd, (struct sockaddr *)&a, len));
		if (sendto(fd, "escaped", 7, MSG_NOSIGNAL, (struct sockaddr *)&a, len) >= 0)
			escaped("sendto");
	}
	return verdict();
}
