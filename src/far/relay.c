/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one of these runs on this machine for each far room. It is between the
 * supervisor, which sees a room's init, the gateway, which sees captured connections, and the far
 * end, which is hostile. It holds no secret and opens nothing; it has dropped its rights
 * before it reads the first byte from the far end. Another process, the keeper, starts the
 * provider's program, which becomes the carrier, and does so again when the carrier was cut. */
#include "far/relay.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "far/program.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/narrow.h"
#include "provider/provider.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	OUT_MAX = 8 * 1024 * 1024,
	SAYS_MAX = 200,            /* lines for a person */
	LITTLE = 64 * 1024,        /* what may wait if more can be left out */
	AGAIN_USEC = USEC_PER_SEC, /* between two tries for a carrier */
	TAILS_USEC = USEC_PER_SEC, /* for what the room has printed, if somebody has ended it */
	/* So long does the far end have to end a room that was killed. */
	KILL_PATIENCE_USEC = 10 * USEC_PER_SEC,
};

static struct relay *relay_of_link(struct link *l)
{
	return container_of(l, struct relay, carrier.link);
}

/* --- its end --- */

/* Write what is still owed to the supervisor, and end. */
_noreturn_ static void relay_exit(struct relay *r)
{
	if (r->init.open)
		(void)!chan_flush_wait(&r->init.chan, 1000);
	if (r->ctl.open)
		(void)!chan_flush_wait(&r->ctl.chan, 1000);
	_exit(0);
}

void relay_fail(struct relay *r, const struct cloche_err *why)
{
	if (r->ctl.open)
		(void)!far_send_failed(&r->ctl.chan, why);
	relay_exit(r);
}

static void relay_lose(struct relay *r, const char *why)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	(void)!err_set(&err, E_PROTOCOL, "the room on the other machine is lost: %s", why);
	relay_fail(r, &err);
}

/* The gateway is gone. The sandbox ends, and the supervisor says why. */
static void relay_close_capture(struct relay *r)
{
	loop_io_remove(&r->capture.io);
	chan_done(&r->capture.chan);
	r->capture.open = false;
}

