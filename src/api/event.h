/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is behind the public events, for those who have parsed them already. */

#include "agent/transcript.h"
#include <cloche/event.h>

/* A public event of one that was parsed, whose JSON it shares; *ret is the caller's. */
_warn_unused_ int event_new(
	const struct agent_event *e, cloche_event **ret, struct cloche_err *err);

/* The tokens of the last result. ret borrows *extra, which is NULL or on the heap, and replaced. */
_warn_unused_ int event_usage(const struct agent_transcript *t, char **extra,
	cloche_event_usage *ret, struct cloche_err *err);

/* What its results report, with that usage; borrowed from both. */
cloche_event_result event_result(const struct agent_transcript *t, const cloche_event_usage *usage);

/* The reverse of event_usage: a new object in *ret. -E_USAGE if extra (NULL: nothing) is no JSON
 * object. */
_warn_unused_ int event_usage_json(
	const cloche_event_usage *usage, json_t **ret, struct cloche_err *err);

static inline void cloche_event_freep(cloche_event **event)
{
	cloche_event_free(*event);
}
