/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: ask for forbidden calls through a ring, which no filter sees
 * Wall: seccomp: io_uring is refused */
#include "attempt.h"

#include <linux/io_uring.h>

int main(void)
{
	struct io_uring_params params = {0};

	REFUSED(syscall(SYS_io_uring_setup, 4, &params));
	REFUSED(syscall(SYS_io_uring_enter, 0, 1, 0, 0, NULL, 0));
	REFUSED(syscall(SYS_io_uring_register, -1, 17, NULL, 4));
	return verdict();
}
