/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: some calls that change a mode wait for somebody who looks into the caller to
 * see what it means: in a room whose walls are Landlock all of them, for the guard, elsewhere those
 * that would set the set-group-id bit, for init (init/setgid.h). The file worker hides from the
 * room's processes, so neither may look. The guard then refuses with EACCES, which the kernel does
 * not say of an open file, and init with EPERM. The change is then made by a child that holds the
 * file alone and does not hide. */
#include "files/mode.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NR_FCHMODAT2 = 452 };

static int mode_change(int fd, mode_t mode)
{
	char path[40];

	/* Not every C library's fchmod() says EBADF of a descriptor of O_PATH. */
	if (syscall(SYS_fchmod, fd, mode) == 0)
		return 0;
	if (errno != EBADF)
		return -errno;
	if (syscall(NR_FCHMODAT2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOSYS && errno != EINVAL)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? -errno : 0;
}

_noreturn_ static void mode_change_in_child(int fd, mode_t mode)
{
	if (fd_close_from(0, &fd, 1) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		_exit(EACCES);
	_exit(-mode_change(fd, mode));
}

int files_set_mode(int fd, mode_t mode)
{
	int status = 0, r = mode_change(fd, mode);
	pid_t child, ended;

	if (r != -EACCES && (r != -EPERM || !(mode & S_ISGID)))
		return r;
	child = fork();
	if (child == 0)
		mode_change_in_child(fd, mode);
	if (child < 0)
		return r;
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	return ended == child && WIFEXITED(status) ? -WEXITSTATUS(status) : r;
}
