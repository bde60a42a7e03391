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
#include "init/mode.h"
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Whether the caller has kept the right to change what belongs to others. */
static bool setgid_may_change(pid_t pid)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, pid};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, data) == 0 && data[0].effective & 1U << CAP_FOWNER;
}

/* Returns 0 or -errno for the caller. */
static int setgid_decide(const struct asked *a, const struct mode_call *q)
{
	_cleanup_fd_ int fd = mode_open(a, q);
	struct stat st;

	/* As long as the request is there, its process is, and its number was not given anew. */
	if (!asked_is_valid(a))
		return -EPERM;
	if (fd < 0)
		return fd == -ENOENT && q->path == 0 ? -EBADF : fd == -EACCES ? -EPERM : fd;
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) ||
		(st.st_uid != geteuid() && !setgid_may_change(a->thread)))
		return -EPERM;
	return fd_chmod(fd, q->mode & 03777);
}

static void setgid_answer(int listener)
{
	struct asked a;
	struct mode_call q;

	/* The process may have been killed meanwhile. */
	if (asked_take(listener, &a) == 0)
		asked_answer(&a, mode_read_call(&a, &q) ? setgid_decide(&a, &q) : -EPERM);
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
