/* SPDX-License-Identifier: Apache-2.0 */
#include "nowait.h"
#include "job/job.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int nowait_waits;

static void may_wait(bool waiting)
{
	nowait_waits += waiting && job_is_here();
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	may_wait(timeout != 0);
	return __real_poll(fds, n, timeout);
}

int __real___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t bytes);
int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t bytes);
int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t bytes)
{
	may_wait(timeout != 0);
	return __real___poll_chk(fds, n, timeout, bytes);
}

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	may_wait(timeout != 0);
	return __real_epoll_wait(fd, events, n, timeout);
}

int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	may_wait(true);
	return __real_nanosleep(t, left);
}

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
	may_wait(!(how & (LOCK_NB | LOCK_UN)));
	return __real_flock(fd, how);
}

/* A child whose end is known does not make anybody wait. */
pid_t __real_waitpid(pid_t pid, int *status, int flags);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
	siginfo_t end = {0};

	if (job_is_here() && !(flags & WNOHANG))
		may_wait(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0 ||
			 end.si_pid != pid);
	return __real_waitpid(pid, status, flags);
}

static void may_read(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	if (job_is_here() && !(fcntl(fd, F_GETFL) & O_NONBLOCK))
		may_wait(__real_poll(&one, 1, 0) == 0);
}

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n)
{
	may_read(fd);
	return __real_read(fd, p, n);
}

ssize_t __real___read_chk(int fd, void *p, size_t n, size_t bytes);
ssize_t __wrap___read_chk(int fd, void *p, size_t n, size_t bytes);
ssize_t __wrap___read_chk(int fd, void *p, size_t n, size_t bytes)
{
	may_read(fd);
	return __real___read_chk(fd, p, n, bytes);
}
