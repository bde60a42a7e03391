/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For seccomp-gen alone: several system call filters become one. */

#include <linux/filter.h>

struct filter {
	struct sock_filter code[BPF_MAXINSNS];
	unsigned n;
};

enum { JOIN_MAX = 3 };

/* Gives *ret, which does what the kernel does with all of them (at most JOIN_MAX, NULL behind the
 * last; borrowed): the strictest answer holds, and among errnos the first filter's. They are as
 * libseccomp writes them; anything else ends the build with a message. */
void seccomp_join(const struct filter *const *filters, struct filter *ret);

/* Says what is wrong with the filters, and ends the build. */
_Noreturn void seccomp_fail(const char *what, const char *name, int r);
