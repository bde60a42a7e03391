/* SPDX-License-Identifier: Apache-2.0 */
/* When a command has printed what: for its record, in a bounded number of marks. If there are too
 * many, every other one is dropped, and later ones lie further apart. */
#include "base/clock.h"
#include "supervisor/supervisor.h"

enum { CLOCKED_MARKS = 512, CLOCKED_GAP_USEC = 10 * 1000 };

struct clocked {
	uint64_t bytes; /* that were printed */
	uint64_t gap_usec;
	unsigned n;
	struct {
		uint64_t at, usec; /* what begins there came then */
	} marks[CLOCKED_MARKS];
};

static void clocked_thin(struct clocked *c)
{
	for (unsigned i = 0; i < c->n / 2; i++)
		c->marks[i] = c->marks[2 * i];
	c->n /= 2;
	c->gap_usec *= 2;
}

void clocked_note(struct task *t, uint64_t n)
{
	struct clocked *c = t->clocked;
	uint64_t now;

	if (n == 0 || !t->sup->recording.conn.open)
		return;
	if (!c)
		c = t->clocked = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->gap_usec = MAX(c->gap_usec, (uint64_t)CLOCKED_GAP_USEC);
	now = clock_real_usec();
	if (c->n == CLOCKED_MARKS)
		clocked_thin(c);
	if (c->n == 0 || now - c->marks[c->n - 1].usec >= c->gap_usec) {
		c->marks[c->n].at = c->bytes;
		c->marks[c->n++].usec = now;
	}
	c->bytes += n;
}

uint64_t clocked_splice(struct stream *st, uint64_t n)
{
	uint64_t moved = execlog_splice(&st->task->log, st->which, st->in, n);

	if (st->which == 1)
		clocked_note(st->task, moved);
	return moved;
}

void clocked_put(struct stream *st, const void *p, size_t n)
{
	execlog_write(&st->task->log, st->which, p, n);
	if (st->which == 1)
		clocked_note(st->task, n);
}

void clocked_write(const struct task *t, struct jsonout *o)
{
	const struct clocked *c = t->clocked;

	if (!c)
		return;
	jsonout_open(o, "stdout_times", '[');
	for (unsigned i = 0; i < c->n; i++) {
		jsonout_number(o, NULL, c->marks[i].at);
		jsonout_number(o, NULL, c->marks[i].usec);
	}
	jsonout_close(o, ']');
}

void clocked_done(struct task *t)
{
	free(t->clocked);
	t->clocked = NULL;
}
