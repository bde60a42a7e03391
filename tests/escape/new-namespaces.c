/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: make namespaces: each kind by unshare, clone and clone3
 * Wall: seccomp, and the kernel's count of user namespaces, which is 0 here */
#include "attempt.h"

#include <linux/sched.h>
#include <sched.h>

int main(void)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} kinds[] = {{"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},
		{"network", CLONE_NEWNET}, {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS},
		{"cgroup", CLONE_NEWCGROUP}, {"time", CLONE_NEWTIME},
		{"user and all", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct clone_args args = {.flags = kinds[i].flag, .exit_signal = SIGCHLD};
		long pid;

		refused(kinds[i].name, unshare((int)kinds[i].flag));
		pid = syscall(SYS_clone3, &args, sizeof(args));
		if (pid == 0)
			_exit(0);
		refused(kinds[i].name, pid);
		if (kinds[i].flag == CLONE_NEWTIME) /* to clone() a part of the exit signal */
			continue;
		pid = syscall(SYS_clone, kinds[i].flag | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		refused(kinds[i].name, pid);
	}
	return verdict();
}
