/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NARROW): three stages, called by program.c in this order. After the last
 * one the process can read, write, accept and close; it cannot make a socket, connect one, open a
 * file, start a process or run new code. Those calls end it; others that it does not need fail. */
#include "gateway/narrow.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "base/selfcaps.h"
#include "base/selfseccomp.h"
#include "ipc/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int narrow_descriptors(struct cloche_err *err)
{
	const int keep[] = {HELPER_FD_SUPERVISOR, HELPER_FD_PEER};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	int r;

	secret_harden_process();
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_sys(err, errno, "ignore SIGPIPE");
	r = fd_sanitize_stdio();
	if (r >= 0)
		r = fd_only_write(STDERR_FILENO);
	if (r >= 0)
		r = fd_close_from(3, keep, ARRAY_SIZE(keep));
	return r < 0 ? err_sys(err, -r, "tidy the inherited descriptors") : 0;
}

int narrow_limits(unsigned need, struct cloche_err *err)
{
	const struct rlimit none = {0, 0};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(err, errno, "read the limit of open files");
	files.rlim_cur = MIN((rlim_t)need, files.rlim_max);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(err, errno, "set the limit of open files");
	if (setrlimit(RLIMIT_NPROC, &none) < 0)
		return err_sys(err, errno, "forbid new processes");
	return 0;
}

int narrow_calls(struct cloche_err *err)
{
	int r;
	static const struct selfseccomp_call calls[] = {
	/* the loop */
#ifdef __NR_epoll_wait
		{__NR_epoll_wait, SELFSECCOMP_ALLOW},
#endif
		{__NR_epoll_pwait, SELFSECCOMP_ALLOW},
		{__NR_recvfrom, SELFSECCOMP_ALLOW},
		{__NR_sendto, SELFSECCOMP_ALLOW},
		{__NR_recvmsg, SELFSECCOMP_ALLOW},
		{__NR_sendmsg, SELFSECCOMP_ALLOW},
		{__NR_clock_gettime, SELFSECCOMP_ALLOW},
		{__NR_epoll_ctl, SELFSECCOMP_ALLOW},
		{__NR_accept4, SELFSECCOMP_ALLOW},
		{__NR_close, SELFSECCOMP_ALLOW},
		{__NR_getsockname, SELFSECCOMP_ALLOW},
		{__NR_setsockopt, SELFSECCOMP_ALLOW},
		{__NR_getsockopt, SELFSECCOMP_ALLOW},
		{__NR_shutdown, SELFSECCOMP_ALLOW},
		{__NR_fcntl, SELFSECCOMP_FLAGS},
#ifdef __NR_poll
		{__NR_poll, SELFSECCOMP_ALLOW},
#endif
		{__NR_ppoll, SELFSECCOMP_ALLOW},
		{__NR_read, SELFSECCOMP_ALLOW},
		{__NR_write, SELFSECCOMP_ALLOW},
		{__NR_writev, SELFSECCOMP_ALLOW},
		{__NR_sched_setscheduler, SELFSECCOMP_BATCH},
		/* memory */
		{__NR_brk, SELFSECCOMP_ALLOW},
		{__NR_mmap, SELFSECCOMP_NO_EXEC},
		{__NR_mprotect, SELFSECCOMP_NO_EXEC},
		{__NR_munmap, SELFSECCOMP_ALLOW},
		{__NR_mremap, SELFSECCOMP_ALLOW},
		{__NR_madvise, SELFSECCOMP_ALLOW},
		/* randomness and time for TLS */
		{__NR_getrandom, SELFSECCOMP_ALLOW},
		{__NR_getpid, SELFSECCOMP_ALLOW},
		{__NR_gettid, SELFSECCOMP_ALLOW},
#ifdef __NR_time
		{__NR_time, SELFSECCOMP_ALLOW},
#endif
		{__NR_gettimeofday, SELFSECCOMP_ALLOW},
		{__NR_futex, SELFSECCOMP_ALLOW},
		/* the end, also that of abort() */
		{__NR_exit, SELFSECCOMP_ALLOW},
		{__NR_exit_group, SELFSECCOMP_ALLOW},
		{__NR_rt_sigprocmask, SELFSECCOMP_ALLOW},
		{__NR_rt_sigaction, SELFSECCOMP_ALLOW},
		{__NR_rt_sigreturn, SELFSECCOMP_ALLOW},
		{__NR_tgkill, SELFSECCOMP_SELF},
		/* what only somebody else in our place would call */
		{__NR_socket, SELFSECCOMP_KILL},
		{__NR_connect, SELFSECCOMP_KILL},
		{__NR_bind, SELFSECCOMP_KILL},
#ifdef __NR_open
		{__NR_open, SELFSECCOMP_KILL},
		{__NR_fork, SELFSECCOMP_KILL},
		{__NR_vfork, SELFSECCOMP_KILL},
#endif
		{__NR_openat, SELFSECCOMP_KILL},
		{__NR_openat2, SELFSECCOMP_KILL},
		{__NR_execve, SELFSECCOMP_KILL},
		{__NR_execveat, SELFSECCOMP_KILL},
		{__NR_clone, SELFSECCOMP_KILL},
		{__NR_clone3, SELFSECCOMP_KILL},
		{__NR_ptrace, SELFSECCOMP_KILL},
		{__NR_process_vm_readv, SELFSECCOMP_KILL},
		{__NR_process_vm_writev, SELFSECCOMP_KILL},
		{__NR_kill, SELFSECCOMP_KILL},
		{__NR_io_uring_setup, SELFSECCOMP_KILL},
	};

	/* Started by root, the filter would still leave root's rights over what it allows. */
	r = selfcaps_drop(err);
	return r < 0 ? r : selfseccomp_install(calls, ARRAY_SIZE(calls), err);
}
