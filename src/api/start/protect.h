/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes what the host runs or obeys without being asked (workspace/obeyed.def) read-only inside. */

#include "sandbox/sandbox.h"

/* Add what the user wants writable (sandbox_allow_write()) to ret->opened, as paths of the
 * host. E_USAGE if one of them is not in a writable mount. */
_warn_unused_ int protect_open(
	const cloche_sandbox *sb, struct room_spec *ret, struct cloche_err *err);

/* If this open file of ours (-1: none) lies in the given mount of ret, make it read-only inside,
 * and keep the directories around it in their places. Call it before protect_mount(). */
_warn_unused_ int protect_own_file(
	struct room_spec *ret, size_t mount, int file, struct cloche_err *err);

/* Add mounts for what has to be protected in the given mount of ret, and for what the room does not
 * get (sb->hidden). Set *ret_crowded, to words for the user, if that takes more mounts than a room
 * can have, or if there is more than was searched. E_LIMIT if not all can be hidden. */
_warn_unused_ int protect_mount(const cloche_sandbox *sb, struct room_spec *ret, size_t mount,
	const char **ret_crowded, struct cloche_err *err);
