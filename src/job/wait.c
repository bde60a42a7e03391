/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a job that waits puts its descriptors into an epoll set, gives way, and
 * takes them out again when it is resumed. What is ready it asks poll(), so a false alarm only
 * makes it wait again. The set also has a timer, which stands for deadlines, for the job's first
 * turn and for cancelling. As a false alarm does no harm, the timer stays as it is if it fires
 * early enough: most waits then cost no system call for it. */
#include "base/clock.h"
#include "base/fd.h"
#include "job/internal.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local struct cloche_job *current;

struct cloche_job *job_current(void)
{
	return current && current->process == getpid() ? current : NULL;
}

struct cloche_job *job_set_current(struct cloche_job *job)
{
	struct cloche_job *before = current;

	current = job;
	return before;
}

bool job_is_here(void)
{
	return job_current() != NULL;
}

void job_hold_cancel(void)
{
	struct cloche_job *job = job_current();

	if (job)
		job->holds++;
}

void job_release_cancel(void)
{
	struct cloche_job *job = job_current();

	if (job)
		job->holds--;
}

void job_set_timer(struct cloche_job *job, uint64_t at_usec)
{
	/* A time of 0 would turn the timer off. */
	uint64_t at = at_usec == USEC_INFINITY ? 0 : MAX(at_usec, 1U);
	const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / USEC_PER_SEC),
						.tv_nsec = (long)(at % USEC_PER_SEC) * 1000}};

	/* This cannot fail: the timer is ours and the time is valid. */
	(void)timerfd_settime(job->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	job->timer_fired = false;
	job->timer_at = at_usec;
}

static bool wait_is_cancelled(const struct cloche_job *job)
{
	return job->holds == 0 && atomic_load(&job->cancelled);
}

static uint32_t wait_events(const struct pollfd *p)
{
	return (uint32_t)(unsigned short)p->events;
}

