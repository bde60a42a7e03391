/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Handles Ctrl-C and other signals while something is running inside. The handler decides what each
 * one does. */

#include <stdbool.h>

/* Called in signal context with the signal's number and the count of signals so far. It may only
 * use async-signal-safe functions. */
typedef void (*interrupt_fn)(void *user, int signal_number, unsigned count);

void interrupt_catch(interrupt_fn fn, void *user);
/* What the handler uses is about to be freed: a signal ends the program from now on. */
void interrupt_forget(void);
/* Return the last signal, or 0 if there was none. */
int interrupt_signal(void);
