/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: find the person's terminal: by number in /dev/pts, by /dev/ptmx, by standard descriptors,
 *    by /dev/console
 * Wall: mount namespace: /dev/pts is a new one; the room's terminal is made in it
 * Input: terminal */
#include "attempt.h"

#include <dirent.h>
#include <sys/ioctl.h>
#include <termios.h>

int main(void)
{
	struct winsize size = {.ws_row = 1, .ws_col = 1};
	char path[64];
	int i, peer;

	REFUSED(open("/dev/console", O_RDWR));
	REFUSED(open("/dev/tty0", O_RDWR));
	REFUSED(open("/dev/tty1", O_RDWR));
	for (i = 1; i < 32; i++) {
		snprintf(path, sizeof(path), "/dev/pts/%d", i);
		refused(path, open(path, O_RDWR | O_NOCTTY));
	}
	/* One of one's own can be had; its other side is here as well. */
	peer = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	printf("/dev/ptmx: %s\n", peer < 0 ? strerror(errno) : "the room's own");
	/* The runner compares the size of its own. */
	ioctl(0, TIOCSWINSZ, &size);
	ioctl(1, TIOCSWINSZ, &size);
	return verdict();
}
