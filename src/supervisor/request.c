/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: requests of clients about the room as a whole. The broker has the figures of
 * the network and is asked for them. Further frames of the asking client wait for its answer, so
 * that answers keep their order.
 *
 * A client sends a new policy to the broker directly; only the socket passes through here. */
#include "base/clock.h"
#include "supervisor/supervisor.h"

#include <sys/socket.h>

void request_refuse(struct peer *p, uint16_t request, const struct cloche_err *err)
{
	const struct ctl_refused m = {.request = request, .err = *err};

	peer_sent(p, ctl_send_refused(&p->chan, &m));
}

bool request_refuse_stop(struct peer *p)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	const struct task *t, *tmp;
	bool in_use = false;

	HASH_ITER (hh, p->sup->tasks.known, t, tmp)
		in_use = in_use || t->shown || t->watchers;
	if (!in_use)
		return false;
	err_set(&err, E_BUSY, "something runs in sandbox %s", p->sup->spec.id);
	request_refuse(p, CTL_STOP, &err);
	return true;
}

/* --- figures --- */

bool request_stats(struct peer *p, struct chan_frame *f)
{
	if (helpers_ask_counts(p->sup))
		p->asked = true;
	else
		request_answer_stats(p);
	return f->payload.n == 0;
}

void request_answer_stats(struct peer *p)
{
	struct supervisor *s = p->sup;
	struct room_usage u = {0};
	struct ctl_stats_now m = {.now_usec = clock_mono_usec(),
		.memory_limit = s->spec.limits.memory_bytes,
		.pids_limit = s->spec.limits.pids,
		.execs_running = tasks_running(s),
		.execs_total = tasks_total(s),
		.net_allowed = s->net.counts.allowed,
		.net_blocked = s->net.counts.blocked,
		.net_sent = s->net.counts.sent,
		.net_received = s->net.counts.received};

	m.uptime_usec = s->started_at ? m.now_usec - s->started_at : 0;
	if (s->room && s->room->provider->usage(s->room, &u, NULL) == 0) {
		m.cpu_usec = u.cpu_usec;
		m.memory_bytes = u.memory_bytes;
		m.memory_peak_bytes = u.memory_peak_bytes;
		m.pids = u.pids;
		m.pids_peak = u.pids_peak;
		m.io_read_bytes = u.io_read_bytes;
		m.io_write_bytes = u.io_write_bytes;
	}
	peer_sent(p, ctl_send_stats_now(&p->chan, &m));
}

/* --- layers --- */

bool request_layers(struct peer *p, struct chan_frame *f)
{
	const struct room *room = p->sup->room;
	struct cloche_err err = CLOCHE_ERR_INIT;
	int fds[2];

	if (!room)
		err_set(&err, E_UNSUPPORTED, "this sandbox has no room (any more)");
	if (room && room_layers(room, &fds[0], &fds[1], &err) == 0)
		peer_sent(p, ctl_send_layers_are(&p->chan, fds));
	else
		request_refuse(p, CTL_LAYERS, &err);
	return f->payload.n == 0;
}

/* --- policy --- */

static bool is_unix_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

bool request_policy(struct peer *p, struct chan_frame *f)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (f->payload.n > 0 || f->fds_n != 1 || !is_unix_stream(f->fds[0]))
		return false;
	if (helpers_pass_policy(p->sup, f->fds[0], &err) < 0)
		request_refuse(p, CTL_POLICY, &err);
	else
		peer_sent(p, ctl_send_policy_passed(&p->chan));
	return true;
}
