/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up the terminals that the machine has
 * Wall: the room's own file system of terminals has a bound */
#include "attempt.h"

#include <sys/resource.h>

enum { SOME = 100, MANY = 1000 };

int main(void)
{
	struct rlimit l;
	int n = 0;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return BROKEN;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_max < MANY + 10)
		return CANNOT_TRY;
	while (n < MANY && posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
		n++;
	printf("%d terminals: %s\n", n, strerror(errno));
	if (n == MANY)
		escaped("terminals");
	return n < SOME ? BROKEN : verdict();
}
