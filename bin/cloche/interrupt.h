/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ctrl-C and friends while something runs inside: the first interrupt goes to the command, the next
 * ends it, one more kills it. TERM and HUP end it at once. */

#include <stdbool.h>

/* Called in signal context with the signal's number and how many came so far; it may use only what
 * is safe there. */
typedef void (*interrupt_fn)(void *user, int signal_number, unsigned count);

void interrupt_catch(interrupt_fn fn, void *user);
/* The last signal that came, 0: none. */
int interrupt_signal(void);
