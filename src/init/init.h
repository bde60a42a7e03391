/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of init share. */

#include "ipc/roomctl.h"
#include <sys/types.h>

/* A process that was started and has not been reaped. */
struct proc {
	struct proc *next;
	uint32_t exec; /* the supervisor's number */
	bool last;     /* init ends with it */
	pid_t pid;
	int slave;  /* its terminal, for RESIZE; else -1 */
	int master; /* the other end, until STARTED hands it out; else -1 */
	int birth;  /* readable when it has executed its command, or failed; then -1 */
};

/* What went wrong on the way to a process. */
struct start_failure {
	enum roomctl_stage stage;
	int sys_errno;
};

/* Starts what m asks for with fds[0..2] (borrowed; -1: /dev/null). Returns 0 with *ret on the heap,
 * or -1 with *why. */
_warn_unused_ int start_process(const struct roomctl_exec *m, const int fds[3], struct proc **ret,
	struct start_failure *why);

/* p->birth is readable, or p is dead: true if it has executed its command (or died before that),
 * else false with *why. Closes p->birth. */
_warn_unused_ bool start_has_worked(struct proc *p, struct start_failure *why);

/* Closes what is open and frees p. */
void proc_free(struct proc *p);

/* Executes the command; returns only when that failed. Only makes system calls: used between birth
 * and exec. */
void lookup_exec(char *const *argv, char *const *env, struct start_failure *why);

/* Sends m->signo as m->scope says; p is the process that it names, NULL if it is gone. */
void signal_deliver(const struct roomctl_signal *m, const struct proc *p);

/* Sends a signal to one process, whoever it is by now. */
void signal_one(pid_t target, int signo);
/* To everything that belongs to p (tree.c says what does). */
void tree_signal(const struct proc *p, int signo);
/* To those of p's process group that a signal to the group did not reach. */
void tree_signal_group(const struct proc *p, int signo);
/* Kills our children and all that descends from them by parents that live. */
void tree_kill_children(void);

/* If there is no room (plain.c): makes of what a room is asked for what the host has. 0 or
 * -ENOMEM. */
_warn_unused_ int plain_apply(struct exec_spec *s);
