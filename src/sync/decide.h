/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is done about a path: a table of what each side has, compared with what both had before. */

enum sync_side {
	SYNC_NEVER,   /* neither before nor now */
	SYNC_NEW,     /* now, not before */
	SYNC_SAME,    /* as before */
	SYNC_CHANGED, /* now another than before */
	SYNC_GONE,    /* before, not now */
	SYNC_SIDE_END_
};

enum sync_action {
	SYNC_DO_NOTHING,
	SYNC_FORGET,  /* it is gone on both sides */
	SYNC_TAKE,    /* have here what is there */
	SYNC_RESTORE, /* the same for what was deleted here; it is told */
	SYNC_COMPARE, /* it changed on both sides: if they differ, keep both */
	SYNC_KEEP,    /* it was deleted there and changed here; it is told */
	SYNC_DELETE,  /* on the side that is changed */
	SYNC_SEND,    /* have there what is here */
	SYNC_LEAVE,   /* it changed there: a pull decides; it is told */
};

enum sync_action sync_decide_pull(enum sync_side here, enum sync_side there);
enum sync_action sync_decide_push(enum sync_side here, enum sync_side there);
