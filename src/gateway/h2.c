/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: bytes that were read go into the protocol's engine (http/h2.h) at once, and
 * it calls the exchanges (h2_stream.c). Output is taken from the engine once per iteration, right
 * before the connection is written. Nothing ends the connection while the engine runs: settle()
 * checks for that afterwards.
 *
 * Each exchange has a deadline of its own. The connection's timer fires at or before the earliest
 * of them; then all exchanges are checked. Without exchanges it is the idle timer. */
#include "gateway/h2.h"
#include "base/clock.h"
#include "gateway/event.h"
#include "gateway/h2_exchange.h"
#include "gateway/state.h"

#include <errno.h>
#include <utlist.h>

enum {
	ENOUGH = 64 * 1024, /* for one write */
};

static const struct stage h2_stage;

/* Log why the connection ended. */
static void event_ended(struct h2_conn *on, const char *why)
{
	struct str host = host_str(&on->c->host);
	bool calmed = h2_is_calmed(on->h2);

	event_send_of(on->c, (struct net_event){
				     .kind = calmed ? NET_EVENT_LIMIT : NET_EVENT_MALFORMED,
				     .a = calmed ? STR("http/2") : host,
				     .b = str_from(why),
				     .c = calmed ? host : STR_NULL,
			     });
}

/* There are no exchanges: the connection is idle, or the head of the first is on its way. */
static void set_idle_timer(struct h2_conn *on)
{
	struct conn *c = on->c;
	bool in_head = h2_is_within_head(on->h2);

	on->soonest = USEC_INFINITY;
	if (on->busy || on->in_head != in_head)
		conn_set_timeout(c, in_head ? c->g->limits->head_usec : c->g->limits->idle_usec);
	on->busy = false;
	on->in_head = in_head;
}

static void set_timer(struct h2_conn *on)
{
	struct conn *c = on->c;
	uint64_t now = loop_now(c->g->loop);

	if (on->n == 0) {
		set_idle_timer(on);
		return;
	}
	on->busy = true;
	if (on->soonest < c->deadline)
		conn_set_timeout(c, on->soonest > now ? on->soonest - now : 0);
}

/* Call this after the engine has run and has returned r: end the connection if necessary, else set
 * its timer. */
static void settle(struct h2_conn *on, int r)
{
	struct conn *c = on->c;

	if (r == -ENOMEM) {
		conn_close(c);
		return;
	}
	if (r == 0 && !h2_is_done(on->h2)) {
		set_timer(on);
		return;
	}
	if (*h2_error_text(on->h2))
		event_ended(on, h2_error_text(on->h2));
	conn_end_linger(c);
}

/* --- output --- */

/* Reset the streams that are to be cut and whose last bytes were sent. Return whether there were
 * any. */
static bool reset_cuts(struct h2_conn *on)
{
	struct h2_exchange *x, *next;
	unsigned before = on->cuts;

	DL_FOREACH_SAFE (on->exchanges, x, next)
		if (x->cut && buf_len(&x->out) == 0)
			h2_exchange_reset(x, H2_INTERNAL_ERROR);
	return on->cuts < before;
}

static int output(struct h2_conn *on)
{
	int r = h2_output(on->h2, &on->c->out, ENOUGH);

	if (r == 0 && on->cuts > 0 && reset_cuts(on))
		r = h2_output(on->h2, &on->c->out, ENOUGH);
	return r;
}

static void h2_fill(struct conn *c)
{
	struct h2_conn *on = c->state;

	settle(on, output(on));
}

/* --- input --- */

/* Read and handle one portion. Return whether there may be more. */
static bool h2_read_once(struct conn *c)
{
	struct h2_conn *on = c->state;
	struct gateway *g = c->g;
	ssize_t n = conn_read(c, g->scratch, sizeof(g->scratch));

	if (n <= 0) {
		if (n != -EAGAIN)
			conn_close(c);
		return false;
	}
	conn_mark(c);
	settle(on, h2_feed(on->h2, str_make(g->scratch, (size_t)n)));
	return !c->dead && c->stage == &h2_stage &&
	       ((size_t)n == sizeof(g->scratch) || conn_has_buffered(c));
}

static void h2_readable(struct conn *c)
{
	conn_read_turn(c, h2_read_once);
}

static void on_malformed(void *arg, const struct http_head *head, const char *why)
{
	struct h2_conn *on = arg;

	event_malformed(on->c, head, 0, why);
}

/* --- the connection --- */

static void h2_expired(struct conn *c)
{
	struct h2_conn *on = c->state;
	uint64_t now = loop_now(c->g->loop), soonest = USEC_INFINITY;
	struct h2_exchange *x, *next;

	if (on->n == 0) {
		if (on->in_head)
			event_ended(on, "request head took too long");
		conn_end_linger(c);
		return;
	}
	DL_FOREACH_SAFE (on->exchanges, x, next)
		if (x->deadline <= now)
			h2_exchange_expired(x);
	DL_FOREACH (on->exchanges, x)
		soonest = MIN(soonest, x->deadline);
	on->soonest = soonest;
	conn_mark(c);
	set_timer(on);
}

/* Send GOAWAY, if that can still be sent. */
static void h2_stage_end(struct conn *c)
{
	struct h2_conn *on = c->state;

	h2_goaway(on->h2, H2_NO_ERROR);
	(void)!h2_output(on->h2, &c->out, ENOUGH);
	while (on->exchanges)
		h2_exchange_free(on->exchanges);
	h2_free(on->h2);
	free(on);
	c->state = NULL;
}

static const struct stage h2_stage = {
	.readable = h2_readable,
	.fill = h2_fill,
	.expired = h2_expired,
	.end = h2_stage_end,
};

static struct h2_conn *conn_state_new(struct conn *c)
{
	static const struct h2_handlers handlers = {
		.head = h2_exchange_head,
		.data = h2_exchange_data,
		.end = h2_exchange_end,
		.closed = h2_exchange_closed,
		.body = h2_exchange_body,
		.sent = h2_exchange_sent,
		.malformed = on_malformed,
	};
	struct h2_conn *on = calloc(1, sizeof(*on));
	struct h2_config config = {
		.role = H2_SERVER,
		.on = &handlers,
		.arg = on,
		.stream_window = NET_REQUEST_WINDOW,
		/* A stalled upload must not stop the others. The library gives a connection's
		 * window back when half of it was used. */
		.window = 2 * (H2_STREAMS_MAX * NET_REQUEST_WINDOW + NET_REQUESTS_GROWN_MAX),
	};

	if (!on)
		return NULL;
	on->c = c;
	on->soonest = USEC_INFINITY;
	on->h2 = h2_new(&config);
	if (!on->h2) {
		free(on);
		return NULL;
	}
	return on;
}

void h2_start(struct conn *c)
{
	struct h2_conn *on = conn_state_new(c);

	if (!on) {
		conn_close(c);
		return;
	}
	c->state = on;
	conn_set_stage(c, &h2_stage);
	conn_mark(c);
	conn_set_timeout(c, c->g->limits->idle_usec);
	if (!c->dead && conn_has_buffered(c))
		h2_readable(c);
}
