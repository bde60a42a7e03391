/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "job/job.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 1000 };

static cloche_job *start(cloche_job_fn fn, void *user)
{
	cloche_job *job = NULL;

	must(cloche_job_start(fn, user, &job, NULL) == 0);
	return job;
}

static bool is_due(const cloche_job *job)
{
	struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Dispatch a job to its end, as a caller with nothing else to do would. */
static int finish(cloche_job *job, struct cloche_err *err)
{
	int r;

	while ((r = cloche_job_dispatch(job, err)) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		must(poll(&p, 1, -1) == 1);
	}
	return r;
}

static int run(cloche_job_fn fn, void *user)
{
	cloche_job *job = start(fn, user);
	int r = finish(job, NULL);

	cloche_job_free(job);
	return r;
}

/* --- many --- */

struct sleeper {
	cloche_job *job;
	int ms, slept;
};

static int sleep_job(void *user, cloche_err *err)
{
	struct sleeper *s = user;

	for (int i = 0; i < 3; i++)
		s->slept += job_wait(NULL, 0, s->ms) == 0;
	return s->ms % 7 == 0 ? err_set(err, E_LIMIT, "%d", s->ms) : 0;
}

static void test_a_thousand_jobs_in_one_loop(void)
{
	static struct sleeper s[MANY];
	int set = epoll_create1(EPOLL_CLOEXEC), left = MANY;
	struct epoll_event ev;

	fd_raise_limit();
	for (int i = 0; i < MANY; i++) {
		s[i] = (struct sleeper){.ms = i % 50};
		s[i].job = start(sleep_job, &s[i]);
		ev = (struct epoll_event){.events = EPOLLIN, .data.ptr = &s[i]};
		must(epoll_ctl(set, EPOLL_CTL_ADD, cloche_job_fd(s[i].job), &ev) == 0);
	}
	while (left > 0 && tap_ok_now) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		struct sleeper *one;
		int r;

		must(epoll_wait(set, &ev, 1, -1) == 1);
		one = ev.data.ptr;
		r = cloche_job_dispatch(one->job, &err);
		if (r > 0)
			continue;
		left--;
		check_int(r, one->ms % 7 == 0 ? -E_LIMIT : 0);
		check(r == 0 || strtol(err.message, NULL, 10) == one->ms);
		check_int(one->slept, 3);
		check(!is_due(one->job));
		check_int(cloche_job_dispatch(one->job, NULL), r); /* and so it stays */
		cloche_job_free(one->job);
	}
	close(set);
}

/* --- what a wait tells --- */

static int nothing_special_job(void *user, cloche_err *err)
{
	struct pollfd twice[] = {{.events = POLLIN}, {.fd = -1}, {.events = POLLOUT}};
	struct pollfd bad = {.fd = 1 << 20, .events = POLLIN};
	char path[TAP_DIR_BYTES];
	int file = tap_file(path), fds[2];

	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	twice[0].fd = twice[2].fd = fds[0];
	check_int(job_wait(twice, 3, -1), 1);
	check(twice[0].revents == 0 && twice[2].revents == POLLOUT);
	twice[2].events = POLLIN;
	check_int(job_wait(twice, 3, 1), 0);
	check_int(job_wait_fd(file, POLLIN, -1), 1); /* a file is always ready */
	check_int(job_wait(&bad, 1, -1), 1);
	check_int(bad.revents, POLLNVAL);
	must(write(fds[1], "x", 1) == 1);
	check_int(job_wait(twice, 3, -1), 2);
	close(fds[1]);
	check_int(job_wait(twice, 3, -1), 2);
	check(twice[0].revents & POLLHUP);
	close(fds[0]);
	close(file);
	unlink(path);
	return 0;
}

static void test_a_wait_answers_as_poll_does(void)
{
	check(!job_is_here());
	check_int(nothing_special_job(NULL, NULL), 0);
	check_int(run(nothing_special_job, NULL), 0);
}

static int deaf_job(void *user, cloche_err *err)
{
	int *fd = user;

	return job_wait_fd(*fd, POLLIN, -1) == 1 ? 0 : err_set(err, E_INTERNAL, "not ready");
}

