/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: open files of the host by their handles (inode numbers), past every mount
 * Wall: seccomp: open_by_handle_at is refused
 * Behind it: user namespace: it takes a capability over the file system */
#include "attempt.h"

int main(void)
{
	union {
		struct file_handle h;
		char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle;
	int fd = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC), id;
	uint32_t inode;

	memset(&handle, 0, sizeof(handle));
	handle.h.handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(AT_FDCWD, "/workspace", &handle.h, &id, 0) == 0)
		REFUSED(open_by_handle_at(fd, &handle.h, O_RDONLY));
	/* The root directory of most file systems is inode 2. */
	for (inode = 1; inode < 4; inode++) {
		handle.h.handle_bytes = 8;
		handle.h.handle_type = 1;
		memcpy(handle.h.f_handle, &inode, sizeof(inode));
		REFUSED(open_by_handle_at(fd, &handle.h, O_RDONLY));
	}
	return verdict();
}
