/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: change the root of the mount namespace
 * Wall: seccomp: pivot_root is refused
 * Behind it: user namespace: no capability over the room's mount namespace */
#include "attempt.h"

int main(void)
{
	REFUSED(syscall(SYS_pivot_root, ".", "."));
	REFUSED(syscall(SYS_pivot_root, "/workspace", "/workspace"));
	REFUSED(syscall(SYS_pivot_root, "/", "/mnt"));
	return verdict();
}