/* Watch fds[i]. */
static int wait_watch(struct cloche_job *job, const struct pollfd *fds, nfds_t i)
{
	struct epoll_event ev = {.events = wait_events(&fds[i]), .data.ptr = job};

	if (fds[i].fd < 0 || epoll_ctl(job->epoll_fd, EPOLL_CTL_ADD, fds[i].fd, &ev) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* It is in fds twice. */
	for (nfds_t k = 0; k < i; k++)
		if (fds[k].fd == fds[i].fd)
			ev.events |= wait_events(&fds[k]);
	return epoll_ctl(job->epoll_fd, EPOLL_CTL_MOD, fds[i].fd, &ev) < 0 ? -errno : 0;
}

/* Give way until one of fds may be ready or it is `until`. */
static int wait_give_way(struct cloche_job *job, const struct pollfd *fds, nfds_t n, uint64_t until)
{
	nfds_t watched = 0;
	int r = 0;

	while (r == 0 && watched < n)
		r = wait_watch(job, fds, watched++);
	if (r == 0) {
		if (job->timer_fired || job->timer_at > until)
			job_set_timer(job, until);
		/* Whoever cancels sets the flag, then the timer; this may just have undone the
		 * latter. */
		if (wait_is_cancelled(job))
			job_set_timer(job, 0);
		job->give_way(job);
	}
	while (watched-- > 0)
		if (fds[watched].fd >= 0)
			(void)epoll_ctl(job->epoll_fd, EPOLL_CTL_DEL, fds[watched].fd, NULL);
	return r;
}

/* In milliseconds, as poll() takes it. */
static int wait_left(uint64_t until)
{
	uint64_t now;

	if (until == USEC_INFINITY || until == 0)
		return until == 0 ? 0 : -1;
	now = clock_mono_usec();
	return now >= until ? 0
			    : (int)MIN((until - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC,
				      (uint64_t)INT_MAX);
}

/* Give way until one of them is ready. */
static int wait_in_job(struct cloche_job *job, struct pollfd *fds, nfds_t n, uint64_t until)
{
	int r = 0;

	while (r == 0) {
		int ready;

		if (wait_is_cancelled(job))
			return -ECANCELED;
		ready = poll(fds, n, 0);
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready > 0 && job->rest > 0) {
			job->rest--;
			return ready;
		}
		if (ready == 0 && wait_left(until) == 0)
			return 0;
		r = ready > 0 ? wait_give_way(job, NULL, 0, 0) : wait_give_way(job, fds, n, until);
	}
	return r;
}

int job_wait(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	uint64_t until = timeout_ms < 0 ? USEC_INFINITY : 0;
	struct cloche_job *job = job_current();
	int r;

	if (timeout_ms > 0)
		until = clock_mono_usec() + (unsigned)timeout_ms * USEC_PER_MSEC;
	if (job)
		return wait_in_job(job, fds, n, until);
	do
		r = poll(fds, n, wait_left(until));
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

int job_wait_fd(int fd, short events, int timeout_ms)
{
	return job_wait(&(struct pollfd){.fd = fd, .events = events}, 1, timeout_ms);
}

bool job_is_ready(int fd, short events)
{
	return poll(&(struct pollfd){.fd = fd, .events = events}, 1, 0) > 0;
}

int job_yield(void)
{
	struct cloche_job *job = job_current();

	if (job && job->rest > 0)
		job->rest--;
	else if (job)
		(void)wait_give_way(job, NULL, 0, 0);
	return job && wait_is_cancelled(job) ? -ECANCELED : 0;
}

ssize_t job_read(int fd, void *p, size_t n)
{
	ssize_t got;
	int r = job_current() ? job_wait_fd(fd, POLLIN, -1) : 0;

	if (r < 0)
		return r;
	do
		got = read(fd, p, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Write to a pipe or a socket what fits. A pipe that is ready takes PIPE_BUF bytes at least. */
static ssize_t wait_write_some(int fd, const void *p, size_t n)
{
	ssize_t done = send(fd, p, n, MSG_DONTWAIT);

	return done < 0 && errno == ENOTSOCK ? write(fd, p, MIN(n, (size_t)PIPE_BUF)) : done;
}

int job_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	struct stat st;

	if (!job_current() || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd_write_all(fd, p, n);
	while (n > 0) {
		int r = job_wait_fd(fd, POLLOUT, -1);
		ssize_t done = r < 0 ? r : wait_write_some(fd, at, n);

		if (r < 0)
			return r;
		if (done < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		at += MAX(done, (ssize_t)0);
		n -= (size_t)MAX(done, (ssize_t)0);
	}
	return 0;
}

int job_wait_child(pid_t pid, int *ret_status)
{
	_cleanup_fd_ int fd = -1;
	pid_t got;

	if (job_current()) {
		int r;

		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0)
			return -errno;
		r = job_wait_fd(fd, POLLIN, -1);
		if (r < 0)
			return r;
	}
	do
		got = waitpid(pid, ret_status, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : 0;
}

void job_call(void (*fn)(void *arg), void *arg)
{
	struct cloche_job *job = job_current();

	if (!job) {
		fn(arg);
	} else if (!job->muted) {
		job->call = fn;
		job->call_arg = arg;
		job->give_way(job);
	}
}

typedef void (*text_fn)(const char *text, void *user);
JOB_TELL1(wait_tell_text, text_fn, const char *)

void job_tell_text(void (*fn)(const char *text, void *user), const char *text, void *user)
{
	wait_tell_text(fn, text, user);
}

/* --- calls of which no descriptor tells --- */

/* A thread may end in the middle of such a function (pthread_cancel()). AddressSanitizer would take
 * what it has marked of its frame for marks of whatever uses that memory next. */
#define APART_MAY_BREAK_OFF __attribute__((no_sanitize_address))

/* A thread that waits in a system call. */
struct apart {
	int (*call)(const void *what); /* makes the call; returns 0 or -errno */
	const void *what;
	int done_fd, result;
	pthread_t thread;
};

APART_MAY_BREAK_OFF static void *apart_main(void *arg)
{
	struct apart *a = arg;
	const uint64_t one = 1;

	/* The system call, and nothing else, can be broken off by pthread_cancel(). */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	a->result = a->call(a->what);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	(void)!write(a->done_fd, &one, sizeof(one));
	return NULL;
}

/* A thread without signals. */
static int apart_begin(struct apart *a)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&a->thread, NULL, apart_main, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

/* Wait for call(what) in a thread of its own. Return its result; or, after it was broken off,
 * -EWOULDBLOCK at the end of the time, 1 if also_fd is readable, or -ECANCELED; then it may have
 * been done nevertheless. *ret_broken_off says which of the two. */
static int apart_wait(int (*call)(const void *what), const void *what, int timeout_ms, int also_fd,
	bool *ret_broken_off)
{
	_cleanup_fd_ int done_fd = fd_lift(eventfd(0, EFD_CLOEXEC));
	struct apart a = {.call = call, .what = what, .done_fd = done_fd};
	struct pollfd p[] = {{.fd = done_fd, .events = POLLIN}, {.fd = also_fd, .events = POLLIN}};
	int r = done_fd < 0 ? done_fd : apart_begin(&a);

	*ret_broken_off = false;
	if (r < 0)
		return r;
	r = job_wait(p, ARRAY_SIZE(p), timeout_ms);
	if (r > 0 && p[0].revents) {
		pthread_join(a.thread, NULL);
		return a.result;
	}
	pthread_cancel(a.thread);
	pthread_join(a.thread, NULL);
	*ret_broken_off = true;
	return r == 0 ? -EWOULDBLOCK : MIN(r, 1);
}

/* --- locks --- */

struct lock_wanted {
	int fd, how;               /* flock() */
	const struct flock *bytes; /* NULL: the whole file, by flock() */
};

APART_MAY_BREAK_OFF static int lock_call(const struct lock_wanted *w, bool wait)
{
	int r;

	do
		r = w->bytes ? fcntl(w->fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, w->bytes)
			     : flock(w->fd, w->how | (wait ? 0 : LOCK_NB));
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return 0;
	return errno == EACCES ? -EWOULDBLOCK : -errno;
}

APART_MAY_BREAK_OFF static int lock_call_waiting(const void *what)
{
	return lock_call(what, true);
}

static void lock_drop(const struct lock_wanted *w)
{
	struct flock bytes;

	if (!w->bytes) {
		(void)flock(w->fd, LOCK_UN);
		return;
	}
	bytes = *w->bytes;
	bytes.l_type = F_UNLCK;
	(void)fcntl(w->fd, F_OFD_SETLK, &bytes);
}

/* The lock is of the open file, so whichever thread asks for it, all have it. */
static int lock_by_thread(const struct lock_wanted *what, int timeout_ms, int also_fd)
{
	bool broken_off;
	int r = apart_wait(lock_call_waiting, what, timeout_ms, also_fd, &broken_off);

	/* It may have come at the last moment. */
	if (broken_off)
		lock_drop(what);
	return r;
}

static int lock_wait(const struct lock_wanted *what, int timeout_ms, int also_fd)
{
	int r;

	if (job_current() && wait_is_cancelled(job_current()))
		return -ECANCELED;
	r = lock_call(what, false);
	if (r != -EWOULDBLOCK || timeout_ms == 0)
		return r;
	if (!job_current() && timeout_ms < 0 && also_fd < 0)
		return lock_call(what, true);
	return lock_by_thread(what, timeout_ms, also_fd);
}

int job_lock(int fd, int how)
{
	return lock_wait(&(struct lock_wanted){.fd = fd, .how = how}, -1, -1);
}

int job_lock_within(int fd, int how, int timeout_ms, int also_fd)
{
	return lock_wait(&(struct lock_wanted){.fd = fd, .how = how}, timeout_ms, also_fd);
}

int job_lock_bytes(int fd, const struct flock *bytes, int timeout_ms, int also_fd)
{
	return lock_wait(&(struct lock_wanted){.fd = fd, .bytes = bytes}, timeout_ms, also_fd);
}

/* --- connecting --- */

struct connect_wanted {
	int fd;
	const struct sockaddr *addr;
	socklen_t n;
};

APART_MAY_BREAK_OFF static int connect_call(const void *what)
{
	const struct connect_wanted *w = what;
	int r;

	do
		r = connect(w->fd, w->addr, w->n);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int job_connect(int fd, const struct sockaddr *addr, socklen_t n)
{
	const struct connect_wanted w = {fd, addr, n};
	bool broken_off;
	int r;

	if (!job_current())
		return connect_call(&w);
	if (wait_is_cancelled(job_current()))
		return -ECANCELED;
	r = fd_set_nonblock(fd, true);
	if (r < 0)
		return r;
	r = connect_call(&w);
	if (fd_set_nonblock(fd, false) < 0 || r != -EAGAIN)
		return r;
	return apart_wait(connect_call, &w, -1, -1, &broken_off);
}
