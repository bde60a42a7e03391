/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: map more ids than one's own, root of the host among them
 * Wall: the map is written, once
 * Behind it: user namespace: only ids of the room can be mapped */
#include "attempt.h"

#include <sched.h>

static void map(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("held: %s: %s: %s\n", file, text, strerror(errno));
	else
		escaped(text);
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	if (unshare(CLONE_NEWUSER) < 0)
		printf("no namespace of its own: %s\n", strerror(errno));
	map("/proc/self/uid_map", "0 0 4294967295");
	map("/proc/self/uid_map", "0 0 65537");
	map("/proc/self/gid_map", "0 0 65537");
	map("/proc/self/uid_map", "0 70000 1");
	map("/proc/1/uid_map", "0 0 1");
	REFUSED(setresuid(70000, 70000, 70000));
	REFUSED(chown("/workspace", 70000, 70000));
	return verdict();
}
