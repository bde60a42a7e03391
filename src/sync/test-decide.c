/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "sync/decide.h"
#include "tap.h"

static const struct {
	enum sync_side here, there;
	enum sync_action pull, push;
} table[] = {
	/* never alike before */
	{SYNC_NEVER, SYNC_NEVER, SYNC_DO_NOTHING, SYNC_DO_NOTHING},
	{SYNC_NEVER, SYNC_NEW, SYNC_TAKE, SYNC_DO_NOTHING},
	{SYNC_NEW, SYNC_NEVER, SYNC_DO_NOTHING, SYNC_SEND},
	{SYNC_NEW, SYNC_NEW, SYNC_COMPARE, SYNC_LEAVE},
	/* alike before */
	{SYNC_SAME, SYNC_SAME, SYNC_DO_NOTHING, SYNC_DO_NOTHING},
	{SYNC_SAME, SYNC_CHANGED, SYNC_TAKE, SYNC_DO_NOTHING},
	{SYNC_SAME, SYNC_GONE, SYNC_DELETE, SYNC_DO_NOTHING},
	{SYNC_CHANGED, SYNC_SAME, SYNC_DO_NOTHING, SYNC_SEND},
	{SYNC_CHANGED, SYNC_CHANGED, SYNC_COMPARE, SYNC_LEAVE},
	{SYNC_CHANGED, SYNC_GONE, SYNC_KEEP, SYNC_SEND},
	{SYNC_GONE, SYNC_SAME, SYNC_DO_NOTHING, SYNC_DELETE},
	{SYNC_GONE, SYNC_CHANGED, SYNC_RESTORE, SYNC_LEAVE},
	{SYNC_GONE, SYNC_GONE, SYNC_FORGET, SYNC_FORGET},
};

static void each_case(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (sync_decide_pull(table[i].here, table[i].there) != table[i].pull)
			tap_fail("row %zu: pull", i);
		if (sync_decide_push(table[i].here, table[i].there) != table[i].push)
			tap_fail("row %zu: push", i);
	}
}

/* Whatever both sides have: only what is as before is deleted, and only what is as before is
 * replaced without being compared. */
static void nothing_is_lost(void)
{
	for (unsigned h = 0; h < SYNC_SIDE_END_; h++) {
		for (unsigned t = 0; t < SYNC_SIDE_END_; t++) {
			enum sync_action pull = sync_decide_pull(h, t),
					 push = sync_decide_push(h, t);
			bool here_stays = h == SYNC_SAME || h == SYNC_NEVER || h == SYNC_GONE;
			bool there_stays = t == SYNC_SAME || t == SYNC_NEVER || t == SYNC_GONE;

			check(pull != SYNC_DELETE || h == SYNC_SAME);
			check((pull != SYNC_TAKE && pull != SYNC_RESTORE) || here_stays);
			check(push != SYNC_DELETE || t == SYNC_SAME);
			check(push != SYNC_SEND || there_stays);
		}
	}
}

int main(void)
{
	run_test(each_case);
	run_test(nothing_is_lost);
	return tap_done();
}
