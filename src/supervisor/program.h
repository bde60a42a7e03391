/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The supervisor of a sandbox: makes the room, serves its clients, and ends with it. */

#include <stdbool.h>

/* Serve the client at CTL_FD (ipc/control.h), and others after it. sources: how many descriptors
 * follow there. detached: in a process of its own that the caller need not wait for. Return the
 * exit status. */
int supervisor_program(unsigned sources, bool detached);
