/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: this process holds a room in the place where the room is, and lives as long
 * as the room. Whatever carries bytes to the near end (`cloche-far start`, later `cloche-far
 * attach`) connects to a socket in the room's directory, and gives us the two descriptors of its
 * stream, or is the stream itself; the newest is the carrier. Without a carrier the room goes on
 * for the time that near has named, and then ends by itself. Everything of it lies in one
 * directory, whose lock this process holds. */
#include "farside/hold.h"
#include "base/clock.h"
#include "base/fd.h"
#include "farside/fardir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	USAGE_USEC = USEC_PER_SEC,
	TAILS_USEC = 5 * USEC_PER_SEC, /* for the output of a room that somebody has ended */
	TAIL_MIN_USEC = 2 * USEC_PER_MSEC,
	TAIL_MAX_USEC = 200 * USEC_PER_MSEC,
	FIRST_USEC = 60 * USEC_PER_SEC, /* for the first carrier */
	PATIENCE_MAX_USEC = 24LL * 3600 * USEC_PER_SEC,
};

static struct hold *hold_of_link(struct link *l)
{
	return container_of(l, struct hold, carrier.link);
}

void hold_leave(struct hold *h)
{
	h->room = room_free(h->room);
	carrier_detach(&h->carrier);
	if (h->in_place)
		stand_undo(h->dir, true);
	room_spec_close(&h->spec);
	fardir_remove(h->id);
	_exit(0);
}

static void hold_on_tails(struct loop_timer *t);

void hold_fail(struct hold *h, const struct cloche_err *why)
{
	hold_sent(h, far_send_error(&h->carrier.link, why));
	h->is_over = h->has_failed = true;
	/* Until it has arrived. */
	if (loop_timer_in(h->loop, &h->patience, TAILS_USEC, hold_on_tails) < 0)
		hold_leave(h);
}

static void hold_on_tails(struct loop_timer *t)
{
	hold_leave(container_of(t, struct hold, patience));
}

/* --- the room's life --- */

void hold_tell_usage(struct hold *h)
{
	struct room_usage u = {0};
	struct far_usage m;

	if (h->carrier.out < 0 || h->room->provider->usage(h->room, &u, NULL) < 0 ||
		memcmp(&u, &h->told, sizeof(u)) == 0)
		return;
	h->told = u;
	m = (struct far_usage){.cpu_usec = u.cpu_usec,
		.memory_bytes = u.memory_bytes,
		.memory_peak_bytes = u.memory_peak_bytes,
		.pids = u.pids,
		.pids_peak = u.pids_peak,
		.io_read_bytes = u.io_read_bytes,
		.io_write_bytes = u.io_write_bytes,
		.oom_kills = u.oom_kills,
		.pids_refused = u.pids_refused,
		.sampled = u.sampled};
	hold_sent(h, far_send(&h->carrier.link, FAR_USAGE, far_usage_message(), &m));
}

static void hold_on_usage(struct loop_timer *t)
{
	struct hold *h = container_of(t, struct hold, usage);

	hold_tell_usage(h);
	if (loop_timer_in(h->loop, t, USAGE_USEC, hold_on_usage) < 0)
		hold_leave(h);
}

/* The room is dead and its output is read, or somebody has ended it and has waited long enough. */
static void hold_tell_over(struct hold *h)
{
	struct room_exit how = {0};
	struct far_over m;

	if (h->is_over)
		return;
	h->is_over = true;
	loop_timer_clear(&h->tails);
	loop_timer_clear(&h->usage);
	hold_tell_usage(h);
	(void)h->room->provider->wait(h->room, &how, NULL);
	m = (struct far_over){.exited = how.exited,
		.status = (uint32_t)how.status & 0xff,
		.oom_killed = how.oom_killed};
	hold_sent(h, far_send(&h->carrier.link, FAR_OVER, far_over_message(), &m));
}

