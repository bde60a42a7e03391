/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the table of permitted state changes of a stream. Any other change is a bug
 * in this program, such as a request that is answered twice or sent before it is on record. Then
 * the network ends, as it does if the gateway breaks the protocol. */
#include "broker/broker_internal.h"
#include "broker/stream.h"
#include "broker/watch.h"

#define TO(state) (1U << STREAM_##state)
/* Refused or broken off, which may happen to any stream that has no answer yet. */
#define TO_REFUSAL (TO(ANSWERING) | TO(CLOSED))

static const unsigned allowed[STREAM_STATES] = {
	[STREAM_JUDGED] =
		TO(ASKING) | TO(HELD) | TO(COLLECTING) | TO(WAITING) | TO(READY) | TO_REFUSAL,
	[STREAM_ASKING] = TO(HELD) | TO_REFUSAL,
	[STREAM_HELD] = TO(COLLECTING) | TO(WAITING) | TO(READY) | TO_REFUSAL,
	[STREAM_COLLECTING] = TO(WAITING) | TO(READY) | TO_REFUSAL,
	[STREAM_WAITING] = TO(WAITING) | TO(READY) | TO_REFUSAL,
	[STREAM_READY] = TO(GOING) | TO_REFUSAL,
	/* It may be sent again. The answer to a request of the broker itself does not go to the
	 * gateway. */
	[STREAM_GOING] = TO(GOING) | TO(ANSWERED) | TO_REFUSAL,
	[STREAM_ANSWERING] = TO(SWITCHED) | TO(ANSWERED) | TO(CLOSED),
	[STREAM_SWITCHED] = TO(ANSWERED) | TO(CLOSED),
	[STREAM_ANSWERED] = TO(CLOSED),
	[STREAM_CLOSED] = 0,
};

static const char *const names[STREAM_STATES] = {
	[STREAM_JUDGED] = "judged",
	[STREAM_ASKING] = "asking",
	[STREAM_HELD] = "held",
	[STREAM_COLLECTING] = "collecting",
	[STREAM_WAITING] = "waiting",
	[STREAM_READY] = "ready",
	[STREAM_GOING] = "going",
	[STREAM_ANSWERING] = "answering",
	[STREAM_SWITCHED] = "switched",
	[STREAM_ANSWERED] = "answered",
	[STREAM_CLOSED] = "closed",
};

bool stream_may_go(enum stream_state from, enum stream_state to)
{
	return allowed[from] & 1U << to;
}

void stream_go(struct stream *s, enum stream_state to)
{
	struct broker *b = s->broker;

	if (!stream_may_go(s->state, to)) {
		err_set(b->err, E_INTERNAL, "a stream went from %s to %s", names[s->state],
			names[to]);
		broker_fail(b);
	}
	/* Whatever ends the wait for a person ends the question. */
	if (s->state == STREAM_HELD)
		watch_forget(s);
	s->state = to;
}
