/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What cloche-recorder does, from its beginning to its end: the exit status. */
int recorder_program(void);

/* "cloche-recorder compact NAME SYNC", with the directory of logs as descriptor 3: compacts the log
 * NAME in the background. */
int compactor_program(const char *name, const char *sync);
