/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of init share. */

#include "ipc/roomctl.h"
#include <sys/types.h>

/* A process that was started and has not been reaped. */
struct proc {
	struct proc *next;
	uint32_t exec; /* the supervisor's number */
	pid_t pid;
	uid_t uid;
	int slave; /* its terminal, for RESIZE; else -1 */
};

/* What went wrong on the way to a process. */
struct start_failure {
	enum roomctl_stage stage;
	int sys_errno;
};

/* Starts what m asks for with fds[0..2] (borrowed; -1: /dev/null). Returns 0 with *ret on the heap
 * and, where a terminal was asked, *ret_master; or -1 with *why. */
_warn_unused_ int start_process(const struct roomctl_exec *m, const int fds[3], struct proc **ret,
	int *ret_master, struct start_failure *why);

/* Executes the command; returns only when that failed. Async-signal-safe: used between birth
 * and exec. */
void lookup_exec(char *const *argv, char *const *env, struct start_failure *why);

/* Sends m->signo as m->scope says; p is the process that it names, NULL where it is gone. */
void signal_deliver(const struct roomctl_signal *m, const struct proc *p);

/* Sends a signal to one process (or, negative, a group) that was started as uid. */
void signal_as(uid_t uid, pid_t target, int signo);
/* To everything that belongs to p (tree.c says what does). */
void tree_signal(const struct proc *p, int signo);

/* Another thing this program can be: "connect PORT". Returns its exit status. */
int connect_main(const char *port_text);
