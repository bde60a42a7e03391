/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NARROW): the broker gives up what it does not need in two stages, both
 * before the first byte of the gateway is read. First, while the configuration is in memory and
 * before files are loaded: no dumps, no core, no new privileges. Last, when nothing has to be
 * opened any more: a list of system calls. It keeps sockets, because dialling is its work; it has
 * no open(), no exec(), no fork(), no ptrace(), no executable memory. What is not listed fails with
 * EPERM. */
#include "broker/narrow.h"
#include "base/fd.h"
#include "base/secmem.h"
#include "base/selfcaps.h"
#include "base/selfseccomp.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct selfseccomp_call calls[] = {
	/* Often used first: the filter is a list. Not every architecture has all of them. */
	{__NR_read, SELFSECCOMP_ALLOW},
	{__NR_write, SELFSECCOMP_ALLOW},
#if defined(__NR_epoll_wait)
	{__NR_epoll_wait, SELFSECCOMP_ALLOW},
#endif
	{__NR_recvmsg, SELFSECCOMP_ALLOW},
	{__NR_sendmsg, SELFSECCOMP_ALLOW},
	{__NR_recvfrom, SELFSECCOMP_ALLOW},
	{__NR_sendto, SELFSECCOMP_ALLOW},
	{__NR_epoll_ctl, SELFSECCOMP_ALLOW},
	{__NR_epoll_pwait, SELFSECCOMP_ALLOW},
	{__NR_clock_gettime, SELFSECCOMP_ALLOW},
	{__NR_gettimeofday, SELFSECCOMP_ALLOW},
#if defined(__NR_time)
	{__NR_time, SELFSECCOMP_ALLOW},
#endif
	{__NR_writev, SELFSECCOMP_ALLOW},
	{__NR_readv, SELFSECCOMP_ALLOW},
	{__NR_close, SELFSECCOMP_ALLOW},
	{__NR_socket, SELFSECCOMP_INET},
	{__NR_connect, SELFSECCOMP_ALLOW},
	{__NR_shutdown, SELFSECCOMP_ALLOW},
	{__NR_setsockopt, SELFSECCOMP_ALLOW},
	{__NR_getsockopt, SELFSECCOMP_ALLOW},
	{__NR_getpeername, SELFSECCOMP_ALLOW},
	{__NR_getsockname, SELFSECCOMP_ALLOW},
	{__NR_fcntl, SELFSECCOMP_FLAGS},
#if defined(__NR_poll)
	{__NR_poll, SELFSECCOMP_ALLOW},
#endif
	{__NR_ppoll, SELFSECCOMP_ALLOW},
	{__NR_getrandom, SELFSECCOMP_ALLOW},
	{__NR_getpid, SELFSECCOMP_ALLOW},
	{__NR_brk, SELFSECCOMP_ALLOW},
	{__NR_mmap, SELFSECCOMP_NO_EXEC},
	{__NR_mprotect, SELFSECCOMP_NO_EXEC},
	{__NR_munmap, SELFSECCOMP_ALLOW},
	{__NR_mremap, SELFSECCOMP_ALLOW},
	{__NR_madvise, SELFSECCOMP_ALLOW},
	{__NR_futex, SELFSECCOMP_ALLOW},
	{__NR_lseek, SELFSECCOMP_ALLOW},
	{__NR_fstat, SELFSECCOMP_ALLOW}, /* the roots' bundle, opened before, is read later */
	{__NR_newfstatat, SELFSECCOMP_ALLOW},
	{__NR_pread64, SELFSECCOMP_ALLOW},
	{__NR_sched_setscheduler, SELFSECCOMP_BATCH},
	{__NR_sched_yield, SELFSECCOMP_ALLOW},
	{__NR_restart_syscall, SELFSECCOMP_ALLOW},
	{__NR_rt_sigreturn, SELFSECCOMP_ALLOW},
	{__NR_rt_sigprocmask, SELFSECCOMP_ALLOW},
	{__NR_rt_sigaction, SELFSECCOMP_ALLOW},
	{__NR_gettid, SELFSECCOMP_ALLOW},
	{__NR_tgkill, SELFSECCOMP_SELF}, /* abort() */
	{__NR_exit_group, SELFSECCOMP_ALLOW},
#if defined(__SANITIZE_ADDRESS__)
	{__NR_sigaltstack, SELFSECCOMP_ALLOW}, /* the sanitizer's own, when the program ends */
#endif
	{__NR_exit, SELFSECCOMP_ALLOW},
	{__NR_execve, SELFSECCOMP_KILL},
	{__NR_execveat, SELFSECCOMP_KILL},
	{__NR_ptrace, SELFSECCOMP_KILL},
	{__NR_process_vm_readv, SELFSECCOMP_KILL},
	{__NR_process_vm_writev, SELFSECCOMP_KILL},
};

int narrow_first(struct cloche_err *err)
{
	int r;

	secret_harden_process();
	r = fd_only_write(STDERR_FILENO);
	if (r < 0)
		return err_sys(err, -r, "give up reading from standard error");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "set no_new_privs");
	return 0;
}

int narrow_last(struct cloche_err *err)
{
	/* Started by root, the filter would still leave root's rights over what it allows. */
	int r = selfcaps_drop(err);

	return r < 0 ? r : selfseccomp_install(calls, ARRAY_SIZE(calls), err);
}