static void test_a_job_that_is_not_due_is_not_resumed(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	cloche_job *job = start(deaf_job, &fd);

	check(is_due(job));
	check_int(cloche_job_dispatch(job, NULL), 1);
	for (int i = 0; i < 3; i++) {
		check(!is_due(job));
		check_int(cloche_job_dispatch(job, NULL), 1);
	}
	must(write(fd, &(uint64_t){1}, 8) == 8);
	check(is_due(job));
	check_int(cloche_job_dispatch(job, NULL), 0);
	check(!is_due(job));
	cloche_job_free(job);
	close(fd);
}

static int greedy_job(void *user, cloche_err *err)
{
	int *turns = user, fd = eventfd(1, EFD_CLOEXEC);

	for (*turns = 0; *turns < 10000; ++*turns)
		if (job_wait_fd(fd, POLLIN, -1) != 1)
			break;
	close(fd);
	return 0;
}

static void test_a_job_that_is_always_ready_gives_way(void)
{
	int turns = -1;
	cloche_job *job = start(greedy_job, &turns);

	check_int(cloche_job_dispatch(job, NULL), 1);
	check(turns > 0 && turns < 1000);
	check(is_due(job));
	check_int(finish(job, NULL), 0);
	check_int(turns, 10000);
	cloche_job_free(job);
}

/* --- children --- */

static int child_job(void *user, cloche_err *err)
{
	int status = 0, *gate = user;
	pid_t pid = fork();
	char c;

	if (pid == 0)
		_exit(read(gate[0], &c, 1) == 1 ? 7 : 8);
	must(pid > 0);
	if (job_wait_child(pid, &status) < 0) {
		kill(pid, SIGKILL);
		job_hold_cancel();
		check_int(job_wait_child(pid, &status), 0);
		job_release_cancel();
		check(WIFSIGNALED(status));
		check_int(job_wait_fd(-1, 0, -1), -ECANCELED);
		return err_sys(err, ECANCELED, "wait for a child");
	}
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return 0;
}

