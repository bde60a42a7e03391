/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: give a file of the workspace capabilities that it would have on the host
 * Wall: capabilities: SETFCAP is not in the bounding set
 * Behind it: seccomp: no attribute can be set where files stay */
#include "attempt.h"

#include <sched.h>
#include <sys/xattr.h>

int main(void)
{
	/* VFS_CAP_REVISION_2 and _3 (with root 0), effective, everything permitted. */
	static const uint32_t v2[5] = {0x02000001, ~0u, 0, ~0u, 0};
	static const uint32_t v3[6] = {0x03000001, ~0u, 0, ~0u, 0, 0};
	int fd = open("/workspace/program", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	for (int turn = 0; turn < 2; turn++) {
		REFUSED(fsetxattr(fd, "security.capability", v2, sizeof(v2), 0));
		REFUSED(setxattr("/workspace/program", "security.capability", v3, sizeof(v3), 0));
		REFUSED(lsetxattr("/workspace/program", "security.ima", v2, sizeof(v2), 0));
		if (unshare(CLONE_NEWUSER) < 0)
			break;
	}
	return verdict();
}
