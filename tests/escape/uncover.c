/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: take mounts away: what covers /proc, /proc itself, the root, what lies on it
 * Wall: seccomp: umount2 is refused
 * Behind it: user namespace: no capability over the room's mount namespace */
#include "attempt.h"

#include <sys/mount.h>

int main(void)
{
	static const char *const paths[] = {"/proc/keys", "/proc/kcore", "/proc/sys", "/proc", "/",
		"/..", "/dev/null", "/etc/passwd", "/workspace", "/usr", "/run/cloche/init"};
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		refused(paths[i], umount2(paths[i], MNT_DETACH));
		refused(paths[i], umount2(paths[i], MNT_FORCE | UMOUNT_NOFOLLOW));
	}
	return verdict();
}
