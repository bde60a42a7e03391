/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Waiting. The library waits in these functions and nowhere else. In a job (cloche/job.h) they give
 * way to the caller of cloche_job_dispatch(); elsewhere they block the thread. Code that waits need
 * not know which of the two it is in.
 *
 * In a job that was cancelled, each of them returns -ECANCELED (err_sys() makes E_CANCELLED of it).
 * So the caller of a function that waits has to let its errors through, and to end when it cannot
 * wait. */

#include "base/macro.h"
#include <cloche/job.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Return whether the caller runs in a job. */
bool job_is_here(void);

/* As poll(): wait until one of n descriptors is ready, at most timeout_ms (negative: for ever).
 * Signals do not end it. Return how many are ready, 0 at the end of the time, or -errno. In a job
 * with descriptors that are always ready it gives way now and then, too. */
_warn_unused_ int job_wait(struct pollfd *fds, nfds_t n, int timeout_ms);

/* The same for one descriptor, for which the answer is whether it is ready. */
_warn_unused_ int job_wait_fd(int fd, short events, int timeout_ms);

/* Return whether a descriptor is ready now. This never gives way, and is for whoever holds a lock
 * that other jobs of the thread want. */
bool job_is_ready(int fd, short events);

/* Give way if this job has gone on for long without waiting, as it may when something is always
 * ready. Elsewhere do nothing. Return 0 or -ECANCELED. */
_warn_unused_ int job_yield(void);

/* As read(), for a pipe or a socket: wait until there is something, or its end. Return the number
 * of bytes, or -errno. */
_warn_unused_ ssize_t job_read(int fd, void *p, size_t n);

/* Write all n bytes to a descriptor that somebody else may be slow to read from: a pipe, a socket,
 * or any other. Return 0 or -errno. A terminal that is stopped blocks nevertheless. */
_warn_unused_ int job_write_all(int fd, const void *p, size_t n);

/* Wait until the child pid has ended, and reap it: *ret_status as of waitpid(). Return 0 or
 * -errno; after -ECANCELED, the child is still to be reaped. */
_warn_unused_ int job_wait_child(pid_t pid, int *ret_status);

/* Wait for a lock: flock(fd, how), where how is LOCK_SH or LOCK_EX, without LOCK_NB. Return 0 or
 * -errno; then fd is not locked. Two jobs of one thread may want one lock: the other one can go on
 * and give it up, as a short-lived thread waits in this one's place. */
_warn_unused_ int job_lock(int fd, int how);
/* The same, at most timeout_ms (then -EWOULDBLOCK; negative: for ever), and until also_fd (-1:
 * none) is readable (then 1). */
_warn_unused_ int job_lock_within(int fd, int how, int timeout_ms, int also_fd);
/* The same for bytes of a file: fcntl(fd, F_OFD_SETLKW, bytes). */
_warn_unused_ int job_lock_bytes(int fd, const struct flock *bytes, int timeout_ms, int also_fd);

/* As connect(), for a local socket (AF_UNIX) that blocks: wait until the other side has room for
 * one more that wants to connect. Return 0 or -errno. */
_warn_unused_ int job_connect(int fd, const struct sockaddr *addr, socklen_t n);

/* Call fn(arg), for a callback of the library's caller: on the stack of cloche_job_dispatch()'s
 * caller if this is a job. A job that is being freed does not call it, so what fn would leave in
 * *arg needs a good value before. */
void job_call(void (*fn)(void *arg), void *arg);

/* The same for the most common kind: a line of text, which is terminated. */
void job_tell_text(void (*fn)(const char *text, void *user), const char *text, void *user);

/* Define name(fn, ..., user), which calls a callback of a public type like that. JOB_TELL is for
 * callbacks that return nothing. JOB_ASK's function returns `otherwise` if the job does not call
 * the callback; this has to mean: stop. The number is that of the parameters before user. */
/* clang-format off */
#define JOB_TELL_(name, fn_type, members, params, passed, ...)                                     \
	struct name##_args { fn_type fn; members void *user; };                                    \
	static void name##_now(void *arg)                                                          \
	{                                                                                          \
		struct name##_args *call = arg;                                                    \
		call->fn passed;                                                                   \
	}                                                                                          \
	static void name params                                                                    \
	{                                                                                          \
		job_call(name##_now, &(struct name##_args){__VA_ARGS__});                          \
	}
#define JOB_ASK_(name, fn_type, ret_type, otherwise, members, params, passed, ...)                 \
	struct name##_args { fn_type fn; members void *user; ret_type ret; };                      \
	static void name##_now(void *arg)                                                          \
	{                                                                                          \
		struct name##_args *call = arg;                                                    \
		call->ret = call->fn passed;                                                       \
	}                                                                                          \
	static ret_type name params                                                                \
	{                                                                                          \
		struct name##_args call = {__VA_ARGS__, otherwise};                                \
		job_call(name##_now, &call);                                                       \
		return call.ret;                                                                   \
	}
#define JOB_TELL1(name, fn_type, A)                                                                \
	JOB_TELL_(name, fn_type, A a;, (fn_type fn, A a, void *user), (call->a, call->user),       \
		fn, a, user)
#define JOB_TELL2(name, fn_type, A, B)                                                             \
	JOB_TELL_(name, fn_type, A a; B b;, (fn_type fn, A a, B b, void *user),                    \
		(call->a, call->b, call->user), fn, a, b, user)
#define JOB_TELL3(name, fn_type, A, B, C)                                                          \
	JOB_TELL_(name, fn_type, A a; B b; C c;, (fn_type fn, A a, B b, C c, void *user),          \
		(call->a, call->b, call->c, call->user), fn, a, b, c, user)
#define JOB_ASK1(name, fn_type, ret_type, otherwise, A)                                            \
	JOB_ASK_(name, fn_type, ret_type, otherwise, A a;, (fn_type fn, A a, void *user),          \
		(call->a, call->user), fn, a, user)
#define JOB_ASK2(name, fn_type, ret_type, otherwise, A, B)                                         \
	JOB_ASK_(name, fn_type, ret_type, otherwise, A a; B b;,                                    \
		(fn_type fn, A a, B b, void *user), (call->a, call->b, call->user), fn, a, b, user)
#define JOB_ASK3(name, fn_type, ret_type, otherwise, A, B, C)                                      \
	JOB_ASK_(name, fn_type, ret_type, otherwise, A a; B b; C c;,                               \
		(fn_type fn, A a, B b, C c, void *user),                                           \
		(call->a, call->b, call->c, call->user), fn, a, b, c, user)
#define JOB_ASK4(name, fn_type, ret_type, otherwise, A, B, C, D)                                   \
	JOB_ASK_(name, fn_type, ret_type, otherwise, A a; B b; C c; D d;,                          \
		(fn_type fn, A a, B b, C c, D d, void *user),                                      \
		(call->a, call->b, call->c, call->d, call->user), fn, a, b, c, d, user)
/* clang-format on */

/* Between the two, a cancelled job can wait nevertheless: for a child that was killed, or for an
 * answer that must not get lost. What is waited for has to come soon. They nest. */
void job_hold_cancel(void);
void job_release_cancel(void);
