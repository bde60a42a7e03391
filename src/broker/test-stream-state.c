/* SPDX-License-Identifier: Apache-2.0 */
/* The table of how a stream may go on, and the sum of what streams collect. */
#include "broker/broker_internal.h"
#include "broker/request_body.h"
#include "broker/stream.h"
#include "tap.h"

#include <errno.h>

/* Nothing leaves before it is on record, and nothing is answered twice. */
static void a_table_has_each_way(void)
{
	for (enum stream_state from = 0; from < STREAM_STATES; from++) {
		bool before = from < STREAM_ANSWERING;

		check_int(stream_may_go(from, STREAM_CLOSED), from != STREAM_CLOSED);
		check_int(stream_may_go(from, STREAM_JUDGED), false);
		check_int(stream_may_go(from, STREAM_GOING),
			from == STREAM_READY || from == STREAM_GOING);
		check_int(stream_may_go(from, STREAM_ANSWERING), before);
		check_int(stream_may_go(from, STREAM_SWITCHED), from == STREAM_ANSWERING);
		for (enum stream_state to = 0; !before && to < STREAM_ANSWERING; to++)
			check_int(stream_may_go(from, to), false);
	}
}

/* Any other way ends the network, and says why. */
static void another_way_ends_the_network(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct broker b = {.err = &err};
	struct stream s = {.broker = &b};

	b.loop = loop_new();
	check_int(b.loop != NULL, true);
	stream_go(&s, STREAM_READY);
	stream_go(&s, STREAM_GOING);
	check_int(err.code, 0);
	stream_go(&s, STREAM_WAITING);
	check_int(err.code, E_INTERNAL);
	check_z(err.message, "a stream went from going to waiting");
	check_int(loop_run(b.loop), 1);
	loop_free(b.loop);
}

/* The chunks of a signed body may have gone above the maximum, for which they are refused. */
static void nothing_is_collected_above_the_maximum(void)
{
	struct broker b = {.bounds.collected = REQUEST_COLLECTED_MAX + 1};
	struct stream s = {.broker = &b};
	struct buf body = BUF_INIT(1);

	must(buf_add_char(&body, 'x') == 0);
	check_int(request_body_replace(&s, &body), -ENOMEM);
	check_int(buf_len(&body), 1);
	buf_done(&body);
	buf_done(&s.body);
}

int main(void)
{
	run_test(a_table_has_each_way);
	run_test(another_way_ends_the_network);
	run_test(nothing_is_collected_above_the_maximum);
	return tap_done();
}