static void test_children(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	cloche_job *job;
	int gate[2];

	must(pipe2(gate, O_CLOEXEC) == 0);
	job = start(child_job, gate);
	check_int(cloche_job_dispatch(job, NULL), 1);
	check_int(cloche_job_dispatch(job, NULL), 1);
	must(write(gate[1], "x", 1) == 1);
	check_int(finish(job, NULL), 0);
	cloche_job_free(job);
	must(write(gate[1], "x", 1) == 1);
	check_int(child_job(gate, NULL), 0); /* and without a job */

	job = start(child_job, gate);
	check_int(cloche_job_dispatch(job, NULL), 1);
	cloche_job_cancel(job);
	check(is_due(job));
	check_int(finish(job, &err), -E_CANCELLED);
	check_int(err.code, E_CANCELLED);
	cloche_job_free(job);
	check(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	close(gate[0]);
	close(gate[1]);
}

/* --- locks --- */

struct contender {
	int fd, go; /* waits for go with the lock held; -1: gives it back at once */
	bool locked;
};

static int lock_job(void *user, cloche_err *err)
{
	struct contender *c = user;
	int r = job_lock(c->fd, LOCK_EX);

	if (r < 0)
		return err_sys(err, -r, "lock");
	c->locked = true;
	r = c->go >= 0 ? job_wait_fd(c->go, POLLIN, -1) : 1;
	check_int(flock(c->fd, LOCK_UN), 0);
	c->locked = false;
	return r < 0 ? err_sys(err, -r, "wait") : 0;
}

static size_t count_threads(void)
{
	DIR *list = opendir("/proc/self/task");
	const struct dirent *e;
	size_t n = 0;

	must(list != NULL);
	while ((e = readdir(list)))
		n += e->d_name[0] != '.';
	closedir(list);
	return n;
}

struct bounded {
	int fd, also;
	bool in_job;
};

/* fd is locked by another descriptor all the time. */
static int bounded_job(void *user, cloche_err *err)
{
	const struct bounded *b = user;
	const struct flock bytes = {.l_type = F_WRLCK, .l_start = 7, .l_len = 1};

	check_int(job_is_here(), b->in_job);
	check_int(job_lock_within(b->fd, LOCK_EX, 0, -1), -EWOULDBLOCK);
	check_int(job_lock_within(b->fd, LOCK_SH, 3, -1), -EWOULDBLOCK);
	check_int(job_lock_within(b->fd, LOCK_EX, -1, b->also), 1);
	check_int(job_lock_within(b->fd, LOCK_EX, 60000, b->also), 1);
	check_int(job_lock_within(-1, LOCK_EX, 60000, b->also), -EBADF);
	/* Bytes are locked apart from the file. */
	check_int(job_lock_bytes(b->fd, &bytes, -1, -1), 0);
	return 0;
}

static void test_a_lock_is_waited_for_so_long_and_no_longer(void)
{
	char path[TAP_DIR_BYTES];
	struct bounded b = {.fd = tap_file(path), .also = eventfd(1, EFD_CLOEXEC)};
	int holder = open(path, O_RDWR | O_CLOEXEC), status;
	pid_t pid;

	must(holder >= 0 && job_lock_within(holder, LOCK_EX, 0, -1) == 0);
	check_int(bounded_job(&b, NULL), 0);
	b.in_job = true;
	check_int(run(bounded_job, &b), 0);
	check_int(count_threads(), 1);
	/* Whoever broke a wait off has no lock. */
	must(flock(holder, LOCK_UN) == 0 && flock(holder, LOCK_EX | LOCK_NB) == 0);
	/* One that becomes free in time is got. */
	pid = fork();
	if (pid == 0) {
		usleep(10000);
		_exit(flock(holder, LOCK_UN) < 0);
	}
	check_int(job_lock_within(b.fd, LOCK_EX, 60000, -1), 0);
	check(flock(holder, LOCK_EX | LOCK_NB) < 0);
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	fd_close(b.fd);
	fd_close(b.also);
	fd_close(holder);
	unlink(path);
}

static int bytes_job(void *user, cloche_err *err)
{
	const struct flock bytes = {.l_type = F_WRLCK, .l_start = 7, .l_len = 1};
	int r = job_lock_bytes(*(const int *)user, &bytes, -1, -1);

	return r < 0 ? err_sys(err, -r, "lock") : 0;
}

static void test_bytes_are_locked_too(void)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_start = 7, .l_len = 1};
	char path[TAP_DIR_BYTES];
	int fd = tap_file(path), holder = open(path, O_RDWR | O_CLOEXEC);
	int also = eventfd(1, EFD_CLOEXEC);
	cloche_job *given_up, *job;

	must(holder >= 0 && fcntl(holder, F_OFD_SETLK, &bytes) == 0);
	check_int(job_lock_bytes(fd, &bytes, 3, -1), -EWOULDBLOCK);
	check_int(job_lock_bytes(fd, &bytes, -1, also), 1);
	given_up = start(bytes_job, &fd);
	job = start(bytes_job, &fd);
	check_int(cloche_job_dispatch(given_up, NULL), 1);
	check_int(cloche_job_dispatch(job, NULL), 1);
	cloche_job_cancel(given_up);
	check_int(finish(given_up, NULL), -E_CANCELLED);
	bytes.l_type = F_UNLCK;
	must(fcntl(holder, F_OFD_SETLK, &bytes) == 0);
	check_int(finish(job, NULL), 0);
	bytes.l_type = F_WRLCK;
	check(fcntl(holder, F_OFD_SETLK, &bytes) < 0);
	check_int(count_threads(), 1);
	cloche_job_free(given_up);
	cloche_job_free(job);
	fd_close(also);
	fd_close(fd);
	fd_close(holder);
	unlink(path);
}

