/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The programs of the far end. Each returns an exit status. */

/* Start what holds the room of this id, and be its first carrier: standard input and output. */
int farside_start(const char *id);
/* Be its next carrier. */
int farside_attach(const char *id);
/* End and remove what there may be of it. */
int farside_reap(const char *id);
/* Say what rooms can have here, to far/probe.h. */
int farside_probe(void);
/* Serve files/protocol.h on descriptor 0, with descriptor 3 as the root. */
int farside_files(void);
