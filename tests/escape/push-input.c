/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: put words into the input of the terminal that somebody else reads: TIOCSTI, the console's
 *    selection, line disciplines
 * Wall: the room's terminal is its own; seccomp refuses TIOCSTI and TIOCLINUX on any
 * Input: terminal */
#include "attempt.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

int main(void)
{
	static const int disciplines[] = {1, 2, 3, 5, 13, 15, 21};
	char subcode[2] = {3, 0};
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC), fd;

	printf("/dev/tty: %s\n", tty < 0 ? strerror(errno) : "is there");
	for (fd = 0; fd < 3; fd++) {
		REFUSED(ioctl(fd, TIOCSTI, "x"));
		REFUSED(ioctl(fd, TIOCLINUX, subcode));
		REFUSED(ioctl(fd, TIOCCONS, NULL));
	}
	REFUSED(ioctl(tty, TIOCSTI, "x"));
	/* The same request with bits set that the kernel ignores. */
	REFUSED(syscall(SYS_ioctl, tty, 0xffffffff00005412UL, "x"));
	for (size_t i = 0; i < sizeof(disciplines) / sizeof(disciplines[0]); i++)
		if (ioctl(0, TIOCSETD, &disciplines[i]) == 0 && disciplines[i] != 2)
			escaped("a line discipline");
	/* To take a terminal from its session. */
	if (fork() == 0) {
		setsid();
		_exit(ioctl(0, TIOCSCTTY, 1) == 0);
	}
	if (wait(&fd) > 0 && WIFEXITED(fd) && WEXITSTATUS(fd) == 1)
		escaped("a terminal was taken from its session");
	return verdict();
}
