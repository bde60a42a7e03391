/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a process is ended through init, which knows it best: TERM at its deadline,
 * KILL after the grace period. Nothing in the room can prevent that (INV-LIMITS-OR-REFUSAL): if
 * init does not report the end soon, the process is killed from outside, and if that end is not
 * reported either, the room ends.
 *
 * If the whole room is to end, TERM goes to everything in it, without init. It is delayed while
 * init is starting commands; KILL after the grace period is not. */
#include "base/clock.h"
#include "supervisor/supervisor.h"

#include <signal.h>

#define INIT_PATIENCE (2 * USEC_PER_SEC) /* from KILL through init to EXITED */
#define END_PATIENCE (8 * USEC_PER_SEC)  /* from our own KILL; freeing large memory takes time */

void deadline_signal(struct task *t, uint8_t signo, enum ctl_scope scope)
{
	struct roomctl_signal m = {.exec = t->number, .signo = signo, .scope = scope};

	if (t->sup->init.open && roomctl_send_signal(&t->sup->init.chan, &m) == 0)
		sandbox_flush_init(t->sup);
}

static void deadline_on_undead(struct loop_timer *timer)
{
	struct task *t = container_of(timer, struct task, timer);
	struct cloche_err err = CLOCHE_ERR_INIT;

	err_set(&err, E_BROKEN, "a command outlived its KILL, so that the whole sandbox was ended");
	sandbox_fail(t->sup, &err);
}

/* Something keeps init from killing the process or from reporting its end: for example a process
 * that changes its user all the time, or one that stops every process that init starts. */
static void deadline_on_survived(struct loop_timer *timer)
{
	struct task *t = container_of(timer, struct task, timer);
	struct supervisor *s = t->sup;

	if (t->state == TASK_RUNS)
		(void)!s->room->provider->kill_tree(s->room, (pid_t)t->pid, NULL);
	if (loop_timer_in(s->loop, timer, END_PATIENCE, deadline_on_undead) < 0)
		deadline_on_undead(timer);
}

void deadline_kill(struct task *t, enum ctl_scope scope)
{
	deadline_signal(t, SIGKILL, scope);
	if (t->killed)
		return;
	t->killed = true;
	if (loop_timer_in(t->sup->loop, &t->timer, INIT_PATIENCE, deadline_on_survived) < 0)
		deadline_on_survived(&t->timer);
}

static void deadline_on_grace_over(struct loop_timer *timer)
{
	deadline_kill(container_of(timer, struct task, timer), CTL_SCOPE_TREE);
}

static void deadline_on_timeout(struct loop_timer *timer)
{
	struct task *t = container_of(timer, struct task, timer);
	struct supervisor *s = t->sup;

	t->timed_out = true;
	/* The end of a run's own command is that of the run. */
	if (s->start.one_shot && t->number == s->tasks.first_number) {
		sandbox_end(s, CTL_REASON_TIMEOUT, s->start.grace_usec);
		return;
	}
	deadline_signal(t, SIGTERM, CTL_SCOPE_TREE);
	if (loop_timer_in(s->loop, &t->timer, s->start.grace_usec, deadline_on_grace_over) < 0)
		deadline_kill(t, CTL_SCOPE_TREE);
}

void deadline_start(struct task *t)
{
	struct supervisor *s = t->sup;

	if (t->timeout_usec && loop_timer_set(s->loop, &t->timer, t->started_at + t->timeout_usec,
				       deadline_on_timeout) < 0)
		sandbox_kill(s, CTL_REASON_FAILED);
}

/* Return whether init has not reported yet for some command whether it has started. */
static bool deadline_is_starting(const struct supervisor *s)
{
	for (const struct task *t = s->tasks.known; t; t = t->hh.next)
		if (t->state == TASK_ASKED)
			return true;
	return false;
}

void deadline_tell_room(struct supervisor *s)
{
	if (s->state != SUP_ENDING || !s->end.term_due || deadline_is_starting(s))
		return;
	s->end.term_due = false;
	/* If nothing can receive the signal, there is no point in waiting. */
	if (s->room->provider->kill(s->room, SIGTERM, NULL) < 0)
		sandbox_kill(s, s->end.reason);
}
