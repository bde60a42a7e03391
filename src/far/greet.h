/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The first line that the other machine says (far/script.h), and the program for it. */

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

/* The two ends of a stream to a script, both borrowed, and how long it may take. */
struct greet {
	int from, to;
	int patience_sec; /* until the machine says something, and for each piece it takes */
	uint64_t until;   /* the end of it all (clock_mono_usec()); 0: there is none */
};

/* Wait until events of fd, one of the two, are there. */
_warn_unused_ int greet_wait(const struct greet *g, int fd, short events, struct cloche_err *err);

/* See that our program runs there: copy it if it is not there. What the other machine says before
 * is passed over. *ret_copied: it was not there. */
_warn_unused_ int greet_place(const struct greet *g, bool *ret_copied, struct cloche_err *err);
