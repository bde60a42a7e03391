/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program of a sandbox: makes its room, serves its clients, and ends with it. */

#include <stdbool.h>

/* Serves the client at CTL_FD (ipc/control.h), and others after it. detached: in a process of its
 * own, so that nobody waits for it. Returns the exit status. */
int supervisor_program(bool detached);
