/* SPDX-License-Identifier: Apache-2.0 */
/* What happened while a command ran, in the order of time: what it printed (the turns of an agent),
 * the files that it changed, and its requests. The entries of files stand at its end in the log,
 * with the time of the change. Each is read once more to be drawn; what it does to the files that
 * the page knows happens in the order of the log, so a change is compared with what was there
 * before the command. A removal has no time. If what follows it has the same path, the thing was
 * replaced: it is drawn with that, if something was there. Other removals stand at the end. Times
 * come from the supervisor and the kernel; a log from elsewhere may hold any, which then only
 * misplace rows. */
#include "report/internal.h"

#include <errno.h>

static bool timeline_follows(const struct removals *m, const struct state_op *op)
{
	return m->n > 0 && m->exec == op->exec && str_eq(str_from(m->path), op->subject);
}

static void timeline_note_removal(struct report *r, const struct state_op *op, uint64_t offset)
{
	struct removals *m = &r->removals;

	if (m->n == ARRAY_SIZE(m->last) || !timeline_follows(m, op)) {
		m->n = 0;
		free(m->path);
		m->path = str_dup(op->subject);
		m->exec = op->exec;
	}
	if (m->path)
		m->last[m->n++] = offset;
}

/* Return whether the removals before the change were noted as a part of it. */
static bool timeline_replace(struct removals *m)
{
	size_t room = m->room ? 2 * m->room : 16;
	uint64_t *replaced = m->replaced;

	if (m->replaced_n + m->n > m->room) {
		replaced = reallocarray(m->replaced, room, sizeof(*replaced));
		if (!replaced)
			return false;
		m->replaced = replaced;
		m->room = room;
	}
	for (unsigned i = 0; i < m->n; i++)
		m->replaced[m->replaced_n++] = m->last[i];
	return true;
}

void timeline_note(struct report *r, const struct state_op *op, uint64_t offset)
{
	struct command *c = op->exec && op->changed_usec && r->timed < REPORT_MAX_TIMED
				    ? command_find(r, op->exec, true)
				    : NULL;
	size_t room = c && c->changes_room ? 2 * c->changes_room : 16;
	struct timed *changes;
	uint64_t removal = 0;

	if (op->exec && !op->changed_usec && tree_traits(op->kind) & TREE_REMOVES)
		timeline_note_removal(r, op, offset);
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
	if (timeline_follows(&r->removals, op) && timeline_replace(&r->removals))
		removal = r->removals.last[0];
	r->removals.n = 0;
	c->changes[c->changes_n++] =
		(struct timed){.usec = op->changed_usec, .offset = offset, .removal = removal};
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

/* Draw the entry at offset, or only if something is known to be at its path. */
static int timeline_draw_entry(const struct timeline *t, uint64_t offset, uint64_t usec,
	bool if_there, struct cloche_err *err)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	struct tree_path path;
	int e = report_read_line(t->r, offset, &line, err);

	/* If the file has changed meanwhile, something else is at this place. */
	if (e != 0 || state_op_about(line.op.kind) != STATE_FILES)
		return MIN(e, 0);
	if (if_there && (!tree_path_make(&path, line.op.subject) ||
				tree_type_of(&t->r->files, &path) <= TREE_GONE))
		return 0;
	line.op.usec = usec;
	return draw_operation(t->r, &line.op, err);
}

static int timeline_draw_change(
	const struct timeline *t, const struct timed *change, struct cloche_err *err)
{
	int e = change->removal ? timeline_draw_entry(t, change->removal, change->usec, true, err)
				: 0;

	return e < 0 ? e : timeline_draw_entry(t, change->offset, change->usec, false, err);
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
	const struct command *c = op->exec ? command_find(r, op->exec, false) : NULL;
	struct removals *m = &r->removals;

	if (op->changed_usec)
		return c && c->is_timed && offset <= c->last_change;
	while (m->next < m->replaced_n && m->replaced[m->next] < offset)
		m->next++;
	return c && c->is_timed && m->next < m->replaced_n && m->replaced[m->next] == offset;
}
