/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The internals of public events, for callers that have parsed them already. */

#include "agent/transcript.h"
#include <cloche/event.h>

/* Make a public event from a parsed one, whose JSON it shares. *ret is owned by the caller. */
_warn_unused_ int event_new(
	const struct agent_event *e, cloche_event **ret, struct cloche_err *err);

/* Return the token usage of the last result. *extra is NULL or on the heap and is replaced; ret
 * borrows it. */
_warn_unused_ int event_usage(const struct agent_transcript *t, char **extra,
	cloche_event_usage *ret, struct cloche_err *err);

/* Return what the results of t report, with this usage. Borrows from both. */
cloche_event_result event_result(const struct agent_transcript *t, const cloche_event_usage *usage);

/* The reverse of event_usage: make a new object in *ret. -E_USAGE if extra (NULL: nothing) is not a
 * JSON object. */
_warn_unused_ int event_usage_json(
	const cloche_event_usage *usage, json_t **ret, struct cloche_err *err);

DEFINE_CLEANUP(cloche_event, cloche_event_free)
