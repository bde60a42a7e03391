/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks what a room that can make namespaces may be given. */

#include "provider/native/rootfs.h"

/* In the child, with the sources open, before anything is started: refuse (E_DENIED) set-uid and
 * set-gid programs that are shown with their owner, in a nested room that may write to something of
 * the host. With an overlay of its own it could copy them there, keep their bits, and change their
 * contents. They are searched for only if ids are single: with a range, read-only mounts are shown
 * without their owners. The host's own directories are not searched. */
_warn_unused_ int nested_check_programs(const struct rootfs *r, struct cloche_err *err);
