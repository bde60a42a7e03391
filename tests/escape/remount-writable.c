/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: make read-only mounts writable and write to the host's programs
 * Wall: seccomp: mount is refused
 * Behind it: user namespace: no capability over the room's mount namespace */
#include "attempt.h"

#include <sys/mount.h>

int main(void)
{
	static const char *const paths[] = {
		"/usr", "/ro", "/etc/ssl/certs", "/proc/sys", "/dev/null"};
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		refused(paths[i], mount(NULL, paths[i], NULL, MS_REMOUNT | MS_BIND, NULL));
		refused(paths[i], mount(NULL, paths[i], NULL, MS_REMOUNT, NULL));
	}
	REFUSED(open("/usr/escaped", O_WRONLY | O_CREAT | O_EXCL, 0644));
	REFUSED(open("/ro/escaped", O_WRONLY | O_CREAT | O_EXCL, 0644));
	REFUSED(open("/ro/file", O_WRONLY | O_TRUNC));
	return verdict();
}
