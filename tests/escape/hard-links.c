/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: link files of the host into the workspace, to have them when the room is gone
 * Wall: mount namespace: a link does not cross mounts, and the rest cannot be seen */
#include "attempt.h"

int main(void)
{
	char path[64];
	int fd = open("/ro/file", O_RDONLY | O_CLOEXEC);

	REFUSED(link("/usr/bin/env", "/workspace/env"));
	REFUSED(link("/ro/file", "/workspace/file"));
	REFUSED(link("/ro/file", "/ro/other"));
	REFUSED(link(canary("CANARY_SECRET"), "/workspace/secret"));
	REFUSED(linkat(fd, "", AT_FDCWD, "/workspace/file", AT_EMPTY_PATH));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	REFUSED(linkat(AT_FDCWD, path, AT_FDCWD, "/workspace/file", AT_SYMLINK_FOLLOW));
	REFUSED(rename("/ro/file", "/workspace/file"));
	REFUSED(open("/ro", O_TMPFILE | O_RDWR, 0600));
	REFUSED(open("/usr", O_TMPFILE | O_RDWR, 0600));
	return verdict();
}
