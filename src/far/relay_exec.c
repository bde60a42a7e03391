/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the supervisor speaks with us as with a room's init. A process's descriptors
 * stay here, and each is connected with a channel; what the process itself gets is made at the far
 * end. A terminal is one of this machine in raw mode, made by the keeper: what is written to it
 * goes to the terminal at the far end, which alone interprets it.
 *
 * The end of a process is told when its output has been written, as far as the far end had it then.
 * So whoever hears of the end finds all output in his pipes. */
#include "base/fd.h"
#include "far/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many as a supervisor has at most, and some. */
enum { EXECS_MAX = 5000 };

/* --- life --- */

/* Free x if its end was told and nothing moves any more. */
static void relay_exec_settle(struct relay_exec *x)
{
	struct relay *r = x->relay;

	if (x->has_ended && !x->is_told && x->unwritten == 0) {
		x->is_told = true;
		HASH_DEL(r->execs, x);
		fd_close(x->master);
		x->master = -1;
		if (!x->is_lost)
			relay_sent(r, &r->init, roomctl_send_exited(&r->init.chan, &x->ending));
		relay_settle_over(r);
	}
	if (x->is_told && x->open == 0)
		free(x);
}

static void relay_exec_on_done(struct pump *p)
{
	struct relay_exec *x = p->user;

	x->open--;
	relay_exec_settle(x);
}

static void relay_exec_on_clean(struct pump *p)
{
	struct relay_exec *x = p->user;

	x->unwritten--;
	relay_exec_settle(x);
}

static struct relay_exec *relay_exec_find(struct relay *r, uint32_t number)
{
	struct relay_exec *x;

	HASH_FIND(hh, r->execs, &number, sizeof(number), x);
	return x;
}

/* Close everything of x at once and free it. */
static void relay_exec_free(struct relay_exec *x)
{
	for (unsigned i = 0; i < ARRAY_SIZE(x->pumps); i++)
		if (x->pumps[i].user)
			pump_close(&x->pumps[i]);
	if (!x->is_told)
		HASH_DEL(x->relay->execs, x);
	fd_close(x->master);
	free(x->asked);
	free(x);
}

/* --- starting --- */

static int relay_exec_open(struct relay_exec *x, unsigned i, uint32_t number, int in, int out)
{
	int e = pump_open(&x->pumps[i], &x->relay->carrier, number, in, out, relay_exec_on_done);

	if (e < 0)
		return e;
	x->pumps[i].user = x;
	x->open++;
	return 0;
}

/* Connect the process's descriptor i (taken). */
static int relay_exec_connect(
	struct relay_exec *x, unsigned i, int fd, enum far_stdio *ret_kind, uint32_t *ret_channel)
{
	_cleanup_fd_ int own = fd, copy = -1;
	struct stat st;

	if (fstat(own, &st) < 0)
		return -errno;
	*ret_channel = link_new_number(&x->relay->carrier.link);
	if (S_ISSOCK(st.st_mode)) {
		copy = fcntl(own, F_DUPFD_CLOEXEC, 3);
		*ret_kind = FAR_BOTH;
		return copy < 0 ? -errno
				: relay_exec_open(x, i, *ret_channel, TAKE_FD(own), TAKE_FD(copy));
	}
	*ret_kind = i == 0 ? FAR_READS : FAR_WRITES;
	return i == 0 ? relay_exec_open(x, i, *ret_channel, TAKE_FD(own), -1)
		      : relay_exec_open(x, i, *ret_channel, -1, TAKE_FD(own));
}

static int relay_exec_connect_all(struct relay_exec *x, const struct roomctl_exec *m,
	struct chan_frame *f, struct far_exec *ret)
{
	uint32_t *channels[] = {&ret->channel0, &ret->channel1, &ret->channel2};
	unsigned taken = 0;
	int e = 0;

	for (unsigned i = 0; i < 3 && e == 0; i++)
		if (m->fds_mask & 1U << i)
			e = relay_exec_connect(
				x, i, TAKE_FD(f->fds[taken++]), &ret->stdio[i], channels[i]);
	return e;
}