static void test_two_jobs_of_one_thread_want_one_lock(void)
{
	char path[TAP_DIR_BYTES];
	struct contender a = {.fd = tap_file(path), .go = eventfd(0, EFD_CLOEXEC)};
	struct contender b = {.fd = open(path, O_RDWR | O_CLOEXEC), .go = -1}, c = b;
	cloche_job *ja = start(lock_job, &a), *jb = start(lock_job, &b), *jc = start(lock_job, &c);

	c.fd = open(path, O_RDWR | O_CLOEXEC);
	check_int(cloche_job_dispatch(ja, NULL), 1);
	check_int(cloche_job_dispatch(jb, NULL), 1);
	check_int(cloche_job_dispatch(jc, NULL), 1);
	check(a.locked && !b.locked && !c.locked);
	cloche_job_cancel(jc);
	check_int(finish(jc, NULL), -E_CANCELLED);
	check(!is_due(jb));
	must(write(a.go, &(uint64_t){1}, 8) == 8);
	check_int(finish(ja, NULL), 0);
	check_int(finish(jb, NULL), 0);
	cloche_job_free(ja);
	cloche_job_free(jb);
	cloche_job_free(jc);
	/* Whoever was cancelled while it waited gives the lock back when it gets it. */
	check_int(job_lock(a.fd, LOCK_EX), 0);
	close(a.fd);
	close(b.fd);
	close(c.fd);
	close(a.go);
	unlink(path);
}

/* --- looks --- */

static int look_job(void *user, cloche_err *err)
{
	int fd = eventfd(1, EFD_CLOEXEC);

	for (int i = 0; i < 1000; i++)
		check(job_is_ready(fd, POLLIN));
	check(!job_is_ready(fd, POLLERR));
	fd_close(fd);
	return 0;
}

static void test_a_look_never_gives_way(void)
{
	cloche_job *job = start(look_job, NULL);

	check_int(cloche_job_dispatch(job, NULL), 0);
	cloche_job_free(job);
}

/* --- the stack --- */

/* What a hostile agent prints: as deep as jansson reads. */
static int deep_json_job(void *user, cloche_err *err)
{
	enum { DEPTH = 2047 };
	_cleanup_(buf_donep) struct buf in = BUF_INIT(1 << 20), out = BUF_INIT(16 << 20);
	_cleanup_json_ json_t *value = NULL;
	int r = 0;

	for (int i = 0; r == 0 && i < DEPTH; i++)
		r = buf_add_str(&in, i % 2 ? STR("{\"a\":") : STR("["));
	if (r == 0)
		r = buf_add_str(&in, STR("1"));
	for (int i = DEPTH; r == 0 && i-- > 0;)
		r = buf_add_str(&in, i % 2 ? STR("}") : STR("]"));
	check_int(r, 0);
	check_int(json_text_read(buf_str(&in), 0, &value, NULL), 0);
	check_int(json_text_write(&out, value, 2), 0);
	check(buf_len(&out) > buf_len(&in));
	return 0;
}

static void test_deep_json_fits_on_the_stack(void)
{
	check_int(run(deep_json_job, NULL), 0);
}

/* --- callbacks --- */

static bool on_own_stack(void)
{
	pthread_attr_t attr;
	void *bottom;
	size_t bytes;
	const char *here = __builtin_frame_address(0);

	must(pthread_getattr_np(pthread_self(), &attr) == 0);
	must(pthread_attr_getstack(&attr, &bottom, &bytes) == 0);
	pthread_attr_destroy(&attr);
	return here >= (char *)bottom && here < (char *)bottom + bytes;
}

struct teller {
	int told, again;
	cloche_job *job;
};

static int quick_job(void *user, cloche_err *err)
{
	check(!on_own_stack());
	return job_wait(NULL, 0, 1);
}

static void tell(void *arg)
{
	struct teller *t = arg;

	check(on_own_stack());
	check(!job_is_here());
	check_int(job_wait(NULL, 0, 1), 0); /* blocks, as it does anywhere */
	check_int(run(quick_job, NULL), 0); /* another job of the same thread */
	if (t->job)
		t->again = cloche_job_dispatch(t->job, NULL);
	t->told++;
}

