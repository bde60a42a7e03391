/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A group from systemd: a transient scope that is delegated to us. The program cloche-scope asks
 * for it over D-Bus. For the cgroup*.c files. */

#include "room/cgroup-v2.h"

/* Return whether systemd runs this machine. */
bool cgroup_scope_is_managed(void);

/* Return the name of the scope for the group of that name: heap, NULL if out of memory. */
char *cgroup_scope_name(const char *name);

/* Move this process (and with it everything that it starts later) into a new scope of systemd: the
 * user's, or for root the system's. The scope ends with the last process in it. Takes some
 * milliseconds, at most a few seconds. Then fill ret with what that scope offers as a parent, as
 * cgroup_v2_choose does. The error names what is in the way. */
_warn_unused_ int cgroup_scope_enter(
	const char *unit, unsigned wanted, struct cgroup_choice *ret, struct cloche_err *err);

/* Let systemd end a scope and everything in it. It is no error if the scope is gone. */
_warn_unused_ int cgroup_scope_stop(const char *unit, struct cloche_err *err);