static void hold_on_tail(struct loop_timer *t)
{
	struct hold *h = container_of(t, struct hold, tails);

	if (exec_is_drained(h) || (h->tails_until && loop_now(h->loop) >= h->tails_until)) {
		hold_tell_over(h);
		return;
	}
	/* Somebody reads slowly. */
	h->tails_usec = MIN(2 * h->tails_usec, (uint64_t)TAIL_MAX_USEC);
	if (loop_timer_in(h->loop, t, h->tails_usec, hold_on_tail) < 0)
		hold_tell_over(h);
}

/* Return false if init broke the protocol. */
static bool hold_read_init(struct hold *h)
{
	while (h->init_open) {
		struct chan_frame f;
		int e = chan_recv(&h->init, &f);
		bool ok;

		if (e == 0 || e == -EPIPE)
			return true;
		if (e < 0)
			return false;
		ok = exec_on_frame(h, &f);
		chan_frame_done(&f);
		if (!ok)
			return false;
	}
	return true;
}

static void hold_close_init(struct hold *h)
{
	if (!h->init_open)
		return;
	loop_io_remove(&h->init_io);
	chan_done(&h->init);
	h->init_open = false;
	/* The guard of a room waits for this, and then says how init has ended (init/guard.c). */
	captured_stop(h);
}

static void hold_on_init(struct loop_io *io, uint32_t events)
{
	struct hold *h = container_of(io, struct hold, init_io);
	bool ok = hold_read_init(h) && chan_flush(&h->init) == 0;

	if (!ok)
		(void)h->room->provider->kill(h->room, SIGKILL, NULL);
	if (!ok || h->init.eof)
		hold_close_init(h);
	else
		loop_io_set(io, chan_pending(&h->init) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Nobody's reader keeps a room that somebody ends. */
static void hold_bound_tails(struct hold *h)
{
	if (h->is_ending && h->room_dead && !h->tails_until)
		h->tails_until = loop_now(h->loop) + TAILS_USEC;
}

static void hold_on_room_dead(struct loop_io *io, uint32_t events)
{
	struct hold *h = container_of(io, struct hold, room_io);

	loop_io_remove(io);
	(void)!hold_read_init(h);
	hold_close_init(h);
	h->room_dead = true;
	hold_bound_tails(h);
	h->tails_usec = TAIL_MIN_USEC;
	hold_on_tail(&h->tails);
}

static int hold_watch_room(struct hold *h, struct cloche_err *err)
{
	int e = chan_init(
		&h->init, TAKE_FD(h->room->control_fd), ROOMCTL_MAX_REPLY, ROOMCTL_MAX_PAYLOAD * 2);

	h->init.max_send = ROOMCTL_MAX_PAYLOAD;
	h->init_open = e == 0;
	if (e == 0)
		e = loop_io_add(h->loop, &h->init_io, h->init.fd, EPOLLIN, hold_on_init);
	if (e == 0)
		e = loop_io_add(
			h->loop, &h->room_io, h->room->watch_fd, EPOLLIN, hold_on_room_dead);
	if (e == 0)
		e = loop_timer_in(h->loop, &h->usage, USAGE_USEC, hold_on_usage);
	return e < 0 ? err_sys(err, -e, "watch the room") : 0;
}

/* --- what near asks for --- */

static void hold_on_prepare(struct hold *h, struct str payload)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (make_prepare(h, payload, &err) < 0)
		hold_fail(h, &err);
	else
		hold_sent(h, link_send(&h->carrier.link, FAR_PREPARED, STR_NULL));
}

static int hold_tell_made(struct hold *h)
{
	char *unenforced[ROOM_UNENFORCED_MAX + 1] = {NULL};
	struct far_made m = {.uid = h->room->uid,
		.gid = h->room->gid,
		.unenforced = unenforced,
		.in_place = h->in_place};

	for (unsigned i = 0; i < h->room->unenforced_n; i++)
		unenforced[i] = h->room->unenforced[i];
	return far_send(&h->carrier.link, FAR_MADE, far_made_message(), &m);
}

static int hold_on_make(struct hold *h)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int e;

	if (!h->has_spec || h->room || h->is_over)
		return -EPROTO;
	e = make_room(h, &err);
	if (e == 0)
		hold_sent(h, hold_tell_made(h));
	if (e == 0)
		e = hold_watch_room(h, &err);
	if (e == 0 && h->spec.net == ROOM_NET_GATEWAY)
		e = captured_start(h, &err);
	if (e < 0)
		hold_fail(h, &err);
	return 0;
}

