/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Time that a test moves. For processes that are forked after clock_hold() it stands still
 * (clock_hold_here(): for the test itself, too), and goes on by clock_pass() alone; so a bound of
 * an hour can be gone to exactly. The test's own patience is in real time.
 *
 * A test that uses it is registered with 'link_args': clock_link_args. */

#include <stdint.h>
#include <sys/types.h>

void clock_hold(void);
void clock_hold_here(void);

/* The time that stands. */
uint64_t clock_held(void);

/* For the process, which is a child of the test and runs a loop: what is due then is due when it
 * returns. pid 0: for the test itself. */
void clock_pass(pid_t pid, uint64_t usec);

/* The real one. */
uint64_t __real_clock_mono_usec(void);
