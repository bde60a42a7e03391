/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up inotify instances and watches
 * Wall: the kernel's counts per user namespace and user; the room's end frees them */
#include "attempt.h"

#include <sys/inotify.h>

int main(void)
{
	int instances = 0, watches = 0, fd = -1, last = -1;

	while (instances < 2000 && (fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) >= 0) {
		last = fd;
		instances++;
	}
	while (watches < 2000) {
		char path[64];

		snprintf(path, sizeof(path), "/tmp/watch-%d", watches);
		if (mkdir(path, 0700) < 0 || inotify_add_watch(last, path, IN_ALL_EVENTS) < 0)
			break;
		watches++;
	}
	printf("%d instances, %d watches\n", instances, watches);
	/* Watching what is mounted from the host is no more than reading it. */
	if (inotify_add_watch(last, "/ro", IN_ALL_EVENTS) < 0)
		printf("held: /ro: %s\n", strerror(errno));
	return HELD;
}
