/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The programs of the far end. Each returns an exit status. */

#include <stdbool.h>

/* Start what holds the room of this id, and be its first carrier: standard input and output. */
int farside_start(const char *id);
/* Hold a room for a service, which has made its directory and listens there (farside/fardir.h), and
 * connects for carriers. The room ends with the descriptor of its owner. only_rooms: refuse a room
 * that is the container that it stands in. */
enum { FARSIDE_FD_DIR = 3, FARSIDE_FD_LISTENER, FARSIDE_FD_OWNER };
int farside_hold(const char *id, bool only_rooms);
/* Be its next carrier. */
int farside_attach(const char *id);
/* End and remove what there may be of it. */
int farside_reap(const char *id);
/* Say what rooms can have here, to far/probe.h. */
int farside_probe(void);
/* Serve files/protocol.h on descriptor 0, with descriptor 3 as the root. */
int farside_files(void);
