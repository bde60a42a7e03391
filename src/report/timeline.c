/* SPDX-License-Identifier: Apache-2.0 */
/* What happened while a command ran, in the order of time: what it printed (the turns of an agent),
 * the files that it changed, and its requests. The entries of files stand at its end in the log,
 * with the time of the change. Each is read once more to be drawn; what it does to the files that
 * the page knows happens in the order of the log, so a change is compared with what was there
 * before the command. Times come from the supervisor and the kernel; a log from elsewhere may hold
 * any, which then only misplace rows. */
#include "report/internal.h"

#include <errno.h>

void timeline_note(struct report *r, const struct state_op *op, uint64_t offset)
{
	struct command *c = op->exec && op->changed_usec && r->timed < REPORT_MAX_TIMED
				    ? command_find(r, op->exec, true)
				    : NULL;
	size_t room = c && c->changes_room ? 2 * c->changes_room : 16;
	struct timed *changes;

	if (!c)
		return;
	if (c->changes_n == c->changes_room) {
		/* Without memory they are drawn where the log has them. */
		changes = reallocarray(c->changes, room, sizeof(*changes));
		if (!changes)
			return;
		c->changes = changes;
		c->changes_room = room;
	}
	c->changes[c->changes_n++] = (struct timed){.usec = op->changed_usec, .offset = offset};
	c->last_change = offset;
	r->timed++;
}

static int timeline_compare(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;

	if (x->usec != y->usec)
		return x->usec < y->usec ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void timeline_begin(struct timeline *t, struct report *r, struct command *c, const json_t *end)
{
	bool is_cut = json_count_at(end, "lost") > 0;

	*t = (struct timeline){.r = r,
		.c = c,
		.times = is_cut ? NULL : json_object_get(end, "stdout_times"),
		.end_usec = json_count_at(end, "ended_usec")};
	if (c->changes_n > 0)
		qsort(c->changes, c->changes_n, sizeof(*c->changes), timeline_compare);
	c->is_timed = true;
}

uint64_t timeline_at(struct timeline *t, uint64_t bytes)
{
	const json_t *times = t->times;

	while (t->mark + 3 < json_array_size(times) &&
		json_integer_value(json_array_get(times, t->mark + 2)) <= (json_int_t)bytes)
		t->mark += 2;
	return t->mark + 1 < json_array_size(times)
		       ? (uint64_t)MAX(json_integer_value(json_array_get(times, t->mark + 1)),
				 (json_int_t)0)
		       : 0;
}

static int timeline_draw_change(
	const struct timeline *t, const struct timed *change, struct cloche_err *err)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	int e = report_read_line(t->r, change->offset, &line, err);

	/* If the file has changed meanwhile, something else is at this place. */
	if (e != 0 || state_op_about(line.op.kind) != STATE_FILES)
		return MIN(e, 0);
	line.op.usec = change->usec;
	return draw_operation(t->r, &line.op, err);
}

int timeline_until(struct timeline *t, uint64_t usec, struct cloche_err *err)
{
	struct command *c = t->c;
	int e = 0;

	while (e == 0 && t->next < c->changes_n && c->changes[t->next].usec <= usec) {
		const struct timed *change = &c->changes[t->next++];

		e = draw_requests(t->r, MIN(change->usec, t->end_usec), err);
		if (e == 0)
			e = timeline_draw_change(t, change, err);
	}
	return e < 0 ? e : draw_requests(t->r, MIN(usec, t->end_usec), err);
}

bool timeline_has(struct report *r, const struct state_op *op, uint64_t offset)
{
	const struct command *c =
		op->exec && op->changed_usec ? command_find(r, op->exec, false) : NULL;

	return c && c->is_timed && offset <= c->last_change;
}
