/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: parts of the kernel that no tool needs: line disciplines, pages given to pipes, comparing
 *    and advising other processes, triggers of the machine's pressure
 * Wall: seccomp; /proc/pressure is read-only */
#include "attempt.h"

#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

int main(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	static const char trigger[] = "some 500000 2000000";
	struct iovec v = {page, sizeof(page)};
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), discipline, pipe_fds[2], pidfd;
	DIR *pressure = opendir("/proc/pressure");
	struct dirent *e;
	char path[300];

	if (master < 0 || pipe(pipe_fds) < 0 || ioctl(master, TIOCGETD, &discipline) < 0)
		return BROKEN;
	for (discipline = 0; discipline < 32; discipline++)
		REFUSED(ioctl(master, TIOCSETD, &discipline));
	REFUSED(syscall(SYS_ioctl, master, 0xff00000000ULL | TIOCSETD, &discipline));
	REFUSED(syscall(SYS_vmsplice, pipe_fds[1], &v, 1, 8 /* SPLICE_F_GIFT */));
	REFUSED(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 1));
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	REFUSED(syscall(SYS_process_madvise, pidfd, &v, 1, 20 /* MADV_COLD */, 0));
	while (pressure && (e = readdir(pressure))) {
		int fd;

		snprintf(path, sizeof(path), "/proc/pressure/%s", e->d_name);
		if (e->d_name[0] == '.')
			continue;
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		refused(path, fd < 0 ? -1 : write(fd, trigger, sizeof(trigger)));
	}
	return verdict();
}
