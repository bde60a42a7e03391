/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Copies the files of one sandbox into another (fork_files.c). */

#include "api/instance/instance.h"
#include "sandbox/sandbox.h"
#include <cloche/fork.h>

struct fork_copy {
	const cloche_instance *instance; /* the original */
	cloche_files *from, *to;
	const cloche_sandbox *made;    /* the original's configuration */
	const cloche_sandbox *becomes; /* the fork's; what is mounted in both is not copied */
	uint64_t left_out;             /* sockets and devices */
};

_warn_unused_ int fork_copy_files(struct fork_copy *c, struct cloche_err *err);
