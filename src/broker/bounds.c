/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: limits on what bodies may take up in the broker and the gateway together,
 * however many streams there are. The windows of netchan.h limit one stream; this file limits all
 * of them.
 *
 * Answers: bytes that were sent to the gateway and not credited are held by it, or by the room's
 * connection. Up to a total of UNDER_WAY_MAX each stream may use its window. Beyond that a stream
 * gets no more than SHARE, which is enough for the gateway to give credit, so each stream goes on
 * as its client reads and none waits for another. The total cannot pass UNDER_WAY_MAX +
 * NET_MAX_STREAMS * SHARE.
 *
 * Requests: the memory of what waits here for origins that do not take it. There is no fair way to
 * handle bytes that have already arrived, so beyond WAITING_MAX a request that sends more is
 * refused. Empty buffers are kept for reuse while the total is small. The window of a request is
 * doubled when its origin has taken a whole one, as long as little waits; what all windows have
 * grown by has a bound of its own, so that this leaves room for the others. */
#include "broker/bounds.h"
#include "broker/broker_internal.h"
#include "broker/stream.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"

enum {
	UNDER_WAY_MAX = 32 * 1024 * 1024,
	UNDER_WAY_LOW = UNDER_WAY_MAX - 1024 * 1024,
	SHARE = NET_WINDOW / 4,
	WAITING_MAX = 64 * 1024 * 1024,
	WAITING_HIGH = 16 * 1024 * 1024,
};

void bounds_answer(struct stream *s)
{
	struct broker *b = s->broker;
	size_t now = s->state == STREAM_CLOSED ? 0 : NET_WINDOW - s->window_out;

	b->bounds.under_way = b->bounds.under_way - s->under_way + now;
	s->under_way = now;
	if (b->bounds.tight && b->bounds.under_way < UNDER_WAY_LOW) {
		b->bounds.tight = false;
		b->bounds.full = true; /* flush() then resumes all streams */
		broker_flush_later(b);
	}
}

size_t bounds_answer_room(const struct stream *s)
{
	struct broker *b = s->broker;
	size_t mine = NET_WINDOW - s->window_out;

	if (b->bounds.under_way < UNDER_WAY_MAX)
		return s->window_out;
	b->bounds.tight = true;
	return mine < SHARE ? SHARE - mine : 0;
}

uint32_t bounds_widen(struct stream *s)
{
	struct broker *b = s->broker;
	uint32_t more = s->window;

	if (more > NET_REQUEST_WINDOW_MAX / 2 || b->bounds.waiting > WAITING_HIGH ||
		b->bounds.grown + more > NET_REQUESTS_GROWN_MAX)
		return 0;
	b->bounds.grown += more;
	s->window += more;
	s->body.max += more;
	return more;
}

void bounds_narrow(struct stream *s)
{
	s->broker->bounds.grown -= s->window - NET_REQUEST_WINDOW;
	s->window = NET_REQUEST_WINDOW;
}

bool bounds_request(struct stream *s)
{
	struct broker *b = s->broker;
	size_t now;

	if (b->bounds.waiting > WAITING_HIGH && buf_len(&s->body) == 0)
		buf_done_wiped(&s->body);
	/* A body that is collected as a whole has a limit of its own. */
	now = s->state == STREAM_CLOSED || s->whole ? 0 : s->body.cap;
	b->bounds.waiting = b->bounds.waiting - s->waiting + now;
	s->waiting = now;
	return b->bounds.waiting <= WAITING_MAX;
}
