/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the host runs or obeys without being asked (workspace/obeyed.def) is read-only inside. */

#include "sandbox/sandbox.h"

/* The warning of protect_last_mount. */
#define PROTECT_CROWDED                                                                            \
	"there are more files that this machine obeys (hooks and configurations of git, ...) "     \
	"than "                                                                                    \
	"can be made read-only: some can be changed inside; those are looked at when it ends"

/* Puts what the person wants open (cloche_sandbox_allow_write()) into ret->opened, as paths of the
 * host: E_USAGE if one lies in nothing that is writable. */
_warn_unused_ int protect_open(
	const cloche_sandbox *sb, struct room_spec *ret, struct cloche_err *err);

/* Adds what has to be protected in the mount that was added last. *ret_crowded is set if there
 * is more than there can be mounts. */
_warn_unused_ int protect_last_mount(
	struct room_spec *ret, bool *ret_crowded, struct cloche_err *err);
