/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: mount the host's file systems by mount(2): a bind of /, the disk, proc, sysfs, cgroup, a
 *    move
 * Wall: seccomp: mount is refused
 * Behind it: user namespace: no capability over the mount namespace that the room has */
#include "attempt.h"

#include <sys/mount.h>

int main(void)
{
	REFUSED(mount("/", "/mnt", NULL, MS_BIND | MS_REC, NULL));
	REFUSED(mount("/dev/vda", "/mnt", "ext4", 0, NULL));
	REFUSED(mount("/dev/sda1", "/mnt", "ext4", 0, NULL));
	REFUSED(mount("proc", "/mnt", "proc", 0, NULL));
	REFUSED(mount("sysfs", "/mnt", "sysfs", 0, NULL));
	REFUSED(mount("none", "/mnt", "cgroup", 0, "memory"));
	REFUSED(mount("none", "/mnt", "cgroup2", 0, NULL));
	REFUSED(mount("none", "/mnt", "devtmpfs", 0, NULL));
	REFUSED(mount("none", "/mnt", "debugfs", 0, NULL));
	REFUSED(mount("none", "/mnt", "tracefs", 0, NULL));
	REFUSED(mount("none", "/mnt", "bpf", 0, NULL));
	REFUSED(mount("/workspace", "/mnt", NULL, MS_MOVE, NULL));
	REFUSED(mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
	return verdict();
}