void relay_sent(struct relay *r, struct relay_chan *c, int e)
{
	if (!c->open)
		return;
	if (e == 0)
		e = chan_flush(&c->chan);
	if (e == -EPIPE && c == &r->capture)
		relay_close_capture(r);
	else if (e == -EPIPE)
		relay_exit(r);
	else if (e < 0)
		relay_lose(r, "too much of what it said waits");
	else
		loop_io_set(&c->io, chan_pending(&c->chan) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void relay_linked(struct relay *r, int e)
{
	carrier_fail(&r->carrier, e);
}

/* A place that is cut again and again fills no file. */
static void relay_say(struct relay *r, const char *text)
{
	if (r->said++ >= SAYS_MAX)
		return;
	relay_sent(r, &r->ctl,
		farctl_send_says(&r->ctl.chan, &(struct farctl_says){.text = str_from(text)}));
}

/* --- the carrier --- */

static void relay_ask_carrier(struct relay *r)
{
	bool again = r->state != RELAY_NEW;
	const struct keeper_carry m = {
		.again = again, .request = str_from(again ? r->again_text : r->start)};

	relay_sent(r, &r->keeper, keeper_send_carry(&r->keeper.chan, &m));
}

static void relay_on_again(struct loop_timer *timer)
{
	relay_ask_carrier(container_of(timer, struct relay, again));
}

static void relay_on_giving_up(struct loop_timer *timer)
{
	struct relay *r = container_of(timer, struct relay, giving_up);
	char why[sizeof(r->last.message) + 64];

	snprintf(why, sizeof(why), "no connection came back in time%s%s", r->last.code ? ": " : "",
		r->last.message);
	relay_lose(r, why);
}

static void relay_tell_over(struct relay *r);

static void relay_on_killed(struct loop_timer *timer)
{
	struct relay *r = container_of(timer, struct relay, giving_up);

	if (r->owes_over)
		relay_tell_over(r);
	else
		relay_lose(r, "it did not answer when it was ended");
}

static void relay_try_again(struct relay *r)
{
	if (loop_timer_in(r->loop, &r->again, AGAIN_USEC, relay_on_again) < 0)
		relay_lose(r, "out of memory");
}

/* Return why there is no use in another carrier, or NULL. */
static const char *relay_is_lost(int why)
{
	switch (why) {
	case -EPROTO:
		return "it broke the rules of the protocol";
	case -E2BIG:
		return "too much waits for it";
	case -ENOMEM:
		return "out of memory";
	case -ENOENT:
		return "it has ended there";
	default:
		return NULL;
	}
}

static void relay_on_cut(struct carrier *c, int why)
{
	struct relay *r = container_of(c, struct relay, carrier);

	/* What was printed has come already. */
	if (r->owes_over) {
		r->cut_at = loop_now(r->loop);
		return;
	}
	if (r->state == RELAY_OVER)
		relay_exit(r);
	if (relay_is_lost(why))
		relay_lose(r, relay_is_lost(why));
	if (r->state < RELAY_UP)
		relay_lose(r, "the connection ended before there was a room");
	if (r->is_killed)
		relay_exit(r);
	/* A carrier that never reached the far end buys no time. */
	if (r->cut_at) {
		relay_try_again(r);
		return;
	}
	r->cut_at = loop_now(r->loop);
	relay_say(r, "the connection to the room is cut: trying again");
	if (loop_timer_in(r->loop, &r->giving_up, r->patience_usec, relay_on_giving_up) < 0)
		relay_lose(r, "out of memory");
	/* One that ends as soon as it is there is not asked for without a pause. */
	if (r->cut_at - r->came_at < AGAIN_USEC)
		relay_try_again(r);
	else
		relay_ask_carrier(r);
}

static void relay_take_carrier(struct relay *r, struct chan_frame *f)
{
	int in = TAKE_FD(f->fds[0]), out = TAKE_FD(f->fds[1]);

	if (carrier_attach(&r->carrier, in, out) < 0)
		relay_lose(r, "the connection could not be used");
	r->came_at = loop_now(r->loop);
}

static void relay_on_greeted(struct link *l)
{
	struct relay *r = relay_of_link(l);

	if (!r->cut_at)
		return;
	r->cut_at = 0;
	r->last = (struct cloche_err)CLOCHE_ERR_INIT;
	if (!r->is_killed)
		loop_timer_clear(&r->giving_up);
	relay_say(r, "the room is connected again");
}

/* The keeper answers. */
static bool relay_on_keeper(struct relay *r, struct chan_frame *f)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (f->type == KEEPER_CARRIES && f->fds_n == 2) {
		relay_take_carrier(r, f);
		return true;
	}
	if (f->type == KEEPER_MADE && (f->fds_n == 2 || f->fds_n == 0))
		return relay_exec_on_terminal(
			r, f->fds_n ? TAKE_FD(f->fds[0]) : -1, f->fds_n ? TAKE_FD(f->fds[1]) : -1);
	if (f->type != KEEPER_FAILED)
		return false;
	(void)!keeper_get_failed(f->payload, &err);
	if (r->state <= RELAY_PREPARES && !r->cut_at)
		relay_fail(r, &err);
	/* Who makes rooms there knows that this one is gone for good. */
	if (err.code == E_BROKEN)
		relay_lose(r, err.message);
	r->last = err;
	relay_try_again(r);
	return true;
}

/* --- messages of the far end --- */

/* Pass a message on to the supervisor as it is; its form was checked. */
static int relay_pass(struct relay *r, enum far_message type, struct str payload, bool ok)
{
	if (!ok)
		return -EPROTO;
	relay_sent(r, &r->ctl, chan_send(&r->ctl.chan, type, payload, NULL, 0));
	return 0;
}

static int relay_on_made(struct relay *r, struct str payload)
{
	struct far_made m;
	bool ok = r->state == RELAY_MAKES && far_get_made(payload, &m);

	if (ok) {
		strv_free(m.unenforced);
		r->state = RELAY_UP;
	}
	return relay_pass(r, FAR_MADE, payload, ok);
}

/* The supervisor hears that the room has ended, and may still ask for files. */
static void relay_tell_over(struct relay *r)
{
	r->owes_over = false;
	loop_timer_clear(&r->giving_up);
	relay_sent(r, &r->ctl, far_send_over(&r->ctl.chan, &r->over));
	r->end_fd = fd_close(r->end_fd);
	/* There is no carrier for files. */
	if (r->cut_at)
		relay_exit(r);
}

/* Nobody's reader keeps a room that somebody ends. */
static void relay_bound_over(struct relay *r)
{
	if (loop_timer_in(r->loop, &r->giving_up, TAILS_USEC, relay_on_killed) < 0)
		relay_tell_over(r);
}

void relay_settle_over(struct relay *r)
{
	if (r->owes_over && !relay_exec_is_owed(r))
		relay_tell_over(r);
}

/* Whoever reads slowly what a process has printed gets all of it, and how the process has ended.
 * That takes as long as he likes, unless somebody has ended the room. */
static int relay_on_over(struct relay *r, struct str payload)
{
	if (r->state != RELAY_UP || !far_get_over(payload, &r->over))
		return -EPROTO;
	r->state = RELAY_OVER;
	loop_timer_clear(&r->giving_up);
	relay_exec_on_over(r);
	r->owes_over = true;
	relay_settle_over(r);
	if (r->owes_over && r->is_ending)
		relay_bound_over(r);
	return 0;
}

/* The supervisor may not look for a long time, and an old one is of no use to it. */
static int relay_on_usage(struct relay *r, struct str payload)
{
	struct far_usage m;

	if (!far_get_usage(payload, &m))
		return -EPROTO;
	return chan_pending(&r->ctl.chan) > LITTLE ? 0 : relay_pass(r, FAR_USAGE, payload, true);
}

static int relay_on_failed(struct relay *r, struct str payload)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	(void)!far_get_failed(payload, &err);
	relay_fail(r, &err);
	return 0;
}

