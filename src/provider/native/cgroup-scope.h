/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A group from systemd: a transient scope that is delegated to us, asked for over D-Bus by the
 * program cloche-scope. For the cgroup*.c files. */

#include "provider/native/cgroup-v2.h"

/* Whether systemd runs this machine. */
bool cgroup_scope_is_managed(void);

/* The name of the scope for the group of that name: heap, NULL on lack of memory. */
char *cgroup_scope_name(const char *name);

/* Moves this process (whatever it starts later comes along) into a new scope of systemd: the
 * user's, or for root the system's. The scope ends with the last process in it. Takes some
 * milliseconds, at most a few seconds. Then fills ret with what that scope offers as a parent, as
 * cgroup_v2_choose does. The error names what is in the way. */
_warn_unused_ int cgroup_scope_enter(
	const char *unit, unsigned wanted, struct cgroup_choice *ret, struct cloche_err *err);

/* Has systemd end a scope and everything in it. One that is gone is no error. */
_warn_unused_ int cgroup_scope_stop(const char *unit, struct cloche_err *err);
