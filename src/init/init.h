/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the parts of init. */

#include "ipc/roomctl.h"
#include <sys/types.h>

/* A process that was started and has not been reaped. */
struct proc {
	struct proc *next;
	uint32_t exec; /* the supervisor's number */
	bool last;     /* init ends with it */
	pid_t pid;
	int slave;  /* its terminal, for RESIZE, else -1 */
	int master; /* the other end of the terminal until STARTED hands it out, else -1 */
	int birth;  /* readable when it has executed its command or failed; then -1 */
};

/* Why a process could not be started. */
struct start_failure {
	enum roomctl_stage stage;
	int sys_errno;
};

/* Start the process of m with fds[0..2] (borrowed; -1: /dev/null). Return 0 with *ret on the heap,
 * or -1 with *why. */
_warn_unused_ int start_process(const struct roomctl_exec *m, const int fds[3], struct proc **ret,
	struct start_failure *why);

enum { START_WAITS, START_WORKED, START_FAILED };

/* Call this when p->birth is readable or p is dead. Return START_WORKED if p has executed its
 * command (or died before that), START_FAILED with *why, or START_WAITS: then call it again.
 * *ret_listener: see setgid_install(); -1 if none came. Except for START_WAITS, p->birth is closed.
 */
_warn_unused_ int start_take(struct proc *p, struct start_failure *why, int *ret_listener);

/* Close its descriptors and free p. */
void proc_free(struct proc *p);

/* Execute the command; return only if that failed. This makes only system calls, as it is used
 * between clone and exec. */
void lookup_exec(char *const *argv, char *const *env, struct start_failure *why);

/* Send m->signo as m->scope says; p is the process that it names, NULL if that is gone. */
void signal_deliver(const struct roomctl_signal *m, const struct proc *p);

/* Send to everything that belongs to p (see tree.c). */
void tree_signal(const struct proc *p, int signo);
/* Kill our children and all their descendants whose parents are alive. */
void tree_kill_children(void);
/* End everything: all that we have started, and every orphan, is our child or descends from one. */
void tree_end_all(void);

/* Add HOME, USER and LOGNAME of the process's user where they are not set. Return 0 or -ENOMEM. */
_warn_unused_ int user_settle(struct exec_spec *s);

/* If there is no room (plain.c): replace the places and ids of a room by those of the host. Return
 * 0 or -ENOMEM. */
_warn_unused_ int plain_apply(struct exec_spec *s);
