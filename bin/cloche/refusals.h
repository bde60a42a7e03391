/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the network refused, or failed to do, told when a command has ended: a program inside often
 * says nothing of it, or something else. */

#include <cloche/network_log.h>
#include <jansson.h>
#include <stdbool.h>

/* Open the network log of a sandbox (its id), at its end if the sandbox has been there before.
 * Return NULL if it has none. */
cloche_network_log *refusals_open(const char *sandbox, bool before);

/* Return an entry of a log (its JSON) as an object with a type: "refused" of something that was
 * refused, with `allow` if an option --allow would allow it; "warning" of a secret that was not put
 * into a header. NULL if it is neither. */
json_t *refusal_event(const char *json);

/* Make '?' of all but the characters of a name, whatever the room has called its program. */
void refusal_keep_name(char *name);

/* Say in at most five lines on standard error what was refused since then, and what allows it:
 * options, or commands if the sandbox lives on; and what was allowed and failed. Close the log.
 * NULL is fine. */
void refusals_say(cloche_network_log *log, const char *sandbox, bool lives);
