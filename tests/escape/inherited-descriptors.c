/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: find a descriptor of the host among one's own: its parent had files, directories and
 *    sockets open without close-on-exec
 * Wall: close-on-exec, set on everything before init is executed, and again by init */
#include "attempt.h"

#include <sys/sysmacros.h>

/* 0 to 2 are pipes (or the room's terminal); everything else is closed. */
int main(void)
{
	char path[64], target[4096], inside[4200];
	int fd;

	for (fd = 0; fd < 4096; fd++) {
		struct stat st;
		ssize_t n;

		if (fstat(fd, &st) < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		printf("%d -> %s\n", fd, target);
		if (fd > 2)
			escaped("a descriptor beyond the three");
		if (!S_ISFIFO(st.st_mode) && !(S_ISCHR(st.st_mode) && major(st.st_rdev) == 1))
			escaped("a descriptor that is no pipe");
		snprintf(inside, sizeof(inside), "%s/..%s", path, canary("CANARY_SECRET"));
		unreadable(inside);
	}
	return verdict();
}
