/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The birth of a room's first process. */

#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

/* Forks the calling process, which must have one thread, into new user, mount, pid, ipc and
 * uts namespaces. Returns 0 in the child (every signal has its default action, none is
 * blocked), and in the parent the child's pid with *ret_pidfd, close-on-exec. cgroup_fd: version 2
 * group to be born in, or -1. Negative with err set if it fails; the hint names the blocker. */
_warn_unused_ pid_t ns_clone(int cgroup_fd, int *ret_pidfd, struct cloche_err *err);

/* By a program of one thread: has fn run by a process that shares the caller's memory and
 * descriptors, and is alone where it goes: it may enter namespaces. Waits for it, with every signal
 * blocked, and returns what fn does. */
_warn_unused_ int ns_run(
	int (*fn)(void *arg, struct cloche_err *err), void *arg, struct cloche_err *err);

/* In the parent, of one thread: makes a network namespace of this user namespace (a descriptor of
 * it), has setup() run in it, whose descriptors and memory are the caller's, and waits. *ret_fd, to
 * be handed to the child, is close-on-exec. */
_warn_unused_ int ns_make_network(int userns, int (*setup)(void *arg, struct cloche_err *err),
	void *arg, int *ret_fd, struct cloche_err *err);

/* In the child: until then it is in the network of whoever made it. */
_warn_unused_ int ns_enter_network(int fd, struct cloche_err *err);

/* In the child, once it is where it shall be accounted: hides the groups above, sets the host name,
 * leaves the session of the terminal that started us. */
_warn_unused_ int ns_settle(const char *hostname, struct cloche_err *err);

/* In the child: no process of its user namespace makes another one, whatever the filter says (which
 * it says before). If the kernel's settings cannot be written that wall is not there. */
void ns_make_last(void);

/* Dies together with the parent; peer is a socket whose other end only the parent holds, which
 * tells if it is dead already. Has to come after the last change of identity, which would undo it.
 */
_warn_unused_ int ns_die_with_parent(int peer, struct cloche_err *err);

/* Sets the hint of err to what keeps this machine from making user namespaces, if one of the known
 * blockers is there; returns whether it is. */
bool ns_explain(struct cloche_err *err);
