/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/recorder.h"
#include "base/fd.h"

int recorder_open(struct recorder *r, const char *id, struct cloche_err *err)
{
	r->lock = -1;
	if (r->limit == 0)
		r->limit = RECORDER_DEFAULT_LIMIT;
	if (state_open(&r->state, r->logs, id, true, err) < 0)
		return -err->code;
	outside_init(r);
	r->state.also = outside_take_entry;
	r->state.also_user = r;
	return 0;
}

/* Under the log's lock. */
static int recorder_take_entry(struct recorder *r, enum state_op_kind kind, struct str args,
	int dir, enum recorder_look look, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT((size_t)STATE_LINE_MAX);
	struct jsonout o = {.b = &text};
	bool scans =
		look == RECORDER_LOOK_IF_TOLD ? !r->whole || r->told_files : look == RECORDER_LOOK;
	int e = scan_note_gap(r, err);
	size_t before;

	if (e == 0 && scans)
		e = scan_trees(r, err);
	if (e < 0 || kind == STATE_UNKNOWN)
		return e;
	if (kind != STATE_EXEC_END)
		return entry_of_event(r, kind, args, err);
	jsonout_open(&o, NULL, '{');
	jsonout_raw(&o, NULL, args);
	before = buf_len(&text);
	e = dir < 0 ? 0 : printed_add(r, dir, &o, err);
	r->used += buf_len(&text) - before;
	jsonout_close(&o, '}');
	if (e == 0 && o.error < 0)
		e = err_nomem(err);
	return e < 0 ? e : entry_of_event(r, kind, buf_str(&text), err);
}

/* Each kind once. */
static int tell_of_gaps(struct recorder *r, struct cloche_err *err)
{
	if (r->overfull && !r->overfull_told) {
		r->overfull_told = true;
		return err_set(err, E_LIMIT,
			"there are more than %d files: changes of the others are not recorded",
			RECORDER_MAX_SEEN);
	}
	if (r->missed && !r->missed_told) {
		r->missed_told = true;
		return err_set(err, E_LIMIT,
			"some files could not be looked at or kept: the log says which (fs.skip)");
	}
	return 0;
}

int recorder_take(struct recorder *r, enum state_op_kind kind, struct str args, int dir,
	enum recorder_look look, struct cloche_err *err)
{
	int e = state_begin(&r->state, err);

	if (e == 0)
		e = recorder_take_entry(r, kind, args, dir, look, err);
	r->told = MAX(r->told, r->state.log.number);
	r->lock = fd_close(r->lock);
	state_end(&r->state);
	return e == 0 ? tell_of_gaps(r, err) : e;
}

void recorder_done(struct recorder *r)
{
	struct seen *s, *next;

	(void)state_close(&r->state, NULL);
	HASH_ITER (hh, r->seen, s, next)
		seen_remove(r, s);
	for (unsigned i = 0; i < r->trees_n; i++) {
		fd_close(r->trees[i].fd);
		free(r->trees[i].path);
	}
}
