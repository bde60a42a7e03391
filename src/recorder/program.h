/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Run cloche-recorder from start to end. Return the exit status. */
int recorder_program(void);

/* Run "cloche-recorder compact NAME SYNC", with the directory of logs as descriptor 3: compact the
 * log NAME in the background. */
int compactor_program(const char *name, const char *sync);

/* Run "cloche-recorder remove ID": remove the log of that sandbox and, in the background, contents
 * that no log names. */
int remover_program(const char *id);
