/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: make nodes of the host's disks and memory and open them
 * Wall: user namespace: mknod of a device takes a capability that it cannot give
 * Behind it: the same, for whoever is root in a namespace of his own */
#include "attempt.h"

#include <sched.h>
#include <sys/sysmacros.h>

int main(void)
{
	static const struct {
		unsigned type, major, minor;
	} nodes[] = {{S_IFBLK, 8, 0}, {S_IFBLK, 254, 0}, {S_IFBLK, 259, 0}, {S_IFCHR, 1, 1},
		{S_IFCHR, 1, 2}, {S_IFCHR, 1, 11}, {S_IFCHR, 10, 229}, {S_IFCHR, 10, 232},
		{S_IFCHR, 4, 0}, {S_IFCHR, 5, 1}};
	static const char *const dirs[] = {"/tmp", "/dev", "/workspace", "/dev/shm"};

	if (unshare(CLONE_NEWUSER) == 0)
		printf("in a user namespace\n");
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		for (size_t d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++) {
			char path[64];

			snprintf(path, sizeof(path), "%s/node%zu", dirs[d], i);
			refused(path, mknod(path, nodes[i].type | 0666,
					      makedev(nodes[i].major, nodes[i].minor)));
		}
	return verdict();
}
