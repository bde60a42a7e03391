/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up the kernel's memory by pipes made large and filled
 * Wall: the kernel's bound of what one user may have in pipes; the room's end frees them */
#include "attempt.h"

int main(void)
{
	static char block[65536];
	size_t held = 0;

	for (int i = 0; i < 200; i++) {
		int fds[2];
		ssize_t n;

		if (pipe2(fds, O_NONBLOCK) < 0)
			break;
		if (fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) < 0)
			printf("held: %s\n", strerror(errno));
		while ((n = write(fds[1], block, sizeof(block))) > 0)
			held += (size_t)n;
	}
	printf("%zu bytes in pipes\n", held);
	REFUSED(open("/proc/sys/fs/pipe-max-size", O_WRONLY));
	if (held > (160UL << 20))
		escaped("no bound of pipes");
	return verdict();
}