static int tell_job(void *user, cloche_err *err)
{
	check(!on_own_stack());
	for (int i = 0; i < 10; i++)
		job_call(tell, user);
	return 0;
}

static void test_callbacks_are_called_on_the_callers_stack(void)
{
	struct teller t = {.again = 1};

	t.job = start(tell_job, &t);
	check_int(cloche_job_dispatch(t.job, NULL), 0); /* a callback is no wait */
	check_int(t.told, 10);
	check_int(t.again, -E_USAGE);
	cloche_job_free(t.job);
	job_call(tell, &(struct teller){.job = NULL});
}

typedef bool (*ask_fn)(const char *text, int number, void *user);
typedef void (*tell_fn)(int number, void *user);
JOB_ASK2(call_ask, ask_fn, bool, false, const char *, int)
JOB_TELL1(call_tell, tell_fn, int)

static bool is_asked(const char *text, int number, void *user)
{
	check(on_own_stack());
	check_z(text, "text");
	*(int *)user += number;
	return true;
}

static void is_told(int number, void *user)
{
	check(on_own_stack());
	*(int *)user += number;
}

static int ask_job(void *user, cloche_err *err)
{
	check(call_ask(is_asked, "text", 40, user));
	call_tell(is_told, 2, user);
	check_int(job_wait(NULL, 0, -1), -ECANCELED);
	check(!call_ask(is_asked, "text", 40, user));
	call_tell(is_told, 2, user);
	return 0;
}

static void test_callbacks_have_arguments_and_answers(void)
{
	int sum = 0;
	cloche_job *job = start(ask_job, &sum);

	check_int(cloche_job_dispatch(job, NULL), 1);
	check_int(sum, 42);
	cloche_job_free(job);
	check_int(sum, 42);
}

static void free_it(void *arg)
{
	struct teller *t = arg;

	t->told++;
	cloche_job_free(t->job);
}

static int freed_job(void *user, cloche_err *err)
{
	struct teller *t = user;

	job_call(free_it, t);
	job_call(free_it, t); /* it is not called any more */
	t->again = job_wait(NULL, 0, -1);
	return 0;
}

static void test_a_callback_may_free_its_job(void)
{
	struct teller t = {0};
	struct cloche_err err = CLOCHE_ERR_INIT;

	t.job = start(freed_job, &t);
	check_int(cloche_job_dispatch(t.job, &err), -E_CANCELLED);
	check_int(err.code, E_CANCELLED);
	check_int(t.told, 1);
	check_int(t.again, -ECANCELED);
}

static int nest_job(void *user, cloche_err *err)
{
	cloche_job *inner = NULL;
	int r = cloche_job_start(sleep_job, user, &inner, err);

	while (r == 0 && (r = cloche_job_dispatch(inner, err)) > 0)
		r = MIN(job_wait_fd(cloche_job_fd(inner), POLLIN, -1), 0);
	check(job_is_here());
	cloche_job_free(inner);
	return r;
}

static void test_a_job_may_drive_another(void)
{
	struct sleeper s[8];
	cloche_job *jobs[8];

	for (int i = 0; i < 8; i++) {
		s[i] = (struct sleeper){.ms = i + 8};
		jobs[i] = start(nest_job, &s[i]);
		check_int(cloche_job_dispatch(jobs[i], NULL), 1);
	}
	cloche_job_cancel(jobs[3]);
	for (int i = 0; i < 8; i++) {
		int r = finish(jobs[i], NULL);

		check_int(r, i == 3 ? -ECANCELED : s[i].ms == 14 ? -E_LIMIT : 0);
		cloche_job_free(jobs[i]);
	}
}

/* --- cancelling --- */

static int stubborn_job(void *user, cloche_err *err)
{
	struct teller *t = user;
	int r = job_wait(NULL, 0, -1);

	check_int(r, -ECANCELED);
	job_call(tell, t);
	job_hold_cancel();
	check_int(job_wait(NULL, 0, 5), 0);
	job_release_cancel();
	check_int(job_wait(NULL, 0, 0), -ECANCELED);
	return err_sys(err, -r, "wait");
}

