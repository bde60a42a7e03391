/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up what the whole machine has of something, whoever takes it: contexts of asynchronous
 *    input and output, terminals
 * Wall: seccomp: the first do not exist; of the second the kernel keeps a thousand for the host */
#include "attempt.h"

int main(void)
{
	int n = 0;

	for (unsigned events = 65536; events > 0; events /= 2) {
		unsigned long context = 0;

		refused("io_setup", syscall(SYS_io_setup, events, &context));
	}
	while (n < 5000 && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
		n++;
	printf("%d terminals, then: %s\n", n, strerror(errno));
	if (n >= 4096)
		escaped("every terminal of the machine");
	return verdict();
}