static struct relay_exec *relay_exec_new(struct relay *r, uint32_t number)
{
	struct relay_exec *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->relay = r;
	x->number = number;
	x->master = -1;
	HASH_ADD(hh, r->execs, number, sizeof(x->number), x);
	if (x->hh.tbl)
		return x;
	free(x);
	return NULL;
}

static void relay_exec_refuse(struct relay *r, uint32_t number, int sys_errno)
{
	const struct roomctl_failed m = {
		.exec = number, .stage = ROOM_STAGE_SETUP, .sys_errno = (uint32_t)sys_errno};

	relay_sent(r, &r->init, roomctl_send_failed(&r->init.chan, &m));
}

/* Have the keeper make a terminal: we open nothing ourselves. */
static int relay_exec_ask_terminal(struct relay_exec *x, struct str asked)
{
	struct relay *r = x->relay;

	x->asked = malloc(asked.n);
	if (!x->asked)
		return -ENOMEM;
	memcpy(x->asked, asked.p, asked.n);
	x->asked_n = asked.n;
	relay_sent(r, &r->keeper, keeper_send_terminal(&r->keeper.chan));
	return 0;
}

/* The far end hears of the process; or it fails here, for this reason. */
static void relay_exec_tell(struct relay_exec *x, const struct far_exec *ask, int e)
{
	struct relay *r = x->relay;
	uint32_t number = x->number;

	if (e == 0) {
		relay_linked(r, far_send(&r->carrier.link, FAR_EXEC, far_exec_message(), ask));
		return;
	}
	/* Channels that the far end never heard of are of no use to it. */
	relay_exec_free(x);
	relay_exec_refuse(r, number, -e);
}

static void relay_exec_start(struct relay *r, const struct roomctl_exec *m, struct chan_frame *f)
{
	struct far_exec ask = {.exec = f->payload};
	struct relay_exec *x = HASH_COUNT(r->execs) < EXECS_MAX ? relay_exec_new(r, m->exec) : NULL;
	int e;

	if (!x) {
		relay_exec_refuse(r, m->exec, EOPNOTSUPP);
		return;
	}
	e = m->spec.tty ? relay_exec_ask_terminal(x, f->payload)
			: relay_exec_connect_all(x, m, f, &ask);
	if (e < 0 || !m->spec.tty)
		relay_exec_tell(x, &ask, e);
}

bool relay_exec_on_terminal(struct relay *r, int master, int slave)
{
	_cleanup_fd_ int in = slave, out = slave < 0 ? -1 : fcntl(slave, F_DUPFD_CLOEXEC, 3);
	_cleanup_(freep) char *asked = NULL;
	struct far_exec ask = {0};
	struct relay_exec *x = r->execs;
	int e = -ENOSPC;

	/* The table keeps the order in which they came. */
	while (x && !x->asked)
		x = x->hh.next;
	if (!x) {
		fd_close(master);
		return false;
	}
	asked = TAKE_PTR(x->asked);
	x->master = master;
	ask.exec = str_make(asked, x->asked_n);
	ask.channel0 = link_new_number(&r->carrier.link);
	if (out >= 0)
		e = relay_exec_open(x, 0, ask.channel0, TAKE_FD(in), TAKE_FD(out));
	relay_exec_tell(x, &ask, e);
	return true;
}

static bool relay_exec_on_exec(struct relay *r, struct chan_frame *f)
{
	struct roomctl_exec m;
	bool ok = roomctl_get_exec(f->payload, &m) &&
		  f->fds_n == (unsigned)__builtin_popcount(m.fds_mask) &&
		  !relay_exec_find(r, m.exec);

	if (ok)
		relay_exec_start(r, &m, f);
	exec_spec_done(&m.spec);
	return ok;
}

