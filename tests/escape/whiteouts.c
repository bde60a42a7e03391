/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: leave the one device that takes no capability, character 0:0 (overlayfs' mark of what was
 *    deleted), by making it and by a rename that leaves it
 * Wall: seccomp: no devices, and no such rename, where files stay */
#include "attempt.h"

#include <sys/sysmacros.h>

static void try_rename(const char *from, const char *to, unsigned flags)
{
	int fd = open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	refused(from, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}

int main(void)
{
	/* RENAME_WHITEOUT, alone and with RENAME_NOREPLACE, and where the kernel sees 32 bits. */
	static const unsigned flags[] = {4, 5};

	REFUSED(mknod("/workspace/a", S_IFCHR | 0666, makedev(0, 0)));
	REFUSED(mknodat(AT_FDCWD, "/workspace/b", S_IFCHR, 0));
	REFUSED(syscall(
		SYS_mknodat, AT_FDCWD, "/workspace/c", 0xffff00000000ULL | S_IFCHR | 0600, 0));
#ifdef SYS_mknod
	REFUSED(syscall(SYS_mknod, "/workspace/d", 0xffff00000000ULL | S_IFCHR | 0600, 0));
#endif
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		try_rename("/workspace/from", "/workspace/to", flags[i]);
	REFUSED(syscall(SYS_renameat2, AT_FDCWD, "/workspace/from", AT_FDCWD, "/workspace/to",
		0xff00000004ULL));
	if (rename("/workspace/from", "/workspace/to") < 0 || mkfifo("/workspace/fifo", 0600) < 0 ||
		mknod("/workspace/file", S_IFREG | 0600, 0) < 0)
		return BROKEN;
	return verdict();
}
