/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: change the pages of a read-only file: by shared mappings, /proc/self/mem, splice into the
 *    page cache
 * Wall: read-only mount; the kernel gives copies */
#include "attempt.h"

#include <sys/mman.h>

int main(void)
{
	static const char path[] = "/ro/file";
	int fd = open(path, O_RDONLY | O_CLOEXEC), mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	int pipes[2];
	loff_t zero = 0;
	char *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	char *private = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	REFUSED(open(path, O_RDWR));
	if (shared != MAP_FAILED) {
		REFUSED(mprotect(shared, 4096, PROT_READ | PROT_WRITE));
		refused("write to the shared mapping",
			pwrite(mem, "x", 1, (off_t)(uintptr_t)shared));
	}
	/* Works, on a copy: the runner compares the file. */
	if (private != MAP_FAILED && pwrite(mem, "x", 1, (off_t)(uintptr_t) private) == 1)
		printf("written to a copy\n");
	/* A pipe whose pages are the file's. */
	if (pipe(pipes) == 0 && splice(fd, &zero, pipes[1], NULL, 1, 0) == 1)
		(void)!write(pipes[1], "xxxx", 4);
	return verdict();
}
