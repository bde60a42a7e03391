/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use the kernel's ciphers by AF_ALG, where bugs were, and which load modules
 * Wall: seccomp: AF_ALG is refused */
#include "attempt.h"

#include <linux/if_alg.h>
#include <sys/socket.h>

int main(void)
{
	struct sockaddr_alg a = {.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "sha1"};
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	refused("socket(AF_ALG)", fd);
	REFUSED(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return verdict();
}
