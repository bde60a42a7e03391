/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-PRIVILEGE): on a directory the set-group-id bit only says which group
 * new files in it get. On a file it would lend the group's rights to everybody who executes the
 * file, on the host too. A filter sees the mode, but not what it is for. So the calls that would
 * set this bit wait until init has answered them. Init opens the target itself, and changes the
 * mode of what it has opened if that is a directory. What the caller's memory and descriptors say a
 * moment later does not matter.
 *
 * The kernel lets init look at a process only if that one has the same user and no more rights than
 * init. For any other process the answer is EPERM. */
#include "init/setgid.h"
#include "base/fd.h"
#include "jail/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

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

struct asked {
	pid_t pid;
	int dir;       /* as in the call */
	uint64_t path; /* in the caller's memory; 0: dir itself */
	mode_t mode;
	int flags;
};

/* The wrappers of some C libraries take such numbers for negative ones. */
static int setgid_ioctl(int listener, unsigned long what, void *arg)
{
	return (int)syscall(SYS_ioctl, listener, what, arg);
}

static bool setgid_is_open(void)
{
	bool refused = fchmod(-1, S_ISUID) < 0 && errno == EPERM;

	return refused && fchmod(-1, S_ISGID) < 0 && errno != EPERM;
}

int setgid_install(int *ret_listener)
{
	int r;

	*ret_listener = -1;
	if (!setgid_is_open())
		return 0;
	r = seccomp_install_asking();
	/* An older kernel, or somebody around us listens already. */
	if (r == -EINVAL || r == -EBUSY)
		return seccomp_install(SECCOMP_NO_SETGID, NULL) < 0 ? -EINVAL : 0;
	if (r < 0)
		return r;
	*ret_listener = r;
	return 0;
}

void setgid_add(struct setgid *s, int fd)
{
	int *more = reallocarray(s->fds, s->n + 1, sizeof(*more));

	if (!more) {
		fd_close(fd);
		return;
	}
	s->fds = more;
	more[s->n++] = fd;
}

void setgid_poll(const struct setgid *s, struct pollfd *polls)
{
	for (size_t i = 0; i < s->n; i++)
		polls[i] = (struct pollfd){.fd = s->fds[i], .events = POLLIN};
}

static bool setgid_read_call(const struct seccomp_notif *n, struct asked *ret)
{
	const __u64 *a = n->data.args;

	*ret = (struct asked){.pid = (pid_t)n->pid, .dir = AT_FDCWD};
	switch (n->data.nr) {
#ifdef SYS_chmod
	case SYS_chmod:
		ret->path = a[0];
		ret->mode = (mode_t)a[1];
		return true;
#endif
	case SYS_fchmod:
		ret->dir = (int)a[0];
		ret->mode = (mode_t)a[1];
		ret->flags = AT_EMPTY_PATH;
		return true;
	case SYS_fchmodat2:
		ret->flags = (int)a[3];
		/* fall through */
	case SYS_fchmodat:
		ret->dir = (int)a[0];
		ret->path = a[1];
		ret->mode = (mode_t)a[2];
		return true;
	}
	return false;
}

/* Reads a path from the caller's memory. Each of the two parts lies in pages of its own, since the
 * kernel reads a part as a whole or not at all. Returns 0 or -errno. */
static int setgid_read_path(const struct asked *q, char ret[PATH_MAX])
{
	size_t first = PAGE - q->path % PAGE;
	struct iovec to = {ret, PATH_MAX};
	struct iovec from[] = {{(void *)(uintptr_t)q->path, first},
		{(void *)(uintptr_t)(q->path + first), PATH_MAX - first}};
	ssize_t n;

	if (!q->path) {
		ret[0] = '\0';
		return q->flags & AT_EMPTY_PATH ? 0 : -EFAULT;
	}
	n = process_vm_readv(q->pid, &to, 1, from, 2, 0);
	if (n < 0)
		return -errno;
	return memchr(ret, '\0', (size_t)n) ? 0 : n == PATH_MAX ? -ENAMETOOLONG : -EFAULT;
}

/* What "self" is for the caller, which leads to init here. */
static const char *setgid_after_self(const char *path)
{
	static const char *const names[] = {"/proc/self/", "/proc/thread-self/"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(path, names[i], strlen(names[i])) == 0)
			return path + strlen(names[i]);
	return NULL;
}

/* Opens the target as the caller would. */
static int setgid_open(const struct asked *q)
{
	const int flags = O_PATH | O_CLOEXEC | (q->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
	char path[PATH_MAX], of[PATH_MAX + 64];
	_cleanup_fd_ int dir = -1;
	const char *self;
	int fd, r = setgid_read_path(q, path);

	if (r < 0)
		return r;
	self = setgid_after_self(path);
	if (self)
		snprintf(of, sizeof(of), "/proc/%d/%s", q->pid, self);
	else if (q->dir == AT_FDCWD)
		snprintf(of, sizeof(of), "/proc/%d/cwd", q->pid);
	else
		snprintf(of, sizeof(of), "/proc/%d/fd/%d", q->pid, q->dir);
	if (self || (!path[0] && q->flags & AT_EMPTY_PATH)) {
		fd = open(of, self ? flags : O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (path[0] != '/') {
		dir = open(of, O_PATH | O_CLOEXEC);
		if (dir < 0)
			return -errno;
	}
	fd = openat(dir, path, flags);
	return fd < 0 ? -errno : fd;
}

/* Whether the caller has kept the right to change what belongs to others. */
static bool setgid_may_change(pid_t pid)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, pid};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, data) == 0 && data[0].effective & 1U << CAP_FOWNER;
}

/* Returns 0 or -errno for the caller. */
static int setgid_decide(int listener, uint64_t id, const struct asked *q)
{
	_cleanup_fd_ int fd = setgid_open(q);
	struct stat st;

	/* As long as the request is there, its process is, and its number was not given anew. */
	if (setgid_ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return -EPERM;
	if (fd < 0)
		return fd == -ENOENT && q->path == 0 ? -EBADF : fd == -EACCES ? -EPERM : fd;
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) ||
		(st.st_uid != geteuid() && !setgid_may_change(q->pid)))
		return -EPERM;
	return fd_chmod(fd, q->mode & 03777);
}

static void setgid_answer(int listener)
{
	union request in;
	union answer out = {0};
	struct asked q;

	memset(&in, 0, sizeof(in));
	/* The process may have been killed meanwhile. */
	if (setgid_ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
		return;
	out.n.id = in.n.id;
	out.n.error = setgid_read_call(&in.n, &q) ? setgid_decide(listener, in.n.id, &q) : -EPERM;
	(void)setgid_ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out);
}

void setgid_serve(struct setgid *s, const struct pollfd *polls)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (polls[i].revents & POLLIN)
			setgid_answer(s->fds[i]);
		else if (polls[i].revents) {
			fd_close(s->fds[i]);
			continue;
		}
		s->fds[n++] = s->fds[i];
	}
	s->n = n;
}
