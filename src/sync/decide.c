/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/decide.h"

/* Rows: here. Columns: there. What is in no row or column cannot be. */
static const unsigned char pull_table[SYNC_SIDE_END_][SYNC_SIDE_END_] = {
	[SYNC_NEVER] = {[SYNC_NEW] = SYNC_TAKE},
	[SYNC_NEW] = {[SYNC_NEW] = SYNC_COMPARE},
	[SYNC_SAME] = {[SYNC_CHANGED] = SYNC_TAKE, [SYNC_GONE] = SYNC_DELETE},
	[SYNC_CHANGED] = {[SYNC_CHANGED] = SYNC_COMPARE, [SYNC_GONE] = SYNC_KEEP},
	[SYNC_GONE] = {[SYNC_CHANGED] = SYNC_RESTORE, [SYNC_GONE] = SYNC_FORGET},
};

static const unsigned char push_table[SYNC_SIDE_END_][SYNC_SIDE_END_] = {
	[SYNC_NEW] = {[SYNC_NEVER] = SYNC_SEND, [SYNC_NEW] = SYNC_LEAVE},
	[SYNC_CHANGED] =
		{[SYNC_SAME] = SYNC_SEND, [SYNC_CHANGED] = SYNC_LEAVE, [SYNC_GONE] = SYNC_SEND},
	[SYNC_GONE] =
		{[SYNC_SAME] = SYNC_DELETE, [SYNC_CHANGED] = SYNC_LEAVE, [SYNC_GONE] = SYNC_FORGET},
};

enum sync_action sync_decide_pull(enum sync_side here, enum sync_side there)
{
	return pull_table[here][there];
}

enum sync_action sync_decide_push(enum sync_side here, enum sync_side there)
{
	return push_table[here][there];
}