static int relay_on_message(struct link *l, uint16_t type, struct str payload)
{
	struct relay *r = relay_of_link(l);

	switch (type) {
	case FAR_PREPARED:
		if (r->state != RELAY_PREPARES)
			return -EPROTO;
		r->state = RELAY_PREPARED;
		return relay_pass(r, FAR_PREPARED, payload, payload.n == 0);
	case FAR_MADE:
		return relay_on_made(r, payload);
	case FAR_FAILED:
		return relay_on_failed(r, payload);
	case FAR_OVER:
		return relay_on_over(r, payload);
	case FAR_USAGE:
		return relay_on_usage(r, payload);
	case FAR_CONNECTION:
		return relay_stream_connection(r, payload);
	case FAR_ASKED:
		/* The gateway, for which it is, checks it. A flood is dropped. */
		if (r->capture.open && chan_pending(&r->capture.chan) < LITTLE)
			relay_sent(r, &r->capture,
				chan_send(&r->capture.chan, CAPTURE_ASKED, payload, NULL, 0));
		return 0;
	default:
		return relay_exec_on_message(r, type, payload);
	}
}

static const struct link_ops relay_link_ops = {
	.message = relay_on_message,
	.data = pump_on_data,
	.end = pump_on_end,
	.stop = pump_on_stop,
	.more = pump_on_more,
	.greeted = relay_on_greeted,
};

/* --- frames of the supervisor --- */

static bool relay_on_begin(struct relay *r, struct chan_frame *f);

