/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up inodes: many small files in the room's own file systems
 * Wall: tmpfs of the room's own: the host's file systems are not touched */
#include "attempt.h"

int main(void)
{
	static const char *const dirs[] = {"/tmp", "/dev/shm", "/var", "/home"};

	for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++)
		for (int i = 0; i < 4000; i++) {
			char path[64];
			int fd;

			snprintf(path, sizeof(path), "%s/inode-%d", dirs[d], i);
			fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			if (fd < 0)
				break;
			close(fd);
		}
	return HELD;
}
