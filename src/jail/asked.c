/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/asked.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* The kernel may know larger ones. */
union request {
	struct seccomp_notif n;
	char room[512];
};
union answer {
	struct seccomp_notif_resp n;
	char room[256];
};

/* The wrappers of some C libraries take such numbers for negative ones. */
static int asked_ioctl(int listener, unsigned long what, void *arg)
{
	return (int)syscall(SYS_ioctl, listener, what, arg);
}

int asked_take(int listener, struct asked *ret)
{
	union request in;

	memset(&in, 0, sizeof(in));
	if (asked_ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
		return -errno;
	*ret = (struct asked){.listener = listener,
		.id = in.n.id,
		.thread = (pid_t)in.n.pid,
		.call = in.n.data.nr};
	for (size_t i = 0; i < ARRAY_SIZE(ret->args); i++)
		ret->args[i] = in.n.data.args[i];
	return 0;
}

bool asked_is_valid(const struct asked *a)
{
	uint64_t id = a->id;

	return asked_ioctl(a->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static int asked_open_memory(const struct asked *a, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)a->thread);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* From here on fd stands for this memory, whoever gets the number. */
	return asked_is_valid(a) ? fd : (fd_close(fd), -ESRCH);
}

int asked_read(const struct asked *a, uint64_t at, void *ret, size_t n)
{
	_cleanup_fd_ int fd = asked_open_memory(a, O_RDONLY);

	if (fd < 0)
		return fd;
	return at <= INT64_MAX && pread(fd, ret, n, (off_t)at) == (ssize_t)n ? 0 : -EFAULT;
}

/* Each part lies in pages of its own, since the kernel may have the first without the second. */
int asked_read_text(const struct asked *a, uint64_t at, char *ret, size_t max)
{
	_cleanup_fd_ int fd = asked_open_memory(a, O_RDONLY);
	size_t done = 0, part = PAGE - at % PAGE;

	if (fd < 0)
		return fd;
	for (; done < max; done += part, part = PAGE) {
		part = MIN(part, max - done);
		if (at > INT64_MAX - max ||
			pread(fd, ret + done, part, (off_t)(at + done)) != (ssize_t)part)
			return -EFAULT;
		if (memchr(ret + done, '\0', part))
			return 0;
	}
	return -ENAMETOOLONG;
}

int asked_write(const struct asked *a, uint64_t at, const void *p, size_t n)
{
	_cleanup_fd_ int fd = asked_open_memory(a, O_WRONLY);

	if (fd < 0)
		return fd;
	return at <= INT64_MAX && pwrite(fd, p, n, (off_t)at) == (ssize_t)n ? 0 : -EFAULT;
}

int asked_stat(const struct asked *a, int fd, struct stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)a->thread, fd);
	if (stat(path, ret) < 0)
		return errno == ENOENT ? -EBADF : -errno;
	return asked_is_valid(a) ? 0 : -ESRCH;
}

int asked_give(const struct asked *a, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = {.id = a->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0};

	return asked_ioctl(a->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? -errno : 0;
}

static void asked_send(const struct asked *a, int result, uint32_t flags)
{
	union answer out = {.n = {.id = a->id, .flags = flags}};

	out.n.error = result < 0 ? result : 0;
	out.n.val = result < 0 ? 0 : result;
	/* The process may have been killed meanwhile. */
	(void)asked_ioctl(a->listener, SECCOMP_IOCTL_NOTIF_SEND, &out);
}

void asked_answer(const struct asked *a, int result)
{
	asked_send(a, result, 0);
}

void asked_let(const struct asked *a)
{
	asked_send(a, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}