static bool relay_on_kill(struct relay *r, struct str payload)
{
	struct far_kill m;

	if (!far_get_kill(payload, &m))
		return false;
	relay_linked(r, link_send(&r->carrier.link, FAR_KILL, payload));
	r->is_ending |= m.signo == SIGTERM || m.signo == SIGKILL;
	if (r->owes_over && r->is_ending)
		relay_bound_over(r);
	/* A room that lies about its end keeps nobody. */
	else if (m.signo == SIGKILL && !r->is_killed) {
		r->is_killed = true;
		if (r->cut_at)
			relay_exit(r);
		if (loop_timer_in(r->loop, &r->giving_up, KILL_PATIENCE_USEC, relay_on_killed) < 0)
			relay_exit(r);
	}
	return true;
}

static bool relay_on_files(struct relay *r, struct chan_frame *f)
{
	struct farctl_files m;

	if (!farctl_get_files(f->payload, &m) || f->fds_n != 1)
		return false;
	relay_linked(r, relay_stream_files(r, m.mount, TAKE_FD(f->fds[0])));
	return true;
}

static bool relay_on_ctl(struct relay *r, struct chan_frame *f)
{
	switch (f->type) {
	case FARCTL_BEGIN:
		return relay_on_begin(r, f);
	case FARCTL_MAKE:
		if (r->state != RELAY_PREPARED)
			return false;
		r->state = RELAY_MAKES;
		relay_linked(r, link_send(&r->carrier.link, FAR_MAKE, STR_NULL));
		return true;
	case FARCTL_FILES:
		return r->state >= RELAY_PREPARED && relay_on_files(r, f);
	case FAR_KILL:
		return relay_on_kill(r, f->payload);
	case FAR_KILL_TREE:
		relay_linked(r, link_send(&r->carrier.link, FAR_KILL_TREE, f->payload));
		return true;
	case FAR_LEAVE:
		relay_linked(r, link_send(&r->carrier.link, FAR_LEAVE, STR_NULL));
		r->is_killed = true;
		r->state = RELAY_OVER;
		if (r->cut_at || loop_timer_in(r->loop, &r->giving_up, KILL_PATIENCE_USEC,
					 relay_on_killed) < 0)
			relay_exit(r);
		return true;
	default:
		return false;
	}
}

/* --- channels --- */

typedef bool (*relay_frame_fn)(struct relay *r, struct chan_frame *f);

/* Handle what has come. Return -errno if the channel is of no use any more. */
static int relay_read(struct relay *r, struct relay_chan *c, relay_frame_fn fn)
{
	for (int i = 0; i < 64; i++) {
		struct chan_frame f;
		int e = chan_recv(&c->chan, &f);
		bool ok;

		if (e <= 0)
			return e;
		ok = fn(r, &f);
		chan_frame_done(&f);
		if (!ok)
			return -EPROTO;
	}
	return 0;
}

static void relay_serve(struct relay *r, struct relay_chan *c, uint32_t events, relay_frame_fn fn)
{
	int e = relay_read(r, c, fn);

	/* A supervisor that knows that the room is over has no use for its init. */
	if (e < 0 && c == &r->init && r->state == RELAY_OVER) {
		loop_io_remove(&c->io);
		chan_done(&c->chan);
		c->open = false;
		return;
	}
	/* The supervisor, or the keeper, is gone: so is the room. What comes of it until it has
	 * heard that is for nobody. */
	if (e < 0) {
		r->ctl.open = r->init.open = r->capture.open = false;
		if (r->carrier.out >= 0) {
			(void)!link_send(&r->carrier.link, FAR_LEAVE, STR_NULL);
			r->state = RELAY_OVER;
			loop_io_remove(&c->io);
			carrier_kick(&r->carrier);
			if (loop_timer_in(r->loop, &r->giving_up, KILL_PATIENCE_USEC,
				    relay_on_killed) == 0)
				return;
		}
		relay_exit(r);
	}
	if (events & EPOLLOUT)
		relay_sent(r, c, 0);
}

static void relay_on_init_io(struct loop_io *io, uint32_t events)
{
	struct relay *r = container_of(io, struct relay, init.io);

	relay_serve(r, &r->init, events, relay_exec_on_frame);
}

