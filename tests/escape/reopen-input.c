/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: open standard input again for writing: it is a file of the host there
 * Wall: the room gets a pipe of the client's, never the person's descriptor
 * Input: file */
#include "attempt.h"

#include <sys/sysmacros.h>

int main(void)
{
	struct stat st;
	int fd;

	if (fstat(0, &st) < 0 || !S_ISFIFO(st.st_mode))
		escaped("standard input is no pipe");
	fd = open("/proc/self/fd/0", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && write(fd, "overwritten", 11) == 11)
		printf("written to the pipe\n");
	REFUSED(ftruncate(0, 0));
	REFUSED(lseek(0, 0, SEEK_SET));
	REFUSED(write(0, "overwritten", 11));
	return verdict();
}
