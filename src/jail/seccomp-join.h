/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Joins several system call filters into one. For seccomp-gen alone. */

#include <linux/filter.h>

struct filter {
	struct sock_filter code[BPF_MAXINSNS];
	unsigned n;
};

enum { JOIN_MAX = 3 };

/* Store in *ret one filter that does what the kernel does with all of these (borrowed; at most
 * JOIN_MAX, followed by NULL): the strictest answer holds, and among errnos the first filter's. The
 * filters have to be as libseccomp writes them; anything else ends the build with a message. */
void seccomp_join(const struct filter *const *filters, struct filter *ret);

/* Print a filter as an array of C. */
void seccomp_print(const char *name, const struct filter *f);

/* Print what is wrong with the filters and end the build. */
_Noreturn void seccomp_fail(const char *what, const char *name, int r);