static void test_cancelling(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct teller t = {0};
	cloche_job *job = start(stubborn_job, &t);

	cloche_job_cancel(job);
	check(is_due(job));
	check_int(finish(job, &err), -E_CANCELLED); /* never begun */
	check(strstr(err.message, "before"));
	check_int(t.told, 0);
	cloche_job_free(job);

	job = start(stubborn_job, &t);
	check_int(cloche_job_dispatch(job, NULL), 1);
	cloche_job_cancel(job);
	cloche_job_cancel(job);
	check_int(finish(job, NULL), -E_CANCELLED);
	check_int(t.told, 1);
	cloche_job_free(job);

	job = start(stubborn_job, &t);
	check_int(cloche_job_dispatch(job, NULL), 1);
	cloche_job_free(job); /* does not call back */
	check_int(t.told, 1);
	cloche_job_free(start(stubborn_job, &t));
	cloche_job_free(NULL);
}

static void *cancel_soon(void *arg)
{
	cloche_job_cancel(arg);
	return NULL;
}

static void test_another_thread_may_cancel(void)
{
	for (int i = 0; i < 200 && tap_ok_now; i++) {
		struct sleeper s = {.ms = 1 << 30};
		cloche_job *job = start(nest_job, &s);
		pthread_t thread;

		must(pthread_create(&thread, NULL, cancel_soon, job) == 0);
		check(finish(job, NULL) < 0);
		pthread_join(thread, NULL);
		cloche_job_free(job);
	}
}

/* --- signals --- */

static atomic_int signals;

static void on_signal(int signo)
{
	atomic_fetch_add(&signals, 1);
}

static bool is_blocked(int signo)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, signo) == 1;
}

static int block_job(void *user, cloche_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	check_int(job_wait(NULL, 0, 1), 0);
	check(is_blocked(SIGUSR1));
	return 0;
}

static int end_at_once(void *user, cloche_err *err)
{
	return 0;
}

static void test_an_ended_job_is_not_readable(void)
{
	cloche_job *job = start(end_at_once, NULL);

	check_int(finish(job, NULL), 0);
	check(!is_due(job));
	/* Whoever cancels it may not know yet that it has ended. */
	cloche_job_cancel(job);
	check(!is_due(job));
	check_int(cloche_job_dispatch(job, NULL), 0);
	cloche_job_free(job);
	job = start(end_at_once, NULL);
	cloche_job_cancel(job);
	check_int(cloche_job_dispatch(job, NULL), -CLOCHE_E_CANCELLED);
	cloche_job_cancel(job);
	check(!is_due(job));
	cloche_job_free(job);
}

static void test_each_job_has_its_signal_mask(void)
{
	cloche_job *job;

	must(signal(SIGUSR1, on_signal) != SIG_ERR);
	job = start(block_job, NULL);
	check_int(cloche_job_dispatch(job, NULL), 1);
	check(!is_blocked(SIGUSR1));
	raise(SIGUSR1);
	check_int(atomic_load(&signals), 1);
	check_int(finish(job, NULL), 0);
	check(!is_blocked(SIGUSR1));
	cloche_job_free(job);
}

/* --- resources --- */

static void test_a_job_needs_two_descriptors_and_leaves_none(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct rlimit old, now;
	cloche_job *job = NULL;
	int next = dup(0);

	must(next >= 0 && getrlimit(RLIMIT_NOFILE, &old) == 0);
	close(next);
	for (rlim_t more = 0; more <= 2; more++) {
		now = (struct rlimit){.rlim_cur = (rlim_t)next + more, .rlim_max = old.rlim_max};
		must(setrlimit(RLIMIT_NOFILE, &now) == 0);
		check_int(cloche_job_start(quick_job, NULL, &job, &err), more < 2 ? -E_SYSTEM : 0);
	}
	must(setrlimit(RLIMIT_NOFILE, &old) == 0);
	check_int(finish(job, NULL), 0);
	cloche_job_free(job);
	check_int(dup(0), next);
	close(next);
}

/* --- connecting --- */

