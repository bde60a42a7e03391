/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The birth of a room's first process. */

#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

/* Fork the calling process into new user, mount, pid, ipc and uts namespaces. If it has more than
 * one thread, the child may take no lock, as malloc() and stdio do. Return 0 in the child (every
 * signal has its default action, none is blocked), and in the parent the child's pid with
 * *ret_pidfd, close-on-exec. cgroup_fd: version 2 group to be born in, or -1. On failure return a
 * negative value with err set; the hint names the blocker. */
_warn_unused_ pid_t ns_clone(int cgroup_fd, int *ret_pidfd, struct cloche_err *err);

/* For a caller with one thread: run fn in a process that shares the caller's memory and
 * descriptors, and can enter namespaces without the caller. Wait for it with every signal blocked,
 * and return what fn returns. */
_warn_unused_ int ns_run(
	int (*fn)(void *arg, struct cloche_err *err), void *arg, struct cloche_err *err);

/* In the parent, which has one thread: make a network namespace in this user namespace (a
 * descriptor of it), run setup() in it with the caller's descriptors and memory, and wait. *ret_fd,
 * to be handed to the child, is close-on-exec. */
_warn_unused_ int ns_make_network(int userns, int (*setup)(void *arg, struct cloche_err *err),
	void *arg, int *ret_fd, struct cloche_err *err);

/* In the child: enter its network. Until then it is in its parent's. */
_warn_unused_ int ns_enter_network(int fd, struct cloche_err *err);

/* In the child, once it is in its control groups: hide the groups above, set the host name, and
 * leave the session of the terminal that started us. */
_warn_unused_ int ns_settle(const char *hostname, struct cloche_err *err);

/* In the child: keep every process of its user namespace from making another one, independently of
 * the filter, which refuses it first. If the kernel's setting cannot be written, there is no such
 * second wall. */
void ns_make_last(void);

/* Let this process die with its parent. peer is a socket whose other end only the parent holds,
 * which shows whether the parent is already dead. Has to come after the last change of identity,
 * which would undo it. */
_warn_unused_ int ns_die_with_parent(int peer, struct cloche_err *err);

/* Set the hint, if there is none, to what lets this user make namespaces, if AppArmor keeps him
 * from that. It does so in either of two ways: none can be made, or nothing can be done in it. */
void ns_explain_apparmor(uid_t uid, struct cloche_err *err);

/* Say in err why these namespaces (CLONE_NEW...) could not be made, and return its negated code:
 * the hint is the known blocker, if there is one. */
int ns_fail(int errnum, uint64_t flags, const char *what, struct cloche_err *err);
