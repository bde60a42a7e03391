/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A connection of SSH, of which nothing was read yet: hand it to the room's end of an inspected leg
 * (ipc/sshleg.h), and go on with the request that this end reads from it. */

struct conn;
void ssh_start(struct conn *c);