bool relay_exec_on_frame(struct relay *r, struct chan_frame *f)
{
	struct link *l = &r->carrier.link;

	switch (f->type) {
	case ROOM_EXEC:
		return relay_exec_on_exec(r, f);
	case ROOM_SIGNAL:
		relay_linked(r, link_send(l, FAR_SIGNAL, f->payload));
		return f->fds_n == 0;
	case ROOM_RESIZE:
		relay_linked(r, link_send(l, FAR_RESIZE, f->payload));
		return f->fds_n == 0;
	default:
		return false;
	}
}

/* --- what init says --- */

static int relay_exec_on_started(struct relay *r, struct str payload)
{
	struct roomctl_started m;
	struct relay_exec *x;

	if (!roomctl_get_started(payload, &m))
		return -EPROTO;
	x = relay_exec_find(r, m.exec);
	if (!x || x->has_started)
		return -EPROTO;
	x->has_started = true;
	relay_sent(r, &r->init, roomctl_send_started(&r->init.chan, &m, x->master));
	x->master = fd_close(x->master);
	return 0;
}

static int relay_exec_on_refused(struct relay *r, struct str payload)
{
	struct roomctl_failed m;
	struct relay_exec *x;

	if (!roomctl_get_failed(payload, &m))
		return -EPROTO;
	x = relay_exec_find(r, m.exec);
	if (!x || x->has_started)
		return -EPROTO;
	relay_exec_free(x);
	relay_sent(r, &r->init, roomctl_send_failed(&r->init.chan, &m));
	return 0;
}

/* It has ended: have that told when what it has printed is written. */
static void relay_exec_end(struct relay_exec *x)
{
	x->has_ended = true;
	for (unsigned i = 0; i < ARRAY_SIZE(x->pumps); i++)
		x->unwritten += x->pumps[i].user && pump_is_open(&x->pumps[i]);
	/* One more, so that x lives until all were asked. */
	x->unwritten++;
	for (unsigned i = 0; i < ARRAY_SIZE(x->pumps); i++)
		if (x->pumps[i].user && pump_is_open(&x->pumps[i]))
			pump_flush(&x->pumps[i], PUMP_WRITTEN, relay_exec_on_clean);
	x->unwritten--;
	relay_exec_settle(x);
}

static int relay_exec_on_exited(struct relay *r, struct str payload)
{
	struct roomctl_exited m;
	struct relay_exec *x;

	if (!roomctl_get_exited(payload, &m))
		return -EPROTO;
	x = relay_exec_find(r, m.exec);
	if (!x || !x->has_started || x->has_ended)
		return -EPROTO;
	x->ending = m;
	relay_exec_end(x);
	return 0;
}

static int relay_exec_on_stopped(struct relay *r, struct str payload)
{
	struct roomctl_stopped m;
	const struct relay_exec *x;

	if (!roomctl_get_stopped(payload, &m))
		return -EPROTO;
	x = relay_exec_find(r, m.exec);
	if (!x || !x->has_started || x->has_ended)
		return -EPROTO;
	relay_sent(r, &r->init, roomctl_send_stopped(&r->init.chan, &m));
	return 0;
}

void relay_exec_on_over(struct relay *r)
{
	struct relay_exec *x, *next;

	HASH_ITER (hh, r->execs, x, next) {
		/* What waits for its terminal was never started. */
		if (x->has_ended || x->asked)
			continue;
		x->is_lost = true;
		relay_exec_end(x);
	}
}

bool relay_exec_is_owed(const struct relay *r)
{
	const struct relay_exec *x = r->execs;

	while (x && !x->has_ended)
		x = x->hh.next;
	return x;
}

int relay_exec_on_message(struct relay *r, enum far_message type, struct str payload)
{
	switch ((int)type) {
	case FAR_STARTED:
		return relay_exec_on_started(r, payload);
	case FAR_REFUSED:
		return relay_exec_on_refused(r, payload);
	case FAR_EXITED:
		return relay_exec_on_exited(r, payload);
	case FAR_STOPPED:
		return relay_exec_on_stopped(r, payload);
	case FAR_READY:
		if (payload.n || r->ready)
			return -EPROTO;
		r->ready = true;
		relay_sent(r, &r->init, roomctl_send_ready(&r->init.chan));
		return 0;
	default:
		return -EPROTO;
	}
}