static int hold_on_kill(struct hold *h, struct str payload)
{
	struct far_kill m;

	if (!far_get_kill(payload, &m))
		return -EPROTO;
	if (h->room)
		(void)h->room->provider->kill(h->room, m.signo, NULL);
	/* Init, which the signal has stopped too, must go on, as it starts the next processes. */
	if (h->room && m.signo == SIGSTOP)
		(void)kill(h->room->pid, SIGCONT);
	if (m.signo == SIGKILL || m.signo == SIGTERM) {
		h->is_ending = true;
		hold_bound_tails(h);
	}
	return 0;
}

static int hold_on_kill_tree(struct hold *h, struct str payload)
{
	struct far_kill_tree m;

	if (!far_get_kill_tree(payload, &m))
		return -EPROTO;
	if (h->room)
		(void)h->room->provider->kill_tree(h->room, (pid_t)m.pid, NULL);
	return 0;
}

/* Pass a frame on to init as it is. */
static int hold_to_init(struct hold *h, enum roomctl_frame type, struct str payload)
{
	if (!h->init_open)
		return 0;
	if (chan_send(&h->init, type, payload, NULL, 0) < 0 || chan_flush(&h->init) < 0)
		(void)h->room->provider->kill(h->room, SIGKILL, NULL);
	return 0;
}

static int hold_on_message(struct link *l, uint16_t type, struct str payload)
{
	struct hold *h = hold_of_link(l);

	switch (type) {
	case FAR_ROOM:
		hold_on_prepare(h, payload);
		return 0;
	case FAR_MAKE:
		return hold_on_make(h);
	case FAR_EXEC:
		return h->room ? exec_on_exec(h, payload) : -EPROTO;
	case FAR_SIGNAL:
		return hold_to_init(h, ROOM_SIGNAL, payload);
	case FAR_RESIZE:
		return hold_to_init(h, ROOM_RESIZE, payload);
	case FAR_KILL:
		return hold_on_kill(h, payload);
	case FAR_KILL_TREE:
		return hold_on_kill_tree(h, payload);
	case FAR_FILES:
		return streams_on_files(h, payload);
	case FAR_LEAVE:
		hold_leave(h);
	default:
		return -EPROTO;
	}
}

static const struct link_ops hold_link_ops = {
	.message = hold_on_message,
	.data = pump_on_data,
	.end = pump_on_end,
	.stop = pump_on_stop,
	.more = pump_on_more,
};

/* --- carriers --- */

static void hold_on_patience(struct loop_timer *t)
{
	hold_leave(container_of(t, struct hold, patience));
}

static void hold_be_patient(struct hold *h, uint64_t usec)
{
	if (loop_timer_in(h->loop, &h->patience, MIN(usec, (uint64_t)PATIENCE_MAX_USEC),
		    hold_on_patience) < 0)
		hold_leave(h);
}

/* Whoever has given us the carrier need not wait any longer. */
static void hold_let_go(struct hold *h)
{
	loop_io_remove(&h->giver_io);
	h->giver = fd_close(h->giver);
}

static void hold_on_cut(struct carrier *c, int why)
{
	struct hold *h = container_of(c, struct hold, carrier);

	hold_let_go(h);
	if (why == -EPROTO || why == -E2BIG || why == -ENOMEM || !h->has_spec || h->has_failed)
		hold_leave(h);
	/* What hold_fail() has begun ends soon, with or without a carrier. */
	if (!h->is_over || h->room)
		hold_be_patient(h, h->patience_usec);
}

/* Who has given us the carrier has ended: so somebody has ended the carrier. */
static void hold_on_giver(struct loop_io *io, uint32_t events)
{
	struct hold *h = container_of(io, struct hold, giver_io);

	carrier_detach(&h->carrier);
	hold_on_cut(&h->carrier, -EPIPE);
}

