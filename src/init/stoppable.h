/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Called by the leader of a session with a terminal, before it executes its command: makes Ctrl-Z
 * stop its process group (see stoppable.c). If this fails, Ctrl-Z does nothing, as without it.
 * Makes only system calls. */
void stoppable_make(void);
