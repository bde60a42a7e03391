/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: the classic way out of a chroot: a directory held open above a second one
 * Wall: seccomp: chroot is refused
 * Behind it: mount namespace: the root of the room is the top, whoever climbs */
#include "attempt.h"

#include <sched.h>

int main(void)
{
	char path[4096];
	int i, fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)!mkdir("/tmp/jail", 0755);
	if (unshare(CLONE_NEWUSER) == 0)
		printf("in a user namespace\n");
	if (chroot("/tmp/jail") < 0)
		printf("held: chroot: %s\n", strerror(errno));
	if (fchdir(fd) < 0)
		return BROKEN;
	for (i = 0; i < 64; i++)
		if (chdir("..") < 0)
			break;
	if (chroot(".") < 0)
		printf("held: chroot: %s\n", strerror(errno));
	unreadable(canary("CANARY_SECRET"));
	snprintf(path, sizeof(path), "../../../..%s", canary("CANARY_SECRET"));
	unreadable(path);
	return verdict();
}
