/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: we speak with the room's init as a supervisor does. What init gets as a
 * process's descriptors are pipes and sockets whose other ends are connected with channels. The end
 * of a process is told when what it has printed has been read. */
#include "base/fd.h"
#include "farside/hold.h"
#include "ipc/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void exec_settle(struct hold_exec *x)
{
	struct hold *h = x->hold;

	if (x->has_ended && !x->is_told && x->unread == 0) {
		x->is_told = true;
		HASH_DEL(h->execs, x);
		/* Near asks what ended it as soon as it hears of a failure. */
		if (x->ending.status != 0)
			hold_tell_usage(h);
		hold_sent(h, far_send(&h->carrier.link, FAR_EXITED, roomctl_exited_message(),
				     &x->ending));
	}
	if (x->is_told && x->open == 0)
		free(x);
}

static void exec_on_done(struct pump *p)
{
	struct hold_exec *x = p->user;

	x->open--;
	exec_settle(x);
}

static void exec_on_clean(struct pump *p)
{
	struct hold_exec *x = p->user;

	x->unread--;
	exec_settle(x);
}

static struct hold_exec *exec_find(struct hold *h, uint32_t number)
{
	struct hold_exec *x;

	HASH_FIND(hh, h->execs, &number, sizeof(number), x);
	return x;
}

static void exec_free(struct hold_exec *x)
{
	for (unsigned i = 0; i < ARRAY_SIZE(x->pumps); i++)
		if (x->pumps[i].user)
			pump_close(&x->pumps[i]);
	HASH_DEL(x->hold->execs, x);
	free(x);
}

/* Connect the channel of descriptor i, and make what the process gets as that descriptor. */
static int exec_connect(
	struct hold_exec *x, unsigned i, enum far_stdio kind, uint32_t number, int *ret_theirs)
{
	struct pump *p = &x->pumps[i];
	_cleanup_fd_ int in = -1, out = -1;
	int pair[2], e = kind == FAR_BOTH ? fd_socketpair(SOCK_STREAM, pair) : fd_pipe(pair);

	if (e < 0)
		return e;
	if (kind == FAR_READS) {
		out = pair[1];
		*ret_theirs = pair[0];
	} else {
		in = pair[0];
		*ret_theirs = pair[1];
	}
	if (kind == FAR_BOTH)
		out = fcntl(in, F_DUPFD_CLOEXEC, 3);
	if (kind == FAR_BOTH && out < 0)
		return -errno;
	e = pump_open(p, &x->hold->carrier, number, TAKE_FD(in), TAKE_FD(out), exec_on_done);
	if (e < 0)
		return e;
	p->user = x;
	x->open++;
	return 0;
}

static int exec_reserve_terminal(struct hold_exec *x, uint32_t number)
{
	int e = pump_reserve(&x->pumps[0], &x->hold->carrier, number, exec_on_done);

	if (e < 0)
		return e;
	x->tty = true;
	x->pumps[0].user = x;
	x->open++;
	return 0;
}

/* Give the command a terminal if its init can open none. */
static int exec_lend_terminal(
	const struct hold *h, struct roomctl_exec *m, int fds[3], unsigned *ret_n)
{
	if (!h->room->provider->lends_terminals)
		return 0;
	m->fds_mask = 3;
	*ret_n = 2;
	return pty_make(m->spec.rows, m->spec.cols, &fds[0], &fds[1]);
}

/* Make what the process gets: fds in the order of m's mask. */
static int exec_make_fds(struct hold_exec *x, const struct far_exec *ask, struct roomctl_exec *m,
	int fds[3], unsigned *ret_n)
{
	const uint32_t channels[] = {ask->channel0, ask->channel1, ask->channel2};
	int e = m->spec.tty ? exec_reserve_terminal(x, ask->channel0) : 0;

	if (e == 0 && m->spec.tty)
		e = exec_lend_terminal(x->hold, m, fds, ret_n);
	for (unsigned i = 0; i < 3 && e == 0 && !m->spec.tty; i++) {
		bool wanted = m->fds_mask & 1U << i;

		if (wanted != (ask->stdio[i] != FAR_NONE))
			return -EPROTO;
		if (!wanted)
			continue;
		e = exec_connect(x, i, ask->stdio[i], channels[i], &fds[*ret_n]);
		if (e == 0) {
			room_lend(x->hold->room, fds[*ret_n], m->spec.uid, m->spec.gid);
			(*ret_n)++;
		}
	}
	return e;
}

static struct hold_exec *exec_new(struct hold *h, uint32_t number)
{
	struct hold_exec *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->hold = h;
	x->number = number;
	HASH_ADD(hh, h->execs, number, sizeof(x->number), x);
	if (x->hh.tbl)
		return x;
	free(x);
	return NULL;
}

