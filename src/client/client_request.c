/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that have one answer. Only one is under way at a time; what comes in between is handled
 * as ever. */
#include "base/clock.h"
#include "base/fd.h"
#include "client/client_internal.h"

#include <errno.h>

#define IDLE_PATIENCE (2 * USEC_PER_SEC) /* for a supervisor that is asked whether it is idle */
#define END_PATIENCE                                                                               \
	(10 * USEC_PER_SEC) /* for one to answer, or to finish beyond the grace period */

/* Send what was queued (r is the result of queueing) and wait for the answer. Called with the lock
 * held; releases it. */
static int wait_for_reply(
	struct client *c, struct client_reply *reply, int r, struct cloche_err *err)
{
	c->reply = reply;
	if (r == 0)
		(void)client_flush_locked(c);
	pthread_mutex_unlock(&c->lock);
	if (r < 0)
		r = client_broken(c, r, err);
	while (r == 0 && !reply->came)
		r = c->ended ? client_never_ran(c, err) : client_turn(c, NULL, err);
	c->reply = NULL;
	if (r == 0 && reply->code < 0) {
		if (err)
			*err = reply->err;
		r = reply->code;
	}
	return r;
}

/* The supervisor's own bound is an hour for each mount. */
#define BRING_PATIENCE (24 * 3600 * USEC_PER_SEC)

struct limit {
	struct loop_timer timer;
	struct client *client;
};

/* Unlike client_fail(), this does not stop the sandbox. */
static void on_no_answer(struct loop_timer *timer)
{
	struct client *c = container_of(timer, struct limit, timer)->client;
	bool brings = c->brings;

	c->brings = false;
	if (brings && loop_timer_in(c->loop, timer, BRING_PATIENCE, on_no_answer) == 0)
		return;
	c->failed = err_set(&c->failure, E_BUSY, "its supervisor does not answer");
}

int client_stats(struct client *c, struct ctl_stats_now *ret, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_STATS_NOW};
	struct limit limit = {.client = c};
	int r;

	if (loop_timer_in(c->loop, &limit.timer, END_PATIENCE, on_no_answer) < 0)
		return err_nomem(err);
	pthread_mutex_lock(&c->lock);
	r = wait_for_reply(c, &reply, c->over ? -EPIPE : ctl_send_stats(&c->chan), err);
	loop_timer_clear(&limit.timer);
	if (r == 0)
		*ret = reply.stats;
	return r;
}

int client_end(struct client *c, uint64_t grace_usec, struct cloche_err *err)
{
	struct limit limit = {.client = c};
	struct ctl_ended ended;
	int r = 0;

	if (loop_timer_set(c->loop, &limit.timer, clock_mono_usec() + grace_usec + END_PATIENCE,
		    on_no_answer) < 0)
		return err_nomem(err);
	if (client_stop(c, grace_usec) < 0)
		r = err_set(err, E_INTERNAL, "its supervisor has gone");
	c->ending = true;
	if (r == 0)
		r = client_finish(c, &ended, err);
	loop_timer_clear(&limit.timer);
	if (r == -E_BUSY)
		client_stop(c, 0);
	return r;
}

int client_stop_idle(struct client *c, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_STOP};
	struct limit limit = {.client = c};
	int r;

	if (loop_timer_set(c->loop, &limit.timer, clock_mono_usec() + IDLE_PATIENCE, on_no_answer) <
		0)
		return err_nomem(err);
	pthread_mutex_lock(&c->lock);
	r = wait_for_reply(c, &reply,
		c->over ? -EPIPE : ctl_send_stop(&c->chan, &(struct ctl_stop){.if_idle = true}),
		err);
	loop_timer_clear(&limit.timer);
	if (!c->ended)
		return r;
	/* The end is the answer. */
	err_clear(err);
	return 0;
}

int client_forward(
	struct client *c, const struct ctl_forward *m, int listener, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_FORWARDED};

	pthread_mutex_lock(&c->lock);
	return wait_for_reply(
		c, &reply, c->over ? -EPIPE : ctl_send_forward(&c->chan, m, listener), err);
}

int client_policy(struct client *c, int socket, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_POLICY_PASSED};

	pthread_mutex_lock(&c->lock);
	return wait_for_reply(
		c, &reply, c->over ? -EPIPE : ctl_send_policy(&c->chan, &socket), err);
}

int client_sync(struct client *c, int lines, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_SYNCED};

	pthread_mutex_lock(&c->lock);
	return wait_for_reply(c, &reply, c->over ? -EPIPE : ctl_send_sync(&c->chan, &lines), err);
}

int client_complete(struct client *c, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_COMPLETED};
	int r;

	pthread_mutex_lock(&c->lock);
	r = wait_for_reply(c, &reply, c->over ? -EPIPE : ctl_send_complete(&c->chan), err);
	if (r == -E_CANCELLED)
		err_set(err, E_CANCELLED, "the sandbox ended before it was complete");
	return r;
}

int client_layers(struct client *c, int *ret_upper, int *ret_lower, struct cloche_err *err)
{
	struct client_reply reply = {.type = CTL_LAYERS_ARE, .fds = {-1, -1}};
	int r;

	pthread_mutex_lock(&c->lock);
	r = wait_for_reply(c, &reply, c->over ? -EPIPE : ctl_send_layers(&c->chan), err);
	if (r == 0) {
		*ret_upper = reply.fds[0];
		*ret_lower = reply.fds[1];
		return 0;
	}
	/* What came behind the answer may have been invalid. */
	fd_close(reply.fds[0]);
	fd_close(reply.fds[1]);
	return r;
}
