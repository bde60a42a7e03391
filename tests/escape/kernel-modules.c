/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: load code into the kernel: modules, kexec, and whatever it loads by itself
 * Wall: seccomp: refused
 * Behind it: capabilities: SYS_MODULE and SYS_BOOT in the first user namespace */
#include "attempt.h"

#include <linux/reboot.h>

int main(void)
{
	int fd = open("/ro/file", O_RDONLY | O_CLOEXEC);

	REFUSED(syscall(SYS_init_module, "", 0, ""));
	REFUSED(syscall(SYS_finit_module, fd, "", 0));
	REFUSED(syscall(SYS_delete_module, "nfnetlink", 0));
	REFUSED(syscall(SYS_kexec_load, 0, 0, NULL, 0));
#ifdef SYS_kexec_file_load
	REFUSED(syscall(SYS_kexec_file_load, fd, fd, 0, "", 0));
#endif
	REFUSED(syscall(
		SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, 0));
	return verdict();
}
