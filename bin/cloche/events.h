/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `cloche run --events`: what happens in a run, as JSON Lines on standard output. Each line has a
 * type, as those of `cloche agent --events` have: output, refused, warning, result. */

#include <cloche/run.h>
#include <jansson.h>
#include <stdbool.h>

/* Print a piece of output; its last bytes wait if they are the front of a character. Return false,
 * with errno, if standard output failed. */
bool events_output(bool is_stderr, const void *data, size_t length);

/* For cloche_run_on_network(), with the run: print what was refused. If standard output fails, stop
 * the run. */
void events_network(const cloche_network_entry *entry, void *user);

/* Print the last line. document (taken) is that of --json. Return false if standard output failed.
 */
bool events_result(json_t *document);
