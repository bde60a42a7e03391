/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: end or stop process 1, the parent of all, or the supervisor through it
 * Wall: pid namespace: signals from inside do not reach process 1, and its parent is outside */
#include "attempt.h"

int main(void)
{
	char stat[512] = "";
	int sig, fd;

	for (sig = 1; sig < 65; sig++)
		(void)kill(1, sig);
	usleep(50000);
	fd = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, stat, sizeof(stat) - 1) <= 0)
		return BROKEN;
	printf("init: %.40s\n", stat);
	if (strstr(stat, ") T ") || strstr(stat, ") Z ") || !strstr(stat, ") "))
		escaped("init is stopped or dead");
	/* Its parent is 0: not of this namespace. */
	if (!strstr(stat, " 0 "))
		escaped("init has a parent here");
	return verdict();
}
