/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up the machine's memory by files in /tmp, /dev/shm and /run
 * Wall: control group: what a tmpfs holds counts as the room's memory
 * Limits: --memory 64m
 * Ends: 0 137 */
#include "attempt.h"

int main(void)
{
	static const char *const dirs[] = {"/tmp", "/dev/shm", "/run"};
	static char block[1 << 20];
	size_t written = 0;

	memset(block, 'x', sizeof(block));
	for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++) {
		char path[64];
		int fd, i;

		snprintf(path, sizeof(path), "%s/fill", dirs[d]);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		for (i = 0; i < 80 && write(fd, block, sizeof(block)) > 0; i++)
			written += sizeof(block);
	}
	printf("%zu bytes\n", written);
	if (written > (128UL << 20))
		escaped("more than the memory limit");
	return verdict();
}
