/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Process 1 of a room, and what it starts there. */

/* Starts and reaps processes as the supervisor says on CHANNEL_FD (ipc/roomctl.h), until that is
 * closed. Returns the exit status. */
int init_program(void);
/* The same of a room that a provider's program has made: connects to the supervisor and narrows
 * itself first. argv: "nofile=N", "file-size=N" (0: as it is), "staying". */
int enter_main(char *const *argv);
/* In place of process 1 if there is no room. argv: "home DIR", "ro PATH", "rw PATH" (also below
 * it), "at TARGET SOURCE" (for working directories), "nofile=N", "file-size=N", "memory=N", "tcp".
 */
int plain_main(char *const *argv);
/* Connects standard input and output with a port of the room's loopback. Returns the exit status.
 */
int connect_main(const char *port);