static int connect_job(void *user, cloche_err *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = job_connect(fd, user, sizeof(struct sockaddr_un));

	check(r < 0 || !(fcntl(fd, F_GETFL) & O_NONBLOCK));
	return r < 0 ? err_sys(err, -r, "connect") : 0;
}

static void test_a_job_waits_until_it_can_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n;
	cloche_job *job, *given_up;

	snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "cloche-test-job-%d", (int)getpid());
	must(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 0) == 0);
	check_int(run(connect_job, &addr), 0);
	job = start(connect_job, &addr);
	given_up = start(connect_job, &addr);
	check_int(cloche_job_dispatch(job, NULL), 1);
	check_int(cloche_job_dispatch(given_up, NULL), 1);
	cloche_job_cancel(given_up);
	check_int(finish(given_up, NULL), -E_CANCELLED);
	n = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	must(n >= 0);
	close(n);
	check_int(finish(job, NULL), 0);
	cloche_job_free(job);
	cloche_job_free(given_up);
	close(fd);
	check_int(run(connect_job, &addr), -E_SYSTEM);
}

/* --- writing to who reads slowly --- */

enum { WRITTEN = 300000 };

static int write_job(void *user, cloche_err *err)
{
	static char data[WRITTEN];

	for (int i = 0; i < WRITTEN; i++)
		data[i] = (char)(i * 7);
	check_int(job_write_all(*(const int *)user, data, sizeof(data)), 0);
	return 0;
}

/* Read from fds[0] what a job writes to fds[1]. */
static void read_what_a_job_writes(int fds[2])
{
	cloche_job *job = start(write_job, &fds[1]);
	size_t got = 0;
	bool right = true;
	char chunk[5000];
	int r = 1;

	for (ssize_t n = 1; n > 0;) {
		struct pollfd p[] = {{.fd = cloche_job_fd(job), .events = POLLIN},
			{.fd = fds[0], .events = POLLIN}};

		must(poll(p, 2, -1) > 0);
		/* Read only if there is nothing else to do, so that it is full again and again. */
		if (p[0].revents) {
			r = cloche_job_dispatch(job, NULL);
			if (r <= 0)
				close(fds[1]);
			continue;
		}
		n = read(fds[0], chunk, sizeof(chunk));
		for (ssize_t i = 0; i < n; i++)
			right &= chunk[i] == (char)((int)got++ * 7);
	}
	check_int(r, 0);
	check_int((int)got, WRITTEN);
	check(right);
	close(fds[0]);
	cloche_job_free(job);
}

static void test_a_job_writes_to_who_reads_slowly(void)
{
	int fds[2];

	must(pipe2(fds, O_CLOEXEC) == 0);
	read_what_a_job_writes(fds);
	must(fd_socketpair(SOCK_STREAM, fds) == 0);
	read_what_a_job_writes(fds);
}

int main(void)
{
	run_test(test_a_thousand_jobs_in_one_loop);
	run_test(test_a_wait_answers_as_poll_does);
	run_test(test_a_job_that_is_not_due_is_not_resumed);
	run_test(test_a_job_that_is_always_ready_gives_way);
	run_test(test_children);
	run_test(test_two_jobs_of_one_thread_want_one_lock);
	run_test(test_a_lock_is_waited_for_so_long_and_no_longer);
	run_test(test_bytes_are_locked_too);
	run_test(test_a_look_never_gives_way);
	run_test(test_a_job_waits_until_it_can_connect);
	run_test(test_a_job_writes_to_who_reads_slowly);
	run_test(test_deep_json_fits_on_the_stack);
	run_test(test_callbacks_are_called_on_the_callers_stack);
	run_test(test_callbacks_have_arguments_and_answers);
	run_test(test_a_callback_may_free_its_job);
	run_test(test_a_job_may_drive_another);
	run_test(test_cancelling);
	run_test(test_another_thread_may_cancel);
	run_test(test_an_ended_job_is_not_readable);
	run_test(test_each_job_has_its_signal_mask);
	run_test(test_a_job_needs_two_descriptors_and_leaves_none);
	return tap_done();
}
