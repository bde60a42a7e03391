/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: if the kernel records no peaks for a room, they are the highest values that
 * we have seen. So we read the usage from time to time: soon after the start, when most happens,
 * then less and less often, so that hundreds of idle sandboxes cost next to nothing. Short runs are
 * over before the first sample. */
#include "base/clock.h"
#include "supervisor/supervisor.h"

#define FIRST_LOOK (50 * USEC_PER_MSEC)
#define LONGEST_PAUSE (5 * USEC_PER_SEC)

static void on_sample(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, sample.timer);
	struct room_usage u = {0};

	if (!s->room || s->room_dead || s->room->provider->usage(s->room, &u, NULL) < 0 ||
		!u.sampled)
		return;
	s->sample.pause = MIN(s->sample.pause * 2, LONGEST_PAUSE);
	/* Without memory for a timer the peaks only get coarser. */
	(void)!loop_timer_in(s->loop, t, s->sample.pause, on_sample);
}

void sample_start(struct supervisor *s)
{
	s->sample.pause = FIRST_LOOK;
	(void)!loop_timer_in(s->loop, &s->sample.timer, FIRST_LOOK, on_sample);
}
