/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a room in which namespaces can be made may not be given. */

#include "provider/native/rootfs.h"

/* In the child, with the sources open, before anything is started: refuses (E_DENIED) set-uid and
 * set-gid programs that are shown with their owner, in a nested room that may write to something of
 * the host. By an overlay of its own it could copy them there, with their bits, and change what is
 * in them. They are looked for only if ids are single: a range shows read-only mounts without
 * their owners. The host's own directories are not searched. */
_warn_unused_ int nested_check_programs(const struct rootfs *r, struct cloche_err *err);
