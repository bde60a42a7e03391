/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: answer one's own forbidden calls by a filter of one's own that says "go on"
 * Wall: seccomp: the strictest answer counts, and the first filter stays */
#include "attempt.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

static int install(struct sock_filter *f, unsigned short n, unsigned flags)
{
	struct sock_fprog prog = {.len = n, .filter = f};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static void answer(int listener)
{
	struct seccomp_notif req = {0};
	struct seccomp_notif_resp resp = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		_exit(1);
	resp.id = req.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	_exit(0);
}

int main(void)
{
	struct sock_filter notify[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_acct, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	int listener;

	if (install(allow, 1, 0) < 0)
		return BROKEN;
	REFUSED(syscall(SYS_acct, "/workspace/acct"));
	REFUSED(syscall(SYS_bpf, 0, NULL, 0));
	listener = install(notify, 4, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (listener >= 0) {
		pid_t pid = fork();

		if (pid == 0)
			answer(listener);
		REFUSED(syscall(SYS_acct, "/workspace/acct"));
		kill(pid, SIGKILL);
	}
	REFUSED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_DISABLED, 0));
	return verdict();
}
