/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: speak to the hypervisor and to other machines on it, past the network namespace
 * Wall: seccomp: AF_VSOCK is refused */
#include "attempt.h"

#include <sys/socket.h>

#include <linux/vm_sockets.h> /* it takes what is above it for granted */

int main(void)
{
	static const unsigned cids[] = {VMADDR_CID_HYPERVISOR, VMADDR_CID_HOST, 3};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	refused("socket(AF_VSOCK)", fd);
	REFUSED(socket(AF_VSOCK, SOCK_DGRAM, 0));
	REFUSED(open("/dev/vsock", O_RDWR));
	for (size_t i = 0; i < sizeof(cids) / sizeof(cids[0]); i++) {
		struct sockaddr_vm a = {
			.svm_family = AF_VSOCK, .svm_cid = cids[i], .svm_port = 1024};

		REFUSED(connect(fd, (struct sockaddr *)&a, sizeof(a)));
	}
	return verdict();
}
