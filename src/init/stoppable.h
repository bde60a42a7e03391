/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Called by the leader of a session with a terminal, before it executes its command: makes Ctrl-Z
 * stop its process group (see stoppable.c). If this fails, Ctrl-Z does nothing, as without it.
 * Makes only system calls. birth: a descriptor of the leader (borrowed), which no other process
 * holds because of this call when it returns. */
void stoppable_make(int birth);
