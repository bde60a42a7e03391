/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: enter the namespaces of the host: through /proc, init, its pidfd
 * Wall: seccomp: setns is refused
 * Behind it: no descriptor of a namespace outside can be had; nothing may be entered without a
 *    capability over it */
#include "attempt.h"

#include <sched.h>
#include <sys/ioctl.h>

int main(void)
{
	static const char *const kinds[] = {
		"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	char path[64];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/1/ns/%s", kinds[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		refused(path, setns(fd, 0));
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", canary_number("CANARY_PID"),
			kinds[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		refused(path, setns(fd, 0));
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		refused(path, setns(fd, 0));
		/* NS_GET_PARENT and NS_GET_USERNS: the one above. */
		for (unsigned long request = 0xb701; request <= 0xb702; request++) {
			int above = (int)syscall(SYS_ioctl, fd, request, 0);

			if (above >= 0)
				refused("the namespace above", setns(above, 0));
		}
	}
	/* PIDFD_GET_CGROUP_NAMESPACE and the nine after it. */
	for (unsigned request = 0xff01; request <= 0xff0a; request++)
		refused("a namespace of init", ioctl(pidfd, request, 0));
	/* NS_MNT_GET_NEXT and _PREV: other mount namespaces of the machine. */
	for (unsigned nr = 11; nr <= 12; nr++) {
		char info[16] = {0};
		int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
		int other = ioctl(fd, _IOR(0xb7, nr, info), info);

		if (other >= 0)
			refused("another mount namespace", setns(other, CLONE_NEWNS));
	}
	REFUSED(setns(pidfd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID));
	return verdict();
}
