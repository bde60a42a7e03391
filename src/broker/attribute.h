/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Find out which process of the room made a refused request. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

struct broker;
struct net_event;
struct question;
struct stream;

/* Questions that the supervisor has not answered yet. */
struct attribution {
	struct question *waiting;
	unsigned n;
	unsigned asked;  /* questions sent in this second */
	uint64_t second; /* monotonic */
	uint32_t next;   /* number of a question */
};

/* Ask which process made the refused request s, unless b->lines.owner says so. Return true if s
 * waits for the answer; refuse_policy() is then called later. */
_warn_unused_ bool attribute_request(struct stream *s);
/* The same for a refusal by the gateway. If true is returned, the event is logged, now or later. */
_warn_unused_ bool attribute_event(struct broker *b, const struct net_event *e, struct str payload);
/* Take the supervisor's answer. Return false if it is malformed. */
_warn_unused_ bool attribute_answer(struct broker *b, struct str payload);
void attribute_free(struct broker *b);
