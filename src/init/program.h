/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Process 1 of a room, and the programs that it starts there. */

#include <stdbool.h>

enum { CHANNEL_FD = 3 };

/* Start and reap processes as the supervisor asks on CHANNEL_FD (ipc/roomctl.h), until that is
 * closed. Return the exit status. */
int init_program(void);
/* The same for a room that a provider's program has made: first connect to the supervisor and drop
 * rights. argv: limits (narrow_put_word), "staying". */
int enter_main(char *const *argv);
/* The same in place of process 1 if there is no room. argv: "home DIR", "ro PATH", "rw PATH" (and
 * everything below), "at TARGET SOURCE" (for working directories and file workers), limits
 * (narrow_put_word), "tcp", "at-home"; for a room with a guard (guard.h) "guarded", "captured",
 * "trust DIR". */
int plain_main(char *const *argv);
/* Return whether each such room can read what lies at this path, a real one. */
bool plain_shows(const char *path);
/* Send out connections to a port of the room's loopback, as they are asked for. Return the exit
 * status. */
int connect_main(const char *port);
/* Connect to it once and copy both ways. */
int reach_main(const char *port);
