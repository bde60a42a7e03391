/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: overwrite the program that is process 1, by its name, by /proc and by its own image, as
 *    was done to runc
 * Wall: read-only mount, and the file is executing */
#include "attempt.h"

int main(void)
{
	char path[64];
	int fd = open("/run/cloche/init", O_RDONLY | O_CLOEXEC);

	REFUSED(open("/run/cloche/init", O_WRONLY));
	REFUSED(open("/run/cloche/init", O_RDWR | O_TRUNC));
	REFUSED(truncate("/run/cloche/init", 0));
	REFUSED(unlink("/run/cloche/init"));
	REFUSED(rename("/run/cloche/init", "/run/cloche/other"));
	REFUSED(rename("/proc/self/exe", "/run/cloche/init"));
	REFUSED(link("/run/cloche/init", "/workspace/init"));
	REFUSED(chmod("/run/cloche/init", 0777));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	REFUSED(open(path, O_WRONLY));
	REFUSED(open("/proc/1/exe", O_WRONLY));
	/* As runc was left: the image of the program that runs us. */
	REFUSED(open("/proc/self/exe", O_WRONLY));
	return verdict();
}
