/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which process of the room asked for what is refused. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

struct broker;
struct net_event;
struct question;
struct stream;

/* A process of the room, for the log; the texts may be any bytes. */
struct log_owner {
	uint32_t pid;
	struct str name, program;
};

/* What the supervisor has been asked and has not answered. */
struct attribution {
	struct question *waiting;
	unsigned n;
	unsigned asked;  /* in this second */
	uint64_t second; /* monotonic */
	uint32_t next;   /* number of a question */
};

/* Whether s, which is refused, waits until it is known whose it is; refuse_policy() comes then. */
_warn_unused_ bool attribute_request(struct stream *s);
/* The same for what the gateway has refused; it is logged later then. */
_warn_unused_ bool attribute_event(struct broker *b, const struct net_event *e, struct str payload);
/* The supervisor's answer. False if it is malformed. */
_warn_unused_ bool attribute_answer(struct broker *b, struct str payload);
void attribute_free(struct broker *b);
