/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/pty.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

/* The slave is had from the master's descriptor: no path of a room is trusted. */
int pty_make(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave)
{
	struct winsize size = {.ws_row = rows, .ws_col = cols};
	_cleanup_fd_ int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	_cleanup_fd_ int slave = -1;
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSWINSZ, &size) < 0)
		return -errno;
	*ret_master = TAKE_FD(master);
	*ret_slave = TAKE_FD(slave);
	return 0;
}