static void relay_on_ctl_io(struct loop_io *io, uint32_t events)
{
	struct relay *r = container_of(io, struct relay, ctl.io);

	relay_serve(r, &r->ctl, events, relay_on_ctl);
}

static void relay_on_keeper_io(struct loop_io *io, uint32_t events)
{
	struct relay *r = container_of(io, struct relay, keeper.io);

	relay_serve(r, &r->keeper, events, relay_on_keeper);
}

/* The gateway says nothing; if it ends, the sandbox does, and the supervisor says so. */
static void relay_on_capture_io(struct loop_io *io, uint32_t events)
{
	struct relay *r = container_of(io, struct relay, capture.io);

	if (events & EPOLLOUT)
		relay_sent(r, &r->capture, 0);
	else
		relay_close_capture(r);
}

static int relay_open(struct relay *r, struct relay_chan *c, int fd, size_t max_payload,
	void (*on_io)(struct loop_io *io, uint32_t events))
{
	int e = chan_init(&c->chan, fd, max_payload, OUT_MAX);

	if (e == 0)
		e = loop_io_add(r->loop, &c->io, c->chan.fd, EPOLLIN, on_io);
	c->open = e == 0;
	return e;
}

static bool relay_on_begin(struct relay *r, struct chan_frame *f)
{
	struct farctl_begin m;
	int e = 0;

	if (r->start || !farctl_get_begin(f->payload, &m) || f->fds_n > 1)
		return false;
	r->start = str_dup(m.start);
	r->again_text = str_dup(m.again);
	r->patience_usec = m.room.patience_usec;
	if (f->fds_n == 1)
		e = relay_open(r, &r->capture, TAKE_FD(f->fds[0]), CAPTURE_MAX_PAYLOAD,
			relay_on_capture_io);
	if (!r->start || !r->again_text || e < 0)
		return false;
	/* It waits until there is a carrier. */
	relay_linked(r, far_send(&r->carrier.link, FAR_ROOM, far_room_spec_message(), &m.room));
	relay_ask_carrier(r);
	r->state = RELAY_PREPARES;
	return true;
}

/* --- start --- */

/* Keep the right to open no file at all, and the calls of a loop over what is open (INV-NARROW). */
static int relay_narrow(struct cloche_err *err)
{
	int e = landlock_grants(NULL, 0, false, err);

	if (e == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		e = err_sys(err, errno, "drop rights");
	return e < 0 ? e : narrow_program(SECCOMP_RELAY, err);
}

static int relay_start(struct relay *r, struct cloche_err *err)
{
	uint8_t session[LINK_SESSION];
	int e;

	r->loop = loop_new();
	if (!r->loop)
		return err_sys(err, errno, "make the event loop");
	rand_bytes(session, sizeof(session));
	carrier_init(&r->carrier, r->loop, &relay_link_ops, session, relay_on_cut);
	r->end_fd = FARCTL_FD_END;
	e = relay_open(r, &r->init, FARCTL_FD_INIT, ROOMCTL_MAX_PAYLOAD, relay_on_init_io);
	if (e == 0)
		e = relay_open(r, &r->ctl, FARCTL_FD, FARCTL_MAX_PAYLOAD, relay_on_ctl_io);
	if (e == 0)
		e = relay_open(r, &r->keeper, FARCTL_FD_KEEPER, sizeof(struct cloche_err) + 4096,
			relay_on_keeper_io);
	r->keeper.chan.max_send = FARCTL_MAX_PAYLOAD;
	return e < 0 ? err_sys(err, -e, "watch the sockets") : relay_narrow(err);
}

int far_relay_program(void)
{
	static struct relay r;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 125;
	fd_raise_limit();
	if (relay_start(&r, &err) < 0) {
		fprintf(stderr, "cloche-far: %s\n", err.message);
		return 125;
	}
	/* The process ends here, so nothing is freed. */
	_exit(loop_run(r.loop) < 0 ? 125 : 0);
}
