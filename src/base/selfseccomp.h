/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A program narrows itself to the system calls in one table: classic BPF built here, no library.
 * For the programs that face a network; rooms get their filter from elsewhere. */

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum selfseccomp_rule {
	SELFSECCOMP_ALLOW,
	SELFSECCOMP_NO_EXEC, /* mmap, mprotect: refused (EPERM) with PROT_EXEC in the third argument
			      */
	SELFSECCOMP_INET,  /* socket: TCP and UDP over IPv4 and IPv6 alone; a local socket may lead
			    * to a service  that starts programs for whoever asks */
	SELFSECCOMP_FLAGS, /* fcntl: flags and F_DUPFD_CLOEXEC alone; F_SETOWN sends signals */
	SELFSECCOMP_SELF,  /* tgkill: this process alone, for abort() */
	SELFSECCOMP_BATCH, /* sched_setscheduler: this process alone, SCHED_OTHER and SCHED_BATCH */
	SELFSECCOMP_KILL,  /* a call that only an attacker would make: ends the process */
};

struct selfseccomp_call {
	uint16_t nr; /* __NR_... */
	uint8_t rule;
};

/* Sets no_new_privs and installs the filter for every thread. Calls that are not in the table fail
 * with EPERM; another architecture's calls (x32 and 32-bit ones too) end the process. Often used
 * calls should stand first. Returns 0 or sets err. */
_warn_unused_ int selfseccomp_install(
	const struct selfseccomp_call *calls, size_t n, struct cloche_err *err);
