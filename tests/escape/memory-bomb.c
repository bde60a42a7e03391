/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up the machine's memory
 * Wall: control group: the limit of --memory; the room alone is out of memory
 * Limits: --memory 64m
 * Ends: 137 */
#include "attempt.h"

#include <sys/mman.h>

/* Ends by the kernel's hand at the limit; 256 MiB are had only if there is none. */
int main(void)
{
	size_t i, n = 256UL << 20;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return HELD;
	for (i = 0; i < n; i += 4096)
		p[i] = 1;
	escaped("256 MiB with a limit of 64");
	return verdict();
}