/* Go on with these descriptors (taken). first: what was read of them already. */
static void hold_take_carrier(struct hold *h, int in, int out, struct str first)
{
	int e;

	if (!h->is_over || h->room)
		loop_timer_clear(&h->patience);
	e = carrier_attach(&h->carrier, in, out);
	if (e == 0 && first.n)
		e = link_feed(&h->carrier.link, first, loop_now(h->loop));
	if (e < 0)
		hold_leave(h);
}

/* The guest has two descriptors for us. It stays, as it ends with them. */
static void hold_take_given(struct hold *h, int guest, int in, int out)
{
	hold_let_go(h);
	h->giver = guest;
	if (loop_io_add(h->loop, &h->giver_io, guest, EPOLLIN, hold_on_giver) < 0)
		hold_leave(h);
	hold_take_carrier(h, in, out, STR_NULL);
}

/* The guest has said something, or is gone. */
static void hold_on_guest(struct loop_io *io, uint32_t events)
{
	struct hold *h = container_of(io, struct hold, guest_io);
	_cleanup_fd_ int guest = TAKE_FD(h->guest);
	int fds[HOLD_GIVEN] = {-1, -1}, copy;
	union fd_control control;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	unsigned n;

	loop_io_remove(io);
	if (recvmsg(guest, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return;
	n = fd_detach(&msg, fds, HOLD_GIVEN);
	if (n == HOLD_GIVEN && (uint8_t)byte == HOLD_GIVES) {
		hold_take_given(h, TAKE_FD(guest), fds[0], fds[1]);
		return;
	}
	for (unsigned i = 0; i < HOLD_GIVEN; i++)
		fd_close_foreign(fds[i]);
	copy = n == 0 ? fcntl(guest, F_DUPFD_CLOEXEC, 3) : -1;
	if (copy < 0)
		return;
	hold_let_go(h);
	hold_take_carrier(h, TAKE_FD(guest), copy, str_make(&byte, 1));
}

/* The carrier that there is stays until this one says something: who reaps connects, too. */
static void hold_on_door(struct loop_io *io, uint32_t events)
{
	struct hold *h = container_of(io, struct hold, doors);
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	loop_io_remove(&h->guest_io);
	fd_close(h->guest);
	h->guest = fd;
	if (loop_io_add(h->loop, &h->guest_io, fd, EPOLLIN, hold_on_guest) < 0)
		h->guest = fd_close(h->guest);
}

static void hold_on_signal(struct loop_io *io, uint32_t events)
{
	hold_leave(container_of(io, struct hold, signals));
}

static void hold_on_owner(struct loop_io *io, uint32_t events)
{
	hold_leave(container_of(io, struct hold, owner_io));
}

static int hold_start(struct hold *h, const struct hold_how *how)
{
	sigset_t ends;
	int fd, e;

	h->dir = how->dir;
	h->owner = how->owner;
	h->guest = h->giver = -1;
	h->only_rooms = how->only_rooms;
	h->loop = loop_new();
	if (!h->loop)
		return -errno;
	room_spec_init(&h->spec);
	carrier_init(&h->carrier, h->loop, &hold_link_ops, NULL, hold_on_cut);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	fd = loop_signalfd(&ends);
	e = fd < 0 ? fd : loop_io_add(h->loop, &h->signals, fd, EPOLLIN, hold_on_signal);
	if (e == 0)
		e = loop_io_add(h->loop, &h->doors, how->listener, EPOLLIN, hold_on_door);
	if (e == 0 && h->owner >= 0)
		e = loop_io_add(h->loop, &h->owner_io, h->owner, EPOLLIN, hold_on_owner);
	hold_be_patient(h, FIRST_USEC);
	return e;
}

void hold_program(const char *id, const struct hold_how *how)
{
	static struct hold h;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGHUP, SIG_IGN) == SIG_ERR)
		_exit(1);
	fd_raise_limit();
	h.id = id;
	if (hold_start(&h, how) < 0)
		_exit(1);
	_exit(loop_run(h.loop) < 0);
}
