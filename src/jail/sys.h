/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* System calls that the C library of older systems does not wrap. All return -1 with errno set, or
 * a result of 0 or more, like the calls themselves. */

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* Get the id of the mount that fd is on (statx(2), which not every libc has). */
static inline int sys_mount_id(int fd, uint64_t *ret)
{
	enum { WANTED = 0x1000 /* STATX_MNT_ID */ };
	struct {
		uint32_t mask, rest[35];
		uint64_t mount, more[13];
	} st = {0};

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, WANTED, &st) < 0)
		return -1;
	if (!(st.mask & WANTED)) {
		errno = ENOSYS;
		return -1;
	}
	*ret = st.mount;
	return 0;
}

static inline int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

/* Attach the mount that from_fd refers to. */
static inline int sys_move_mount(int from_fd, int to_dirfd, const char *to_path, unsigned flags)
{
	return (int)syscall(
		SYS_move_mount, from_fd, "", to_dirfd, to_path, flags | MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int sys_mount_setattr(
	int dirfd, const char *path, unsigned flags, const struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof(*attr));
}

static inline int sys_fsopen(const char *fstype)
{
	return (int)syscall(SYS_fsopen, fstype, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int sys_fsmount(int fd, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attrs);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* For the calling process. Called by number because C libraries declare the resource with different
 * types. */
static inline int sys_prlimit(int resource, const struct rlimit *to, struct rlimit *ret_was)
{
	return (int)syscall(SYS_prlimit64, 0, resource, to, ret_was);
}

static inline int sys_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

static inline pid_t sys_clone3(const struct clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}