static int exec_start(struct hold *h, const struct far_exec *ask, struct roomctl_exec *m)
{
	struct hold_exec *x = exec_new(h, m->exec);
	int fds[3] = {-1, -1, -1}, e;
	unsigned n = 0;

	if (!x)
		return -ENOMEM;
	e = exec_make_fds(x, ask, m, fds, &n);
	if (e == 0)
		e = roomctl_send_exec(&h->init, m, fds, n);
	if (e == 0)
		e = chan_flush(&h->init);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	if (e == -EPROTO)
		return e;
	if (e == 0) {
		loop_io_set(&h->init_io, chan_pending(&h->init) ? EPOLLIN | EPOLLOUT : EPOLLIN);
		return 0;
	}
	exec_free(x);
	return far_send(&h->carrier.link, FAR_REFUSED, roomctl_failed_message(),
		&(struct roomctl_failed){.exec = m->exec,
			.stage = ROOM_STAGE_SETUP,
			.sys_errno = (uint32_t)MIN(-e, 4095)});
}

/* Near has opened the channels already. Whatever it sends on those that were not opened here, as
 * the room is dead or something ran out, is ignored. */
static void exec_skip(struct hold *h, const struct far_exec *ask)
{
	const uint32_t channels[] = {ask->channel0, ask->channel1, ask->channel2};

	for (unsigned i = 0; i < ARRAY_SIZE(channels); i++)
		(void)!link_skip(&h->carrier.link, channels[i]);
}

int exec_on_exec(struct hold *h, struct str payload)
{
	struct far_exec ask;
	struct roomctl_exec m;
	int e = -EPROTO;

	if (!message_get(payload, far_exec_message(), &ask))
		return -EPROTO;
	/* The room may have died meanwhile. */
	if (!roomctl_get_exec(ask.exec, &m))
		return -EPROTO;
	if (!exec_find(h, m.exec))
		e = h->init_open ? exec_start(h, &ask, &m) : 0;
	exec_skip(h, &ask);
	exec_spec_done(&m.spec);
	return e;
}

/* --- what init says --- */

static bool exec_on_started(struct hold *h, struct chan_frame *f)
{
	struct roomctl_started m;
	struct hold_exec *x;
	int in, out;

	if (!roomctl_get_started(f->payload, &m))
		return false;
	x = exec_find(h, m.exec);
	if (!x || f->fds_n != (unsigned)x->tty)
		return false;
	if (x->tty) {
		in = TAKE_FD(f->fds[0]);
		out = fcntl(in, F_DUPFD_CLOEXEC, 3);
		if (pump_start(&x->pumps[0], in, out) < 0) {
			x->pumps[0].user = NULL;
			x->open--;
		}
	}
	hold_sent(h, link_send(&h->carrier.link, FAR_STARTED, f->payload));
	return true;
}

static bool exec_on_failed(struct hold *h, struct chan_frame *f)
{
	struct roomctl_failed m;
	struct hold_exec *x;

	if (!roomctl_get_failed(f->payload, &m))
		return false;
	x = exec_find(h, m.exec);
	if (!x)
		return false;
	exec_free(x);
	hold_sent(h, link_send(&h->carrier.link, FAR_REFUSED, f->payload));
	return true;
}

static bool exec_on_exited(struct hold *h, struct chan_frame *f)
{
	struct roomctl_exited m;
	struct hold_exec *x;

	if (!roomctl_get_exited(f->payload, &m))
		return false;
	x = exec_find(h, m.exec);
	if (!x || x->has_ended)
		return false;
	x->has_ended = true;
	x->ending = m;
	/* One more than there are, so that x lives until all were asked. */
	x->unread = 1;
	for (unsigned i = 0; i < ARRAY_SIZE(x->pumps); i++) {
		if (!x->pumps[i].user || !pump_is_open(&x->pumps[i]))
			continue;
		x->unread++;
		pump_flush(&x->pumps[i], PUMP_READ, exec_on_clean);
	}
	x->unread--;
	exec_settle(x);
	return true;
}

static bool exec_on_stopped(struct hold *h, struct chan_frame *f)
{
	struct roomctl_stopped m;
	struct hold_exec *x;

	if (!roomctl_get_stopped(f->payload, &m))
		return false;
	x = exec_find(h, m.exec);
	if (!x || !x->tty || x->has_ended)
		return false;
	hold_sent(h, link_send(&h->carrier.link, FAR_STOPPED, f->payload));
	return true;
}

bool exec_on_frame(struct hold *h, struct chan_frame *f)
{
	switch (f->type) {
	case ROOM_READY:
		hold_sent(h, link_send(&h->carrier.link, FAR_READY, STR_NULL));
		return f->payload.n == 0;
	case ROOM_STARTED:
		return exec_on_started(h, f);
	case ROOM_FAILED:
		return exec_on_failed(h, f);
	case ROOM_EXITED:
		return exec_on_exited(h, f);
	case ROOM_STOPPED:
		return exec_on_stopped(h, f);
	default:
		return false;
	}
}

bool exec_is_drained(const struct hold *h)
{
	const struct hold_exec *x;

	for (x = h->execs; x; x = x->hh.next)
		for (unsigned i = 0; i < ARRAY_SIZE(x->pumps); i++)
			if (x->pumps[i].in >= 0 && x->pumps[i].user)
				return false;
	return true;
}
