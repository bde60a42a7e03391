/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Copying a sandbox's files into another (fork_files.c). */

#include "api/instance.h"
#include "sandbox/sandbox.h"
#include <cloche/fork.h>

struct fork_copy {
	const cloche_instance *instance; /* whose files they are */
	cloche_files *from, *to;
	const cloche_sandbox *made;    /* the original's; what is mounted there is not copied, */
	const cloche_sandbox *becomes; /* unless it is not mounted in this */
	uint64_t left_out;             /* sockets and devices */
};

_warn_unused_ int fork_copy_files(struct fork_copy *c, struct cloche_err *err);
